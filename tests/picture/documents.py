#!/usr/bin/env python3
"""The pictures of docs/pictures are what `catenary draw` draws today, and no others.

usage: documents.py <catenary> <docs/pictures> [--write]

docs/pictures/README.md lists the commands; --write runs them.
"""
import pathlib
import re
import sys

import command

COMMAND = re.compile(r"^    catenary (draw .*) --out (\S+\.svg)$", re.M)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    commands = COMMAND.findall((folder / "README.md").read_text())
    if not commands:
        sys.exit(f"{folder}/README.md: no commands found")
    wrong = [f"{file.name}: no command draws it" for file in sorted(folder.glob("*.svg"))
             if file.name not in {name for _, name in commands}]
    for arguments, name in commands:
        picture = command.run(program, *arguments.split())
        file = folder / name
        if "--write" in sys.argv:
            file.write_text(picture, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != picture:
            wrong.append(f"{name}: out of date; run tests/picture/documents.py with --write")
    print("\n".join(wrong) or "all pictures are up to date")
    sys.exit(bool(wrong))


main()
