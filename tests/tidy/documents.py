#!/usr/bin/env python3
"""What the documents say is so: links and paths that they name exist, and the README's program is
examples/first.c, word by word.

usage: documents.py <root>
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
PATH = re.compile(r"`((?:\./)?(?:docs|src|include|transports|tests|bench|examples|cmake|\.ci)/[\w./-]*)`")


def problems(root):
    documents = [*root.glob("*.md"), *sorted((root / "docs").rglob("*.md")),
                 *sorted((root / "transports").rglob("*.md"))]
    for document in documents:
        text, name = document.read_text(), document.relative_to(root)
        for link in LINK.findall(text):
            if "://" not in link and not (document.parent / link).exists():
                yield f"{name}: links to {link}, which does not exist"
        for path in PATH.findall(text):
            # A module may be named without its ending.
            if not (root / path).exists() and not list(root.glob(path + ".*")):
                yield f"{name}: speaks of {path}, which does not exist"
    if (root / "examples" / "first.c").read_text() not in (root / "README.md").read_text():
        yield "README.md: the program is not examples/first.c"


found = list(problems(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "what the documents name is there")
sys.exit(bool(found))
