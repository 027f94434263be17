"""The `catenary` command: what `verify` says of what it cannot prove, what `draw` takes for granted,
and what `estimate` expects.

usage: command_test.py <catenary>
"""

import os
import re
import subprocess
import sys
import unittest

CATENARY = ""
TIMEOUT_S = 60


def verify(*arguments):
    return run("verify", *arguments)


def run(*arguments):
    return subprocess.run([CATENARY, *arguments], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)


class UsageTest(unittest.TestCase):
    def expect_refused(self, words, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"catenary {arguments[0]}: {words}", done.stderr)
        self.assertIn(f"catenary {arguments[0]} --help tells its options", done.stderr)

    def test_every_verb_refuses_alike_what_it_does_not_know(self):
        verbs = ["draw", "estimate", "export", "list", "networks", "tune", "verify"]
        told = run("--help").stdout
        for verb in verbs:
            self.assertIn(f"\n  {verb} ", told)
            self.expect_refused("there is no option --rnks", verb, "--rnks", "4")
            self.expect_refused("there is no option -Z", verb, "-Z")
            self.expect_refused("there is no option -n", verb, "-n", "4")
            self.expect_refused("there is no option -n", verb, "-n4")
            done = run(verb, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith(f"usage: catenary {verb}"))
        self.assertEqual(told.count("\n  "), len(verbs))

    def test_words_that_nothing_is_done_with_are_named(self):
        for arguments in [("draw", "AllReduce", "ring"), ("export", "AllReduce", "ring"),
                          ("list", "AllReduce"),
                          ("networks",), ("tune",), ("verify", "AllReduce", "ring"),
                          ("estimate", "AllReduce")]:
            self.expect_refused('there is nothing to do with "extra"', *arguments, "extra")

    def test_values_are_wanted_where_they_belong(self):
        for verb in ("draw", "estimate", "export", "tune", "verify"):
            self.expect_refused("--ranks wants a value", verb, "--ranks")
            self.expect_refused("--ranks wants a whole number from", verb, "--ranks", "4x")
        self.expect_refused("--all=yes: this option takes no value", "verify", "--all=yes")
        self.expect_refused("there is no option -j", "verify", "AllReduce", "-vj4")
        self.expect_refused("--r is short for several options", "verify", "--r", "4", "--all")
        self.expect_refused("there is no option --rnks=4", "verify", "--rnks=4")
        self.expect_refused('--ranks wants a whole number from 1 to 65536, not "3-"', "verify",
                            "--all", "--ranks", "3-")
        self.expect_refused("--ranks: 9 to 3 are none", "verify", "--all", "--ranks", "9-3")
        self.expect_refused('there is no collective "foo"', "draw", "foo", "ring")


class EstimateTest(unittest.TestCase):
    def rows(self, *arguments):
        done = run("estimate", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]

    def test_every_size_has_a_time_and_an_algorithm(self):
        rows = self.rows("all_reduce", "--ranks", "64", "--defaults", "--sizes", "8,64K,1M")
        self.assertEqual([row[0] for row in rows], ["8", "65536", "1048576"])
        times = [float(row[1]) for row in rows]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)

    def test_a_network_costs_and_so_does_what_is_set(self):
        near, = self.rows("AllGather", "--ranks", "16", "--defaults", "--sizes", "1K")
        far, = self.rows("AllGather", "--ranks", "16", "--box", "4", "--defaults", "--sizes", "1K")
        slow, = self.rows("AllGather", "--ranks", "16", "--defaults", "--sizes", "1K",
                          "--set", "processes_hop_ns=100000")
        self.assertGreater(float(far[1]), float(near[1]))
        self.assertGreater(float(slow[1]), float(near[1]) + 50)

    # Whose buffers may be read in place, the model does not know.
    def test_a_choice_that_is_not_the_fastest_is_explained(self):
        crowd = ["all_reduce", "--ranks", "8", "--cores", "2", "--defaults", "--next", "9"]
        for size, is_slower in [("8", False), ("2M", True)]:
            done = run("estimate", *crowd, "--sizes", size)
            row, = [line for line in done.stdout.splitlines() if not line.startswith("#")]
            others = [float(word.rstrip(",")) for word in row.split()[5::2]]
            self.assertEqual(min(others) < float(row.split()[1]), is_slower, row)
            self.assertEqual("is preferred" in done.stdout, is_slower, done.stdout)

    def test_a_name_that_the_collective_lacks_is_told(self):
        for collective, is_told in [("AllReduce", True), ("AlltoAll", False)]:
            done = subprocess.run([CATENARY, "estimate", collective, "--ranks", "4"], check=True,
                                  capture_output=True, text=True, timeout=TIMEOUT_S,
                                  env={**os.environ, "CATENARY_ALGO": "pairwise"})
            self.assertEqual("CATENARY_ALGO=pairwise has no effect on" in done.stdout, is_told)

    def test_an_algorithm_that_does_not_run_there_is_told(self):
        for box, is_told in [("8", True), ("4", False)]:
            done = subprocess.run([CATENARY, "estimate", "AllReduce", "--ranks", "8", "--box", box],
                                  check=True, capture_output=True, text=True, timeout=TIMEOUT_S,
                                  env={**os.environ, "CATENARY_ALGO": "hier_direct_ring"})
            self.assertEqual("CATENARY_ALGO=hier_direct_ring has no effect" in done.stdout, is_told)

    def test_rules_that_leave_nothing_are_told(self):
        done = subprocess.run([CATENARY, "estimate", "AllReduce", "--ranks", "4"], check=False,
                              capture_output=True, text=True, timeout=TIMEOUT_S,
                              env={**os.environ, "NCCL_ALGO": "nvls"})
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("NCCL_ALGO", done.stderr)

    def test_what_cannot_be_is_refused_with_a_reason(self):
        for words, *arguments in [
                ("--ranks", "AllReduce"),
                ("do not divide", "AllReduce", "--ranks", "8", "--box", "3"),
                ("is no size", "AllReduce", "--ranks", "8", "--sizes", "8,1X"),
                ("changes no parameter", "AllReduce", "--ranks", "8", "--set", "hop=1"),
                ("is from", "AllReduce", "--ranks", "8", "--set", "step_ns=fast"),
                ("has no choice of its own", "Send", "--ranks", "2")]:
            done = run("estimate", *arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stdout, "")


class VerifyTest(unittest.TestCase):
    def expect_refused(self, words, *arguments):
        done = verify(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_an_algorithm_without_a_case_is_not_proved(self):
        done = verify("AllReduce", "--ranks", "7")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in done.stdout.splitlines() if line.startswith("AllReduce")]
        proved = [row for row in rows if row.endswith("proved")]
        without = [row for row in rows if row.endswith("no such case")]
        self.assertEqual(len(proved) + len(without), len(rows))
        self.assertTrue(any(" ring " in row for row in proved))
        self.assertTrue(without and all(" hier" in row for row in without), without)
        self.assertIn(f"\n{len(proved)} algorithms proved in ", done.stdout)
        self.assertIn(f"\n{len(without)} have no case among those asked for", done.stdout)

    def test_rows_are_the_same_with_more_jobs(self):
        def rows(*jobs):
            done = verify("--all", "--ranks", "9", *jobs)
            self.assertEqual(done.returncode, 0, done.stderr)
            # Without the seconds, which stand before the last word.
            return [" ".join(line.split()[:-2] + line.split()[-1:])
                    for line in done.stdout.splitlines() if line.endswith("proved")]
        self.assertGreater(len(rows()), 100)
        self.assertEqual(rows("--jobs", "1"), rows("--jobs", "7"))
        self.expect_refused("--jobs wants a whole number from 1 to 64", "--all", "--jobs", "0")

    def test_nothing_to_prove_is_no_success(self):
        done = verify("AllReduce", "ring", "--ranks", "4", "--box", "3")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("nothing was proved", done.stderr)

    def test_what_runs_anothers_algorithms_is_proved_with_them(self):
        for form, twin, names in [("AllGatherv", "AllGather", ["ring", "direct"]),
                                  ("AlltoAllv", "AlltoAll", ["pairwise", "direct"]),
                                  ("Barrier", "AllReduce", ["one_shot", "recursive_doubling"])]:
            done = verify(form, "--ranks", "5")
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = [line.split() for line in done.stdout.splitlines()]
            self.assertEqual([row[1] for row in rows if row[:1] == [twin]], names)
            forms = [row for row in rows if row[:1] == [form]]
            self.assertEqual([row[1] for row in forms], names)
            for row in forms:
                self.assertEqual(row[2:5], ["proved", "with", twin + ":"])

    def test_what_is_not_known_is_named(self):
        self.expect_refused('there is no collective "Foo"', "Foo")
        self.expect_refused("from 130 to 200 is in the sample", "bcast", "--ranks", "130-200")
        self.expect_refused('there is no algorithm "oak" of AllReduce', "AllReduce", "oak")
        self.expect_refused('there is no algorithm "pat" of AllGatherv', "AllGatherv", "pat")
        self.expect_refused("--root 7 is none of 4 ranks", "bcast", "--ranks", "4", "--root", "7")

        self.expect_refused("AllReduce has no root", "AllReduce", "--ranks", "4", "--root", "2")

    def test_usage_names_the_sample(self):
        done = verify("Broadcast", "chain", "--ranks", "65-5000", "--root", "0")
        found = re.search(r"above 64 ranks of the sample: ([\d, ]+) \(", done.stdout)
        sample = re.findall(r"\d+", found[1])
        told = re.search(r"above, a sample: (.*) ranks\.", verify("--help").stdout)[1]
        self.assertEqual(re.findall(r"\d+", told), sample)

    def test_all_numbers_are_claimed_only_from_one_on(self):
        for ranks, all_to in [("1-5", "5"), ("5", "-"), ("3-5", "-")]:
            done = verify("Broadcast", "chain", "--ranks", ranks)
            row = next(line for line in done.stdout.splitlines() if line.endswith("proved"))
            self.assertEqual(row.split()[3:5], [all_to, "5"])

    def test_usage_comes_with_a_reason(self):
        self.expect_refused("name a collective, or give --all")
        self.expect_refused("--all needs no collective", "--all", "AllReduce")
        self.expect_refused('there is nothing to do with "3"', "AllReduce", "ring", "3")

    def test_help_is_an_answer(self):
        done = verify("--help")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("usage: catenary verify"))


class DrawTest(unittest.TestCase):
    def draw(self, *arguments):
        done = run("draw", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_barrier_has_no_data(self):
        picture = self.draw("Barrier", "one_shot", "--ranks", "4")
        self.assertIn("16 messages without data", picture)
        self.assertNotIn("× the data", picture)

    def test_a_send_goes_to_another_rank_unless_told_otherwise(self):
        for collective in ("Send", "Recv"):
            picture = self.draw(collective, "direct", "--ranks", "4")
            self.assertIn("from 0 to 1<", picture)
            self.assertIn("a rank sends up to 1 × the data", picture)
        self.assertIn("from 0 to 2<", self.draw("Send", "direct", "--ranks", "4", "--root", "2"))
        to_itself = self.draw("Send", "direct", "--ranks", "4", "--root", "0")
        self.assertIn("1 message of all the data, to the sender itself", to_itself)

    def test_what_was_asked_for_is_named(self):
        self.assertIn(">ring AllGatherv, 4 ranks<", self.draw("AllGatherv", "ring", "--ranks", "4"))
        done = run("export", "AlltoAllv", "direct", "--ranks", "4", "--format", "msccl")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("MSCCL does not know the collective AlltoAllv", done.stderr)

    def test_pairs_are_drawn_for_several_machines_unless_told_otherwise(self):
        for ranks, box in [(4, 2), (6, 3), (8, 4), (16, 4)]:
            picture = self.draw("AllReduce", "hier_direct_ring", "--ranks", str(ranks))
            self.assertIn(f"boxes of {box}", picture)
        done = run("draw", "AllReduce", "hier_direct_ring", "--ranks", "7")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("runs on several boxes of several ranks each (--box)", done.stderr)

    def test_many_steps_are_drawn_by_runs(self):
        picture = self.draw("AlltoAll", "bruck", "--ranks", "16")
        self.assertIn("9 units of time, one for a run of steps", picture)
        self.assertIn("12 units of time; ", self.draw("AlltoAll", "bruck", "--ranks", "4"))
        whole = self.draw("AlltoAll", "bruck", "--ranks", "16", "--whole")
        self.assertIn("80 units of time; ", whole)
        self.assertNotIn("class=\"break\"", whole)

    def test_who_draws_a_large_picture_is_told(self):
        done = run("draw", "AllReduce", "ring", "--ranks", "128", "--out", os.devnull)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"a picture of 1\d MB, .* --units A-B draws less of it\n$")
        self.assertEqual(run("draw", "AllReduce", "ring", "--ranks", "16").stderr, "")

    def test_some_units_are_drawn_alone(self):
        tree = ("AllReduce", "hier_double_tree_ring", "--ranks", "16")
        some = self.draw(*tree, "--units", "10-12")
        for drawn in (">10<", ">12<", ">1–9<", ">13–156<", "units 13 to 156: not asked for"):
            self.assertIn(drawn, some)
        self.assertEqual(self.draw(*tree, "--units", "156-1000"),
                         self.draw(*tree, "--units", "156"))
        for units, words in [("157", "time ends at 156"), ("9-3", "9 to 3 are none"),
                             ("0-3", "wants a whole number")]:
            done = run("draw", *tree, "--units", units)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)
        for option in (("--units", "3"), ("--whole",)):
            done = run("export", *tree, "--format", "chrome", *option)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("--units and --whole are for catenary draw", done.stderr)

    def test_breaks_cover_nothing(self):
        for arguments in (("Broadcast", "chain", "--ranks", "8", "--units", "2-3"),
                          ("AllReduce", "ring", "--ranks", "32", "--units", "5-5"),
                          ("AllReduce", "hier_double_tree_ring", "--ranks", "16")):
            picture = self.draw(*arguments)
            edges = {name: [(float(x), float(x) + float(width)) for x, width in re.findall(
                         rf'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="[\d.]+" class="{name}"',
                         picture)] for name in ("break", "tiles")}
            self.assertTrue(edges["break"] and edges["tiles"], arguments)
            # The last is a sample in the legend.
            for left, right in edges["break"][:-1]:
                for first, last in edges["tiles"]:
                    self.assertTrue(right <= first or last <= left, arguments)

    def test_list_names_one_collective(self):
        self.assertEqual(run("list", "all_gather").stdout.splitlines()[0].split()[0], "AllGather")
        self.assertNotIn("AllReduce", run("list", "all_gather").stdout)


if __name__ == "__main__":
    CATENARY = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
