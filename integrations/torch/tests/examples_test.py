#!/usr/bin/env python3
"""Every example trains, and what must agree agrees: data parallel, sharded and as a pipeline, the same
model on the same data has the same losses. While DDP reduces one bucket, the backward pass goes on to
the next.

usage: examples_test.py [--few | --gloo]
--few: two of them. --gloo: all, also with 4 ranks, and they have the same losses on gloo.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def run(command):
    return subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=120)


def losses(name, *options, steps=21):
    """{step: loss} that the example printed."""
    command = [sys.executable, "-W", "ignore", f"{name}.py", "--steps", str(steps), *options]
    done = run(command)
    if done.returncode and "gloo" in options and "terminate called without an active exception" in done.stderr:
        # torch's own, also where torch_catenary is not imported: gloo's threads hold tensors when the interpreter
        # ends (pytorch#179291). Here gloo is what we compare with.
        print(f"{name} on gloo aborted, and is tried again", flush=True)
        done = run(command)
    if done.returncode:
        raise AssertionError(f"{name} {options}: exit code {done.returncode}: {done.stderr[-2000:]}")
    found = {int(step): float(loss) for step, loss in re.findall(r"^step +(\d+)  loss (\S+)", done.stdout, re.M)}
    first, *_, last = (loss for _, loss in sorted(found.items()))
    if last > first * 0.7:
        raise AssertionError(f"{name} {options}: the loss does not fall: {found}")
    return found


def agree(one, other, within, what):
    for step, loss in one.items():
        if abs(loss - other[step]) > within:
            raise AssertionError(f"{what} differ at step {step}: {loss} and {other[step]}")


def check_overlap(steps=21):
    """In most steps backward functions begin while an all-reduce is under way. The last bucket of a step has
    none left to run beside, and in the first step torch finds out about buckets."""
    with tempfile.TemporaryDirectory(prefix="examples_test_") as folder:
        trace = pathlib.Path(folder, "trace.json")
        losses("train_ddp", "--procs", "2", "--trace", str(trace), steps=steps)
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("ph") == "X"]
    reductions = [(event["ts"], event["ts"] + event["dur"])
                  for event in events if event["name"] == "catenary:all_reduce"]
    functions = [event["ts"] for event in events
                 if event["name"].startswith("autograd::engine::evaluate_function")]
    overlapping = sum(any(begin < at < end for at in functions) for begin, end in reductions)
    if overlapping < steps // 2:
        raise AssertionError(f"only {overlapping} of {len(reductions)} all-reduces ran beside backward functions")


def main():
    began = time.monotonic()
    plain = losses("train_ddp", "--procs", "2")
    agree(plain, losses("pipeline", "--procs", "2"), 2e-3, "DDP and the pipeline")
    check_overlap()
    if "--few" not in sys.argv:
        agree(plain, losses("train_fsdp", "--procs", "2"), 2e-3, "DDP and FSDP2")
        losses("mixture_of_experts", "--procs", "2")
    if "--gloo" in sys.argv:
        for ranks in ("2", "4"):
            for dtype, within in (("float32", 2e-3), ("bfloat16", 3e-2)):
                options = ("--procs", ranks, "--dtype", dtype)
                for example in ("train_ddp", "train_fsdp"):
                    agree(losses(example, *options), losses(example, *options, "--backend", "gloo"),
                          within, f"{example} of {ranks} ranks on catenary and gloo, {dtype},")
    print(f"the examples train and agree: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
