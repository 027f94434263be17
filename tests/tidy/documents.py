#!/usr/bin/env python3
"""What the documents say is so: links, the headings that they point to, and paths that they name
exist, and the README's program is examples/first.c, word by word.

usage: documents.py <root>

Documents are all *.md files but those under build/, under hidden folders and under environments of
Python; that is what git lists, also where there is no git.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
PATH = re.compile(r"`((?:\./)?(?:docs|src|include|transports|tests|bench|examples|cmake|tools|"
                  r"integrations|\.ci)/[\w./-]*)`")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)


def documents_of(root):
    for document in sorted(root.rglob("*.md")):
        folders = document.relative_to(root).parts[:-1]
        if not any(name.startswith(".") or name in ("build", "site-packages") for name in folders):
            yield document


def anchors_of(text):
    """The names that a heading gets where Markdown is shown: words in lower case, hyphens between."""
    found = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = first = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        repeated = 0
        while name in found:
            repeated += 1
            name = f"{first}-{repeated}"
        found.add(name)
    return found


def broken_links(document, text):
    for link, anchor in LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        target = document.parent / link if link else document
        if not target.exists():
            yield f"links to {link}, which does not exist"
        elif anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text()):
            yield f"links to {link}#{anchor}, which is no heading there"


def problems(root):
    for document in documents_of(root):
        text, name = document.read_text(), document.relative_to(root)
        for problem in broken_links(document, text):
            yield f"{name}: {problem}"
        for path in PATH.findall(text):
            # A module may be named without its ending.
            if not (root / path).exists() and not list(root.glob(path + ".*")):
                yield f"{name}: speaks of {path}, which does not exist"
    if (root / "examples" / "first.c").read_text() not in (root / "README.md").read_text():
        yield "README.md: the program is not examples/first.c"


found = list(problems(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "what the documents name is there")
sys.exit(bool(found))
