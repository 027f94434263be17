#!/usr/bin/env python3
"""What libnccl.so.2 exports: the functions of the public headers, and nothing else.

usage: symbols.py <library> <include directory>

Every ncclX is weak and has a strong twin pncclX at the same address, so that a profiler may put
itself in between; the library's own name is libnccl.so.2, which programs load it by. It needs little
thread-local memory, or programs that load it at run time, as Python does, could not.
"""
import pathlib
import re
import subprocess
import sys

MOST_THREAD_LOCAL = 512


def exported(library):
    """{name: (kind letter of nm, address)}"""
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    rows = [line.split() for line in text.splitlines()]
    return {name.split("@")[0]: (kind, address) for address, kind, name in rows}


def declared(header, prefix):
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^#.*?[^\\]$", "", header.read_text(), flags=re.S | re.M)
    return set(re.findall(r"\b(%s[A-Z]\w*)\s*\([^()]*\)\s*;" % prefix, text))


def problems(library, include):
    symbols = exported(library)
    nccl = declared(include / "nccl.h", "p?nccl")
    ours = {name for header in (include / "catenary").glob("*.h") for name in declared(header, "cat")}
    if len(nccl) < 80 or not ours:
        yield f"found only {len(nccl)} and {len(ours)} functions in the headers: cannot be right"
    for name in sorted(nccl | ours):
        if name not in symbols:
            yield f"{name} is declared but not exported"
    for name, (kind, address) in sorted(symbols.items()):
        if name not in nccl | ours:
            yield f"{name} is exported but no public header declares it"
        if name.startswith("pnccl") and kind != "T":
            yield f"{name} must be a strong function, is '{kind}'"
        if name.startswith("cat") and kind != "T":
            yield f"{name} must be a strong function, is '{kind}'"
        if name.startswith("nccl"):
            if kind != "W":
                yield f"{name} must be a weak function, is '{kind}'"
            if symbols.get("p" + name, ("", ""))[1] != address:
                yield f"{name} and p{name} are not the same function"
    dynamic = subprocess.run(["readelf", "-dW", library], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    if not soname or soname[1] != "libnccl.so.2":
        yield f"SONAME is {soname and soname[1]}, not libnccl.so.2"
    segments = subprocess.run(["readelf", "-lW", library], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    local = re.search(r"^  TLS +(?:0x\w+ ){4}(0x\w+)", segments, re.M)
    if not local or int(local[1], 16) > MOST_THREAD_LOCAL:
        yield f"{local and int(local[1], 16)} bytes are thread-local, more than {MOST_THREAD_LOCAL}"


if __name__ == "__main__":
    found = list(problems(sys.argv[1], pathlib.Path(sys.argv[2])))
    print("\n".join(found) or "exports are exactly what the headers declare")
    sys.exit(bool(found))
