#!/usr/bin/env python3
"""Runs torch's own distributed test suite, which a torch wheel ships, on one backend.

usage: torch_suite.py --backend NAME --world N [--match REGEX] [--out FILE] [--times]

Prints one line a test that did not pass, and last how many passed, were skipped and failed; --out
writes every test's outcome as JSON. Exits with 1 if a test failed.

The suite knows backends by name, and asks for "gloo" where it means "communicates CPU tensors", and
for "mpi" where it means that and all_to_all. So that the same tests run, "catenary" is let through
wherever these would be: the name under test is a string that also equals "gloo" and "mpi", here and
in what dist.get_backend() returns; and "custom", as DDP's log calls every backend that torch does not
ship. Nothing else of the suite is changed. The ranks of a test are forked from this process, which has not used the backend.
"""
import argparse
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
import unittest

SUITE = "torch.testing._internal.distributed.distributed_test"
THE_NAME = 'BACKEND = os.environ["BACKEND"]\n'


class AsGloo(str):
    """A name that is also taken for "gloo", by comparison and in sets, and compares as others do."""

    def __eq__(self, other):
        return str.__eq__(self, other) or other in ("gloo", "mpi", "custom")

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash("gloo")


def pass_for_gloo(name):
    """Makes torch.distributed say AsGloo(name) where it says `name`."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    original = distributed_c10d.get_backend

    def get_backend(group=None):
        found = original(group)
        return AsGloo(found) if found == name else found

    distributed_c10d.get_backend = dist.get_backend = get_backend


def import_suite(backend):
    """The suite's module, with BACKEND as it is to be."""
    spec = importlib.util.find_spec(SUITE)
    with open(spec.origin) as file:
        source = file.read()
    if source.count(THE_NAME) != 1:
        sys.exit(f"{spec.origin}: not the suite that this runner knows")
    module = importlib.util.module_from_spec(spec)
    sys.modules[SUITE] = module
    module.RUNNER_BACKEND = backend if backend == "gloo" else AsGloo(backend)
    source = source.replace(THE_NAME, "BACKEND = RUNNER_BACKEND\n")
    exec(compile(source, spec.origin, "exec"), module.__dict__)
    return module


def test_class(suite):
    import torch

    class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return Suite


class Outcomes(unittest.TestResult):
    """One outcome a test: ["pass" | "skip" | "fail", why, seconds]."""

    def __init__(self):
        super().__init__()
        self.of = {}

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def _note(self, test, outcome, why=""):
        name = test.id().split(".")[-1]
        self.of[name] = [outcome, why, round(time.monotonic() - self.began, 2)]
        if outcome == "fail":
            print(f"FAIL {name}\n{why}", flush=True)

    def addSuccess(self, test):
        self._note(test, "pass")

    def addSkip(self, test, reason):
        self._note(test, "skip", reason)

    def addFailure(self, test, err):
        self._note(test, "fail", self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--backend", default="catenary")
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--match", default="", help="only tests whose name matches, or that the "
                        "file after an @ lists")
    parser.add_argument("--out", help="write outcomes as JSON to this file")
    parser.add_argument("--times", action="store_true", help="print the slowest tests")
    return parser.parse_args()


def chosen_by(match, suite):
    """Those of the suite that --match means."""
    named = {test.id().split(".")[-1]: test for test in suite}
    if not match.startswith("@"):
        return [test for name, test in named.items() if re.search(match, name)]
    with open(match[1:]) as file:
        wanted = [line for line in file.read().split("\n") if line and not line.startswith("#")]
    missing = [name for name in wanted if name not in named]
    if missing:
        sys.exit(f"{match[1:]}: not in torch's suite: {', '.join(missing)}")
    return [named[name] for name in wanted]


def main():
    options = parse()
    scratch = tempfile.TemporaryDirectory(prefix="torch_suite_")
    os.environ.update(
        BACKEND=options.backend, WORLD_SIZE=str(options.world), TEMP_DIR=scratch.name,
        INIT_METHOD=f"file://{scratch.name}/shared_init_file", OMP_NUM_THREADS="1",
        PYTORCH_TEST_WITH_SLOW=os.environ.get("PYTORCH_TEST_WITH_SLOW", "0"))
    import torch.testing._internal.common_distributed as common

    if options.backend != "gloo":
        import torch_catenary  # noqa: F401

        common.DistTestCases.backend_feature["plugin"].add(options.backend)
        pass_for_gloo(options.backend)
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(test_class(import_suite(options.backend)))
    outcomes = Outcomes()
    unittest.TestSuite(chosen_by(options.match, tests)).run(outcomes)
    if options.out:
        with open(options.out, "w") as file:
            json.dump(outcomes.of, file, indent=1, sort_keys=True)
    if options.times:
        for name, (_, _, seconds) in sorted(outcomes.of.items(), key=lambda item: -item[1][2])[:20]:
            print(f"{seconds:7.2f} s  {name}")
    count = {kind: sum(outcome[0] == kind for outcome in outcomes.of.values())
             for kind in ("pass", "skip", "fail")}
    print(f"torch's suite, {options.backend}, {options.world} ranks: {count['pass']} passed, "
          f"{count['skip']} skipped, {count['fail']} failed")
    sys.exit(1 if count["fail"] or not count["pass"] else 0)


if __name__ == "__main__":
    main()
