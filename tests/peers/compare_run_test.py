"""./dev compare in small, with the workers of this build: what it writes is whole, what fails is told,
nothing is left running. Times are never judged.

usage: compare_run_test.py <folder of the workers> <the worker that is wrong>
"""

import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

DRIVER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers" / "compare.py"
WORKERS = WRONG_WORKER = ""
TIMEOUT_S = 200
FAST = ["--rounds", "2", "--samples", "1", "--sample-us", "100", "--job-seconds", "60"]
OPERATIONS = {"all_reduce", "reduce_scatter", "all_gather", "alltoall", "broadcast", "reduce",
              "sendrecv"}


def installed_mpi():
    """The MPIs that the build found: packages.txt has Open MPI, so that one is there."""
    return [name for name in ("openmpi", "mpich")
            if os.access(os.path.join(WORKERS, f"mpi_worker_{name}"), os.X_OK)]


class CompareRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="compare-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_driver(self, *flags, workers=None):
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("OMPI_", "PMI_", "PMIX_"))}
        kept["ASAN_OPTIONS"] = "detect_leaks=0"  # MPI's own memory is nothing for us to judge
        return subprocess.run(
            [sys.executable, "-B", DRIVER, *FAST, "--bin", workers or WORKERS, "--out", self.folder,
             *flags], env=kept, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    def written(self, ending):
        file, = pathlib.Path(self.folder).glob(f"*.{ending}")
        return file.read_text(encoding="utf-8")

    def lines(self):
        return list(csv.DictReader(line for line in self.written("csv").splitlines()
                                   if not line.startswith("#")))

    def test_ours_and_an_mpi_side_by_side(self):
        mpi = installed_mpi()[0]
        done = self.run_driver("--ranks", "2,3", "--sizes", "24,12K", "--only", "limit-mapped,"
                               f"limit-private,catenary-mapped,catenary-private,{mpi}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = {(line["implementation"], line["ranks"], line["bytes"], line["mode"])
                 for line in self.lines() if line["operation"] == "all_reduce"}
        for name in ("catenary-mapped", "catenary-private", mpi):
            for ranks in ("2", "3"):
                for size in ("24", str(12 << 10)):
                    for mode in ("loop", "each"):
                        self.assertIn((name, ranks, size, mode), found)
        compared = 0
        for line in self.lines():
            # Two, fewer where cores were seldom alike, and up to four more for that.
            self.assertIn(int(line["rounds"]), range(1, 7))
            if line["kind"] == "ours" and line["best_peer"]:
                compared += 1
                self.assertEqual(line["best_peer"], mpi)
                self.assertGreater(float(line["best_peer_over_this"]), 0)
            if line["share_of_limit"]:
                self.assertGreater(float(line["share_of_limit"]), 0)
        self.assertGreaterEqual(compared, 8)  # of startup at the least
        self.assertIn("communicator made", self.written("md"))
        self.assertTrue(self.written("svg").startswith("<svg"))

    def test_every_operation_of_ours_and_of_the_limits(self):
        done = self.run_driver("--ranks", "2,3", "--sizes", "96K", "--ops", "all", "--types",
                               "float,half,bfloat16", "--rounds", "1", "--only",
                               "limit-private,limit-mapped,catenary-mapped,catenary-private")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("limit-private", "limit-mapped", "catenary-mapped", "catenary-private"):
            for ranks in ("2", "3"):
                mine = [line for line in self.lines()
                        if line["implementation"] == name and line["ranks"] == ranks]
                self.assertLessEqual(OPERATIONS, {line["operation"] for line in mine})
                self.assertEqual({line["type"] for line in mine if line["operation"] == "all_reduce"},
                                 {"float", "half", "bfloat16"})

    def test_a_peer_that_fails_or_hangs_is_told_and_the_others_go_on(self):
        workers = os.path.join(self.folder, "workers")
        os.mkdir(workers)
        os.symlink(os.path.join(WORKERS, "catenary_worker"), os.path.join(workers, "catenary_worker"))
        script = os.path.join(workers, "gloo_worker")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ncase \"$*\" in\n*halving*) exec sleep 1000;;\nesac\n"
                       "echo 'no network' >&2\nexit 3\n")
        os.chmod(script, 0o755)
        done = self.run_driver("--ranks", "2", "--sizes", "8", "--job-seconds", "5", "--only",
                               "catenary-mapped,gloo,gloo-halving,mpich", workers=workers)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("mpich is absent", done.stdout)
        self.assertIn("gloo failed: status 3: no network", done.stdout)
        self.assertIn("gloo-halving failed: not done after 5 s", done.stdout)
        self.assertEqual({line["implementation"] for line in self.lines()}, {"catenary-mapped"})

    def test_wrong_results_are_noticed_in_every_operation(self):
        for operation in sorted(OPERATIONS):
            for kind in ("float", "half", "bfloat16"):
                with self.subTest(operation=operation, kind=kind), \
                        tempfile.NamedTemporaryFile() as meet:
                    os.truncate(meet.name, 1 << 16)
                    workers = [subprocess.Popen(
                        [WRONG_WORKER, "--meet", meet.name, "--ranks", "2", "--rank", str(rank),
                         "--sample-us", "100", f"{operation}/{kind}/1024"], text=True,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for rank in range(2)]
                    said = [worker.communicate(timeout=TIMEOUT_S)[1] for worker in workers]
                    self.assertNotEqual([worker.returncode for worker in workers], [0, 0])
                    self.assertIn(f"wrong result of {operation}", "".join(said))

    def test_when_ours_fails_so_does_the_run(self):
        workers = os.path.join(self.folder, "workers")
        os.mkdir(workers)
        script = os.path.join(workers, "catenary_worker")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 1\n")
        os.chmod(script, 0o755)
        done = self.run_driver("--ranks", "2", "--sizes", "8", "--only", "catenary-mapped",
                               workers=workers)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    WORKERS, WRONG_WORKER = map(os.path.abspath, [sys.argv.pop(1), sys.argv.pop(1)])
    unittest.main(verbosity=2)
