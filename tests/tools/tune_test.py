"""`catenary tune`: measures, keeps what it measured, and communicators read it or say why not.

usage: tune_test.py <catenary> <all_reduce_perf>
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest

CATENARY = ""
ALL_REDUCE_PERF = ""
TIMEOUT_S = 120


def run(program, *flags, before=None, **changes):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("CATENARY_", "NCCL_", "OMPI_", "PMI_", "PMIX_"))}
    environment.update(changes)
    return subprocess.run([program, *flags], env=environment, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False, preexec_fn=before)


def communicate(**changes):
    """What communicators of two ranks log while they choose an algorithm."""
    done = run(ALL_REDUCE_PERF, "--procs", "2", "-b", "64", "-e", "64", "-n", "1", "-w", "1",
               NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,TUNING", **changes)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout + done.stderr


class BusyCores:
    """Keeps every core busy that this process may run on, each by a process that stays there."""

    def __enter__(self):
        self.busy = [self.start(core) for core in os.sched_getaffinity(0)]
        for process in self.busy:
            process.stdout.readline()  # it has the core now
        self.begun = [self.taken_s(process) for process in self.busy]
        return self

    @staticmethod
    def start(core):
        # Not for ever, should this test be killed.
        program = ("import os, time\nend = time.monotonic() + 60\nos.write(1, b'here\\n')\n"
                   "while time.monotonic() < end: pass")
        return subprocess.Popen([sys.executable, "-S", "-c", program], stdout=subprocess.PIPE,
                                preexec_fn=lambda: os.sched_setaffinity(0, {core}))

    @staticmethod
    def taken_s(process):
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def describe(self, seconds):
        taken = [f"{self.taken_s(process) - begun:.2f}"
                 for process, begun in zip(self.busy, self.begun)]
        return f"within {seconds:.2f} s others took {' + '.join(taken)} s of processor\n"

    def __exit__(self, *_):
        for process in self.busy:
            process.kill()
            process.wait()
            process.stdout.close()


class TuneTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Measures this machine once for all that only need a tuning of it."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.measured = os.path.join(folder.name, "deep", "tuning")
        cls.done = run(CATENARY, "tune", "--quick", "--anyway", "--output", cls.measured)
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stdout + cls.done.stderr)
        with open(cls.measured, encoding="utf-8") as file:
            cls.tuning = file.read()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "deep", "tuning")
        self.cache = os.path.join(folder.name, "cache")

    def tune(self, *flags, **changes):
        done = run(CATENARY, "tune", "--quick", "--anyway", *flags, **changes)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def write(self, text):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w", encoding="latin-1") as file:
            file.write(text)

    def expect_refused(self, reason):
        log = communicate(CATENARY_TUNING_FILE=self.path)
        self.assertIn(f"the tuning in {self.path} is not used, but defaults: {reason}", log)
        self.assertIn("Algo", log)  # and all goes on

    def test_one_core_tells_nothing_of_messages(self):
        one = {min(os.sched_getaffinity(0))}
        done = run(CATENARY, "tune", "--quick", "--anyway", "--output", self.path,
                   before=lambda: os.sched_setaffinity(0, one))
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("tune needs two cores", done.stderr)
        self.assertNotIn("--help", done.stderr)
        self.assertFalse(os.path.exists(self.path))

    def test_what_it_measures_is_used(self):
        path = self.measured
        self.assertIn(f"written to {path}", self.done.stderr)
        self.assertIn("\nversion 3\nmachine ", self.tuning)
        self.assertRegex(self.tuning,
                         r"# Roughly measured while other programs took \d+ % of the cores; ")
        log = communicate(CATENARY_TUNING_FILE=path)
        self.assertIn(f"The parameters of the model of time are those of {path}", log)
        self.assertNotIn("not used", log)
        # What it prints, it also kept.
        printed = run(CATENARY, "tune", "--print", CATENARY_TUNING_FILE=path)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn(f"\n# those of {path}\n", printed.stdout)
        self.assertEqual([line for line in printed.stdout.splitlines() if line[0] != "#"],
                         [line for line in self.done.stdout.splitlines() if line[0] != "#"])
        self.assertEqual(os.listdir(os.path.dirname(path)), ["tuning"])

    def test_without_a_name_it_is_kept_where_communicators_look(self):
        self.tune(XDG_CACHE_HOME=self.cache)
        kept = os.listdir(os.path.join(self.cache, "catenary"))
        self.assertEqual(len(kept), 1)
        log = communicate(XDG_CACHE_HOME=self.cache)
        self.assertIn("are those of " + os.path.join(self.cache, "catenary", kept[0]), log)

    def test_a_dry_run_writes_nothing(self):
        self.tune("--dry-run", XDG_CACHE_HOME=self.cache)
        self.assertFalse(os.path.exists(self.cache))

    def test_a_busy_machine_replaces_nothing(self):
        self.write("what was there")
        with BusyCores() as busy:
            begin = time.monotonic()
            done = run(CATENARY, "tune", "--quick", "--output", self.path)
            said = busy.describe(time.monotonic() - begin)
        self.assertEqual(done.returncode, 1, said + done.stdout + done.stderr)
        self.assertIn(f"nothing is written to {self.path}", done.stderr)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "what was there")

    def test_defaults_are_called_so(self):
        printed = run(CATENARY, "tune", "--print", XDG_CACHE_HOME=self.cache)
        self.assertIn(f"\n# the defaults: `catenary tune` has not made {self.cache}", printed.stdout)
        self.assertIn("The parameters of the model of time are the defaults",
                      communicate(XDG_CACHE_HOME=self.cache))

    def test_a_number_that_is_no_good_is_told_with_its_flag(self):
        done = run(CATENARY, "tune", "--seconds", "0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('--seconds wants a whole number from 1 to 3600, not "0"', done.stderr)

    def test_an_option_that_would_be_without_effect_is_a_mistake(self):
        for words, *flags in [("--ranks is for --report", "--ranks", "2"),
                              ("--memory is for --report", "--quick", "--memory", "mapped"),
                              ("--output is not for --report", "--report", "--output", self.path),
                              ("--print goes with no other option", "--print", "--report")]:
            done = run(CATENARY, "tune", *flags, XDG_CACHE_HOME=self.cache)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words, done.stderr)
            self.assertFalse(os.path.exists(self.cache))

    def test_a_collective_that_is_not_reported_is_told_with_those_that_are(self):
        done = run(CATENARY, "tune", "--report", "--collectives", "Broadcast,Barrier")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('"Barrier" is none of those that are reported: AllReduce, ', done.stderr)

    def test_a_report_is_of_what_it_is_asked_for(self):
        done = run(CATENARY, "tune", "--report", "--ranks", "2", "--rounds", "4",
                   "--collectives", "reduce,gather,scatter")
        self.assertEqual(done.returncode, 0, done.stderr)
        points = [line.split() for line in done.stdout.splitlines() if line[0] != "#"]
        self.assertEqual({point[0] for point in points}, {"Reduce", "Gather", "Scatter"})
        self.assertEqual({point[1] for point in points}, {"2"})

    def test_garbage_is_refused(self):
        self.write("\x7fELF\x01\x02 no tuning at all\n")
        self.expect_refused('it does not begin with a version, but with "?ELF')

    def test_what_was_cut_short_is_refused(self):
        text = self.tuning
        self.write(text[:-3])
        self.expect_refused("its last line is cut off")
        self.write(text[:text.rindex("network_hop_ns")])
        self.expect_refused("parameters are missing")
        self.write("")
        self.expect_refused("it names no machine")

    def test_what_another_machine_measured_is_refused(self):
        self.write("version 3\nmachine an abacus\n")
        self.expect_refused('it is about another machine, "an abacus", and this is ')

    def test_a_file_that_is_not_there_is_missed_if_it_was_named(self):
        log = communicate(CATENARY_TUNING_FILE=self.path)
        self.assertIn(f"{self.path}, which CATENARY_TUNING_FILE names, does not exist", log)
        self.assertNotIn("does not exist", communicate(XDG_CACHE_HOME=self.cache))

    def test_samples_that_make_no_sense_are_refused(self):
        os.makedirs(self.cache)
        samples = os.path.join(self.cache, "samples")
        good = "processes AllReduce ring 2 1048576 65536 100.00 90.00 0.90\n"
        for bad, why in [("", "holds no measurements"),
                         ("garbage\n", "holds no measurements"),
                         (good + good.replace(" 65536 ", " 0 "), "this is no measurement"),
                         (good + good.replace(" 2 ", " 0 "), "this is no measurement"),
                         (good + good.replace(" 100.00 ", " 0 "), "this is no measurement"),
                         (good + good.replace(" 100.00 ", " -1 "), "this is no measurement")]:
            with open(samples, "w") as file:
                file.write(bad)
            done = run(CATENARY, "tune", "--from", samples, "--output", self.path)
            self.assertNotEqual(done.returncode, 0, bad)
            self.assertIn(why, done.stderr)
            self.assertFalse(os.path.exists(self.path), "something was written")
        with open(samples, "w") as file:
            file.write(good)
        self.assertEqual(run(CATENARY, "tune", "--from", samples, "--output", self.path).returncode, 0)

    def test_a_place_that_cannot_be_written_is_an_error(self):
        self.write("")
        done = run(CATENARY, "tune", "--quick", "--output", os.path.join(self.path, "below"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("below", done.stderr)


if __name__ == "__main__":
    CATENARY, ALL_REDUCE_PERF = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
