#!/usr/bin/env python3
"""Who may include whom: the table of docs/architecture.md is the rule, and this enforces it.

usage: layers.py <root>              reports every other #include between rooms
       layers.py <root> --self-test  plants bad includes in a copy and fails unless each is reported

A room is a directory (or one header) that the table names. A file may include its own room and the
rooms listed for it; quoted includes are written from the root, but for what others build without our
tree (examples, public headers, integrations); every source belongs to a room.
"""
import pathlib
import re
import shutil
import sys
import tempfile

SCANNED = ["include", "src", "transports", "bench", "tools", "integrations", "examples"]
ROW = re.compile(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def read_table(root):
    """{room: set of rooms it may include}, rooms as the table spells them."""
    text = (root / "docs" / "architecture.md").read_text()
    section = text.split("## Rooms", 1)[1].split("\n## ", 1)[0]
    table = {room: set(re.findall(r"`([^`]+)`", allowed)) for room, allowed in ROW.findall(section)}
    if len(table) < 10:
        sys.exit("docs/architecture.md: no table of rooms found")
    return table


def room_of(path, table):
    """The most particular room that holds `path`, or None."""
    inside = [room for room in table if path == room or (room.endswith("/") and path.startswith(room))]
    return max(inside, key=len, default=None)


def table_problems(root, table):
    for room, allowed in table.items():
        if not (root / room).exists():
            yield f"docs/architecture.md: {room} does not exist"
        for other in allowed - set(table):
            yield f"docs/architecture.md: {room} may include {other}, which is no room"
    # The arrows point down only: take away rooms that need nothing left, until none is left.
    left = {room: allowed & set(table) - {room} for room, allowed in table.items()}
    while free := [room for room in left if not left[room] & set(left)]:
        for room in free:
            del left[room]
    if left:
        yield f"docs/architecture.md: a circle among {', '.join(sorted(left))}"


def resolve(root, quote, name):
    """The path from the root that an include means, or None for what is not ours."""
    if (root / name).is_file():
        return name
    for public in ("include", "include/cuda_compat"):
        if (root / public / name).is_file():
            return f"{public}/{name}"
    return name if quote == '"' else None


def include_problems(root, table):
    for top in SCANNED:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cc", ".c", ".inc"):
                continue
            path = file.relative_to(root).as_posix()
            room = room_of(path, table)
            if room is None:
                yield f"{path}: belongs to no room of docs/architecture.md"
                continue
            for quote, name in INCLUDE.findall(file.read_text()):
                beside = file.parent / name
                if room.startswith(("examples", "include", "integrations")) and quote == '"' and beside.is_file():
                    target = beside.resolve().relative_to(root.resolve()).as_posix()
                else:
                    target = resolve(root, quote, name)
                if target is None:
                    continue
                if not (root / target).is_file():
                    yield f'{path}: includes "{name}", which is no file from the root'
                    continue
                other = room_of(target, table)
                if other != room and other not in table[room]:
                    yield f"{path}: {room} may not include {other or 'what is in no room'} ({name})"


def problems(root):
    table = read_table(root)
    return list(table_problems(root, table)) + list(include_problems(root, table))


PLANTED = {
    "src/collective/planted.h": '#include "src/transport/transport.h"\n',
    "src/base/planted.cc": '#include <nccl.h>\n',
    "transports/loopback/planted.cc": '#include "src/collective/schedule.h"\n',
    "src/kernels/planted.cc": '#include "schedule.h"\n',
    "src/attic/planted.h": "int forgotten();\n",
}


def self_test(root):
    """Problems of this test itself: planted includes that it would let through."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch)
        for top in SCANNED + ["docs"]:
            if (root / top).exists():
                shutil.copytree(root / top, copy / top)
        for path, text in PLANTED.items():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_text(text)
        found = problems(copy)
    return [f"a planted include went unnoticed: {path}" for path in PLANTED
            if not any(problem.startswith(path) for problem in found)]


if __name__ == "__main__":
    top_directory = pathlib.Path(sys.argv[1])
    found_problems = self_test(top_directory) if "--self-test" in sys.argv else problems(top_directory)
    print("\n".join(found_problems) or "every include is in the table")
    sys.exit(bool(found_problems))
