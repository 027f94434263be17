"""Runs the catenary command, for the scripts beside this file."""
import itertools
import re
import subprocess


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0:
        raise SystemExit(f"catenary {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def runs_on(program, collective, algorithm, ranks, box):
    """Whether the algorithm runs on so many ranks in such boxes."""
    done = subprocess.run([program, "draw", collective, algorithm, "--ranks", str(ranks), "--box",
                           str(box)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 and "does not run on" not in done.stderr:
        raise SystemExit(done.stderr)
    return done.returncode == 0


def algorithms(program):
    """(collective, algorithm) of all there are."""
    collective = None
    for line in run(program, "list").splitlines():
        names = line.split()
        if not line.startswith(" "):
            collective = names.pop(0)
        for name in names:
            for written_out in without_braces(name):
                yield collective, written_out


def without_braces(text):
    """What a shell makes of a{b,c}d."""
    pieces = [piece.split(",") for piece in re.split(r"[{}]", text)]
    return ["".join(choice) for choice in itertools.product(*pieces)]
