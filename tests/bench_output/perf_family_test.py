"""Every bandwidth tool, all its types, operations and roots, with ranks as threads, as devices of one
thread, as processes and mixed: no value is wrong. Also where messages are many slices, and where
two ranks make a long sum together.

usage: perf_family_test.py <folder of the tools> [--all | --few]

--all: every number of ranks from 1 to 9 in each way (minutes); without, a choice of them (seconds);
--few: one of each way, reductions to one root, slices in one way, long sums of one type (for tools
that are instrumented, and take ten times as long).
"""

import os
import subprocess
import sys

TIMEOUT_S = 300
FAMILY = ["all_gather", "all_reduce", "alltoall", "alltoallv", "broadcast", "gather", "hypercube",
          "reduce", "reduce_scatter", "scatter", "sendrecv"]
REDUCING = {"all_reduce", "reduce", "reduce_scatter"}
ROOTED = {"broadcast", "gather", "reduce", "scatter"}
UNDEFINED_IN_PLACE = {"sendrecv"}
# Of 4300 bytes: up to 34 slices, in several passes.
SHORT_SLICES = {"CATENARY_SLOT_BYTES": "128", "CATENARY_SLOTS": "5"}
SHORT_SIZES = ("0", "4300")
# Pieces of 32 KB, and some more.
LONG_SIZES = ("1048600",)
LONG_SUMS = ("reduce", "reduce_scatter")


def shapes(options):
    """Flags for the ranks of a run, and how many ranks that makes."""
    if "--few" in options:
        return [(["-t", "4"], 4), (["-g", "3"], 3), (["--procs", "2", "-t", "2"], 4)]
    if "--all" not in options:
        return [(["-t", "1"], 1), (["-t", "4"], 4), (["-g", "3"], 3), (["--procs", "2"], 2),
                (["--procs", "2", "-t", "2"], 4), (["--procs", "5"], 5),
                (["--procs", "2", "-t", "2", "-g", "2"], 8), (["-t", "6"], 6),
                (["--procs", "7"], 7), (["--procs", "3", "-t", "3"], 9)]
    ways = ("-t", "-g", "--procs")
    return [([way, str(ranks)], ranks) for ranks in range(1, 10) for way in ways] + [
        (["--procs", "2", "-t", "2", "-g", "2"], 8), (["--procs", "3", "-t", "3"], 9)]


def environment(settings):
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("OMPI_", "PMI_", "PMIX_", "NCCL_TESTS_"))} | settings


def takes_all_roots(tool, options):
    return tool in ROOTED and not (tool in REDUCING and "--few" in options)


def problem(tools, tool, ranks, flags, settings, options, sizes=SHORT_SIZES, types="all"):
    command = [os.path.join(tools, tool + "_perf"), *flags, "-b", sizes[0], "-e", sizes[-1],
               "-i", "4300", "-n", "1", "-w", "0", "-d", types, "-c", "1"]
    command += ["-o", "all"] if tool in REDUCING else []
    command += ["-r", "all" if takes_all_roots(tool, options) else "1"] if tool in ROOTED else []
    try:
        done = subprocess.run(command, env=environment(settings), capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return " ".join(command) + ": hangs"
    said = f"{settings} " + " ".join(command) + "\n" + done.stdout[-2000:] + done.stderr[-2000:]
    if tool == "hypercube" and ranks & (ranks - 1):
        refused = done.returncode == 1 and "power of two" in done.stderr
        return None if refused else said + "does not refuse"
    if done.returncode != 0:
        return said
    rows = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    roots = ranks if takes_all_roots(tool, options) else 1
    wanted = len(sizes) * (12 if types == "all" else 1) * (6 if tool in REDUCING else 1) * roots
    if len(rows) != wanted:
        return f"{said}{len(rows)} rows instead of {wanted}"
    for row in rows:
        wrong = [row[52 + 27:52 + 33].strip(), row[85 + 27:85 + 33].strip()]
        if wrong != ["0", "N/A" if tool in UNDEFINED_IN_PLACE else "0"]:
            return said + row
    return None


def main(tools, options):
    found = []
    plain = [({}, *shape) for shape in shapes(options)]
    sliced = [(SHORT_SLICES, *shape) for shape in shapes(options)]
    runs = plain + (sliced[-1:] if "--few" in options else sliced)
    for tool in FAMILY:
        for settings, flags, ranks in runs:
            wrong = problem(tools, tool, ranks, flags, settings, options)
            if wrong is not None:
                found.append(wrong)
                print(wrong, flush=True)
    for tool in LONG_SUMS:
        types = "uint8" if "--few" in options else "all"
        wrong = problem(tools, tool, 2, ["--procs", "2"], {}, options, LONG_SIZES, types)
        if wrong is not None:
            found.append(wrong)
            print(wrong, flush=True)
    print(f"{len(FAMILY) * len(runs) + len(LONG_SUMS)} runs, {len(found)} of them wrong")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
