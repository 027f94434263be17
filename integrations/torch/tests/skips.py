#!/usr/bin/env python3
"""Why tests of torch's suite are skipped, one by one: docs/torch/skips.md from the outcomes that
torch_suite.py leaves.

usage: skips.py OUTCOMES_2.json OUTCOMES_3.json ... > skips.md     (the number of ranks ends each name)

Exits with 1 if a test was skipped for a reason that nobody has judged yet.
"""
import collections
import json
import pathlib
import re
import sys

# What torch says, and what we say to it. The first that matches counts.
VERDICTS = [
    (r"world size of 4", "Need 4 ranks",
     "With 4 ranks they pass, or say that they need CUDA devices as well; then they are below, too."),
    (r"small world size", "Need 8 ranks",
     "By a rule of torch's that its authors call temporary. `./dev torch --world 8` runs them: all 24 "
     "pass on catenary, 21 on gloo, which lacks all_to_all."),
    (r"pytorch/pytorch/(issues|pull)/|flakiness", "Switched off in torch",
     "For every backend, by torch's developers, with the number of their issue or the word flaky."),
    (r"torchvision", "Needs torchvision",
     "It compares with a network of torchvision's, on CUDA devices."),
    (r"CUDA|GPU|NCCL|Nccl|'nccl'", "Are about CUDA devices",
     "They ask torch for CUDA devices before anything else, or try options that only NCCL's own backend has. Gloo "
     "skips them as well. Most have a twin on CPU tensors, without `_cuda` or `_nccl` in its name, which runs; "
     "coalescing, batches of sends and receives, and uneven parts are in our own `semantics_test.py`."),
]


def verdict_of(why):
    return next((title for pattern, title, _ in VERDICTS if re.search(pattern, why)), None)


def skipped_in(files):
    """{test: {what torch says: [numbers of ranks]}}"""
    skipped = collections.defaultdict(lambda: collections.defaultdict(list))
    for file in files:
        ranks = re.search(r"(\d+)\.json$", file)[1]
        for test, (outcome, why, _) in json.loads(pathlib.Path(file).read_text()).items():
            if outcome == "skip":
                skipped[test][why].append(ranks)
    return skipped


def lines_of(skipped):
    by_title = collections.defaultdict(list)
    for test, reasons in sorted(skipped.items()):
        for why, ranks in reasons.items():
            by_title[verdict_of(why)].append(f"| `{test}` | {', '.join(ranks)} | {why} |")
    yield "# What is skipped of torch's own suite, and why"
    yield ""
    yield "Every test that did not run on catenary with some number of ranks, with torch's reason; written by"
    yield "[skips.py](../../integrations/torch/tests/skips.py) from a run of `./dev torch`."
    for _, title, text in VERDICTS:
        if by_title[title]:
            yield f"\n## {title}\n\n{text}\n\n| Test | Ranks | Torch says |\n|---|---|---|"
            yield from by_title[title]


def main():
    skipped = skipped_in(sys.argv[1:])
    unjudged = sorted({why for reasons in skipped.values() for why in reasons if verdict_of(why) is None})
    for why in unjudged:
        print(f"skips.py: no verdict on the reason {why!r}", file=sys.stderr)
    print("\n".join(lines_of(skipped)))
    sys.exit(bool(unjudged))


if __name__ == "__main__":
    main()
