#!/usr/bin/env python3
"""Builds torch_catenary beside the release library, and runs all its tests: our own, and the whole of
torch's distributed suite on gloo and on catenary, which must pass whatever gloo passes.

Every skip must have a verdict in skips.py.

usage: everything.py [--world N ...] [--only-suite]
       everything.py --bench [--quick]    measures beside gloo, into docs/torch or build/torch

What `./dev torch` runs. Leaves each suite's outcomes in build/torch/*.json, and what was skipped in
build/torch/skips.md.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

BACKEND = pathlib.Path(__file__).resolve().parent.parent
TREE = BACKEND.parent.parent
BUILT = TREE / "build" / "torch"
OURS = [("semantics_test", "--world", "2", "3", "4"), ("agreement_test", "--world", "2", "3", "4"), ("order_test",), ("process_life_test",), ("frameworks_test",),
        ("examples_test", "--gloo")]


def run(*command):
    """Whether it ended well. What it prints is the user's."""
    environment = {**os.environ, "PYTHONPATH": str(BUILT / "lib")}
    print("+", " ".join(str(word) for word in command), flush=True)
    return subprocess.run([sys.executable, "-B", *command], cwd=BACKEND, env=environment).returncode == 0


def suite(backend, world):
    """{test: [outcome, why, seconds]}, of nothing if it did not come to its end."""
    out = BUILT / f"{backend}_{world}.json"
    out.unlink(missing_ok=True)
    run("tests/torch_suite.py", "--backend", backend, "--world", str(world), "--out", out)
    return json.loads(out.read_text()) if out.exists() else {}


def number(outcomes, kind):
    return sum(outcome == kind for outcome, _, _ in outcomes.values())


def compare(world):
    """One line of the summary, and whether all is well."""
    gloo, ours = suite("gloo", world), suite("catenary", world)
    lost = sorted(name for name, (outcome, _, _) in gloo.items()
                  if outcome == "pass" and ours.get(name, ["none"])[0] != "pass")
    if number(gloo, "pass") == 0:
        return f"torch's suite, {world} ranks: no outcomes of gloo to compare with", False
    line = f"torch's suite, {world} ranks: " + ", ".join(
        f"{name} {number(outcomes, 'pass')} passed {number(outcomes, 'skip')} skipped "
        f"{number(outcomes, 'fail')} failed" for name, outcomes in (("gloo", gloo), ("catenary", ours)))
    if lost:
        line += f"; gloo passes and catenary does not: {', '.join(lost)}"
    return line, bool(ours) and not lost and number(ours, "fail") == 0


def judge_skips(worlds):
    """One line of the summary, and whether every skip has a verdict."""
    files = [str(BUILT / f"catenary_{world}.json") for world in worlds]
    written = BUILT / "skips.md"
    with open(written, "w") as out:
        judged = subprocess.run([sys.executable, BACKEND / "tests/skips.py", *files], stdout=out).returncode == 0
    return f"skips: {'all judged' if judged else 'not all judged'}, in {written.relative_to(TREE)}", judged


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\nusage", maxsplit=1)[0])
    parser.add_argument("--world", type=int, nargs="*", default=[2, 3, 4], help="numbers of ranks of torch's suite")
    parser.add_argument("--only-suite", action="store_true", help="leave our own tests out")
    parser.add_argument("--bench", action="store_true", help="measure beside gloo instead: numbers and plot, into docs/torch")
    parser.add_argument("--quick", action="store_true", help="in three rounds, into build/torch")
    options = parser.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    if not run("setup.py", "--quiet", "build", "--build-base", BUILT, "--build-lib", BUILT / "lib"):
        sys.exit("torch_catenary does not build")
    if options.bench:
        out, rounds = (BUILT, "3") if options.quick else (TREE / "docs" / "torch", "9")
        sys.exit(not run("-W", "ignore", "bench/side_by_side.py", "--rounds", rounds, "--out", out))
    lines, good = [], True
    if not options.only_suite:
        for name, *arguments in OURS:
            passed = run(f"tests/{name}.py", *arguments)
            lines.append(f"{name}: {'passed' if passed else 'failed'}")
            good = good and passed
    for world in options.world:
        line, passed = compare(world)
        lines.append(line)
        good = good and passed
    line, judged = judge_skips(options.world)
    lines.append(line)
    print("\n".join(lines))
    sys.exit(not (good and judged))


if __name__ == "__main__":
    main()
