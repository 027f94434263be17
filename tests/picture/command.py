"""Runs the catenary command, for the scripts beside this file."""
import subprocess


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0:
        raise SystemExit(f"catenary {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def algorithms(program):
    """(collective, algorithm) of all there are."""
    for line in run(program, "list").splitlines():
        collective, *names = line.split()
        for name in names:
            yield collective, name
