#!/usr/bin/env python3
"""docs/configuration.md documents every environment variable that the library reads, and no other.

usage: configuration.py <print_configuration program> <docs/configuration.md> [--write]

The program prints the library's own table; --write brings the document's table up to date.
"""
import pathlib
import re
import subprocess
import sys

HEADING = "| Variable | Value | Default | Meaning |\n|---|---|---|---|\n"
TABLE = re.compile(re.escape(HEADING) + r"(?:\|.*\n)*")
PARAGRAPH = re.compile(r"^(\w+) \(([\w -]+), default (.*)\)\n    (.*)\n", re.M)


def table_of(program):
    text = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout
    rows = PARAGRAPH.findall(text)
    if not rows or PARAGRAPH.sub("", text).strip():
        sys.exit(f"cannot read what {program} prints:\n{text}")
    return HEADING + "".join(
        f"| `{name}` | {kind} | {'empty' if default == chr(34) * 2 else default} | {meaning} |\n"
        for name, kind, default, meaning in rows)


def main():
    document = pathlib.Path(sys.argv[2])
    expected, text = table_of(sys.argv[1]), document.read_text()
    found = TABLE.search(text)
    if found is None:
        sys.exit(f"{document}: no table of variables")
    if "--write" in sys.argv:
        document.write_text(text.replace(found.group(), expected))
        return
    missing = [row for row in expected.splitlines() if row not in found.group().splitlines()]
    extra = [row for row in found.group().splitlines() if row not in expected.splitlines()]
    print("\n".join(["not documented: " + row for row in missing] +
                    ["documented, but not so: " + row for row in extra]) or "all documented")
    sys.exit(found.group() != expected)


main()
