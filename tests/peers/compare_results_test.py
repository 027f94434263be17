"""The driver of ./dev compare on canned output of workers: medians, ratios, who is absent, tables."""

import argparse
import csv
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"
sys.path.insert(0, str(SOURCES))
sys.dont_write_bytecode = True

import compare
import report
from implementations import catalogue, missing
from results import STARTUP, Results, Row, WorkerError, parse_report, spread

KINDS = {"limit-mapped": "limit", "limit-private": "limit", "catenary-mapped": "ours",
         "catenary-private": "ours", "openmpi": "peer", "mpich": "peer"}
SMALL = Row(2, "all_reduce", "float", 8, "loop")
LARGE = Row(2, "all_reduce", "float", 1 << 20, "loop")
FACTS = [("date", "today"), ("machine", "a & b"), ("cache line", "55 ns")]


def said(small, large):
    return (f"startup create {small * 1000}\nstartup first {small * 2000}\n"
            f"point all_reduce float 8 loop {small} {small * 5} {small * 0.1}\n"
            f"point all_reduce float {1 << 20} loop {large}\ndone\n")


def canned():
    """Three rounds on a machine that is half as fast in the second."""
    results = Results(KINDS)
    for number, slow in enumerate((1, 2, 1)):
        for name, small, large in (("limit-mapped", 0.1, 10), ("limit-private", 0.1, 40),
                                   ("catenary-mapped", 0.2, 20), ("catenary-private", 0.4, 80),
                                   ("openmpi", 0.5, 200), ("mpich", 0.3, 400)):
            results.add(name, number, parse_report(said(small * slow, large * slow), 2))
    return results


class ReportOfWorker(unittest.TestCase):
    def test_a_point_is_the_median_of_its_samples(self):
        results = Results(KINDS)
        results.add("openmpi", 4, parse_report(said(2, 30), 2))
        self.assertEqual(results.times(SMALL, "openmpi"), {4: 2})
        self.assertEqual(results.times(LARGE, "openmpi"), {4: 30})
        self.assertEqual(results.times(Row(2, STARTUP, "-", 0, "create"), "openmpi"), {4: 2000})

    def test_limits_and_unknown_types_are_told_apart(self):
        report_of = parse_report("ping_pong 55.5\ncopy 1024 10 20\nunknown all_reduce half\ndone\n", 4)
        self.assertEqual(report_of.ping_pong_ns, 55.5)
        self.assertEqual(report_of.copies, {1024: (10, 20)})
        self.assertEqual(report_of.unknown, {("all_reduce", "half")})
        self.assertEqual(report_of.samples, {})

    def test_what_no_worker_says_is_an_error(self):
        for text in ("point all_reduce float 8 loop\ndone\n",
                     "point all_reduce float 8 loop 1@\u00b5\ndone\n", "point all_reduce float x loop 1\ndone\n",
                     "hello\ndone\n", "startup create 1\n", ""):
            with self.subTest(text=text), self.assertRaises(WorkerError):
                parse_report(text, 2)


class Arithmetic(unittest.TestCase):
    def test_medians_and_quartiles(self):
        self.assertEqual(spread([7]), (7, 7, 7, 1))
        self.assertEqual(spread([5, 1, 3, 2, 4]), (3, 2, 4, 5))
        self.assertEqual(spread([1, 2]), (1.5, 1.25, 1.75, 2))

    def test_the_best_peer_is_that_of_the_row(self):
        results = canned()
        self.assertEqual(results.best_peer(SMALL), "mpich")
        self.assertEqual(results.best_peer(LARGE), "openmpi")
        self.assertIsNone(results.best_peer(LARGE._replace(ranks=4)))

    def test_who_is_far_behind_at_a_point(self):
        results = Results(KINDS)
        for name, loop, each in (("openmpi", 1, 1), ("mpich", 7, 6), ("catenary-mapped", 99, 99)):
            results.add(name, 0, parse_report(f"point reduce float 8 loop {loop}\n"
                                              f"point reduce float 8 each {each}\ndone\n", 4))
        behind = lambda name, factor, point="reduce/float/8", ranks=4: results.far_behind(
            name, point, ranks, factor)
        self.assertTrue(behind("mpich", 5))
        self.assertFalse(behind("mpich", 6.5))  # in one of the two loops only
        self.assertFalse(behind("openmpi", 5))
        self.assertFalse(behind("catenary-mapped", 5))  # is no peer
        self.assertFalse(behind("mpich", 5, point="reduce/float/16"))  # has had no turn
        self.assertFalse(behind("mpich", 5, ranks=2))

    def test_ratios_are_taken_within_a_round(self):
        ratio = canned().ratio(LARGE, "openmpi", "catenary-mapped")
        for value in (ratio.median, ratio.low, ratio.high):
            self.assertAlmostEqual(value, 10)
        results = Results(KINDS)
        results.add("openmpi", 0, parse_report(said(1, 100), 2))
        results.add("catenary-mapped", 1, parse_report(said(1, 10), 2))
        self.assertIsNone(results.ratio(LARGE, "openmpi", "catenary-mapped"))

    def test_each_is_seen_beside_the_limit_of_its_kind_of_memory(self):
        results = canned()
        self.assertAlmostEqual(results.share_of_limit(LARGE, "catenary-mapped"), 0.5)
        self.assertAlmostEqual(results.share_of_limit(LARGE, "catenary-private"), 0.5)
        self.assertAlmostEqual(results.share_of_limit(LARGE, "mpich"), 0.1)

    def test_a_limit_is_the_least_of_its_rounds(self):
        results = canned()
        results.add("limit-private", 3, parse_report(said(0.1, 16), 2))
        self.assertEqual(results.spread(LARGE, "limit-private").median, 16)
        self.assertAlmostEqual(results.share_of_limit(LARGE, "catenary-private"), 0.2)


class DistanceOfCores(unittest.TestCase):
    """A virtual machine's cores are nearer to each other at one time than at another."""

    def results(self, *rounds):
        results = Results(KINDS)
        for number, samples in enumerate(rounds):
            results.add("mpich", number, parse_report(f"point all_reduce float 8 loop {samples}\ndone\n", 2))
        return results

    def test_samples_while_they_were_as_mostly_count(self):
        results = self.results("1@30 9@160 2@25", "8@170 7@150", "3@55 2@12 4@29", "5@31 5@31")
        self.assertEqual(results.times(SMALL, "mpich"), {0: 1.5, 2: 3.5, 3: 5})
        self.assertEqual(results.unusual(), (4, 10))
        self.assertEqual(results.usual_lines(), [30, 25, 55, 29, 31, 31])

    def test_a_limit_is_that_of_such_times(self):
        results = self.results("5@30 5@30 5@31", "5@30")
        for number, sample in enumerate(("1@300", "4@31", "3@29")):
            results.add("limit-private", number, parse_report(f"point all_reduce float 8 loop {sample}\ndone\n", 2))
        self.assertEqual(results.spread(SMALL, "limit-private").median, 3)
        self.assertAlmostEqual(results.share_of_limit(SMALL, "mpich"), 0.6)

    def test_what_was_never_measured_so_counts_all_the_same(self):
        results = self.results("9@160 7@160")
        results.add("openmpi", 0, parse_report("point all_reduce float 8 loop 1@30 1@30 1@30\ndone\n", 2))
        self.assertEqual(results.times(SMALL, "mpich"), {0: 8})

    def beside(self, *rounds, mpich=1):
        """MPICH and a limit while the cores were near; Open MPI and ours as told by round: time, line."""
        results = self.results(*[f"{mpich}@30"] * 4)
        results.add("limit-mapped", 0, parse_report("point all_reduce float 8 loop 0.1@30\ndone\n", 2))
        for number, (time, line) in enumerate(rounds):
            for name, its in (("openmpi", time), ("catenary-mapped", 0.5)):
                results.add(name, number, parse_report(f"point all_reduce float 8 loop {its}@{line}\ndone\n", 2))
        return results

    def test_what_was_never_measured_so_is_odd_and_has_no_ratio(self):
        odd = self.beside((0.8, 160))
        self.assertTrue(odd.is_odd(SMALL, "openmpi"))
        self.assertFalse(odd.is_odd(SMALL, "mpich"))
        self.assertFalse(odd.is_odd(LARGE, "mpich"))
        self.assertEqual(odd.best_peer(SMALL), "openmpi")
        self.assertIsNone(odd.ratio(SMALL, "openmpi", "catenary-mapped"))
        self.assertIsNone(odd.share_of_limit(SMALL, "catenary-mapped"))
        self.assertIn("~0.80", report.tables(odd))
        self.assertIn(",odd\n2,", report.csv_text(odd, []).split("share_of_limit,odd\n", 1)[1])
        even = self.beside((8, 160), (0.6, 30))
        self.assertAlmostEqual(even.ratio(SMALL, "openmpi", "catenary-mapped").median, 1.2)
        self.assertAlmostEqual(even.share_of_limit(SMALL, "catenary-mapped"), 0.2)
        self.assertNotIn("odd", report.csv_text(even, []).split("share_of_limit,odd\n", 1)[1])
        self.assertIn(",openmpi,0.0002,", report.csv_text(self.beside((0.0001, 30)), []))

    def test_is_measured_again_until_there_are_ratios_enough(self):
        point = "all_reduce/float/8"
        self.assertTrue(self.beside((0.8, 160)).is_open(point, 2, 5, 1))
        self.assertFalse(self.beside((0.8, 30)).is_open(point, 2, 5, 1))
        self.assertTrue(self.beside((0.8, 30), (0.8, 160)).is_open(point, 2, 5, 2))
        self.assertFalse(self.beside((0.8, 30), (0.8, 160), (0.8, 30)).is_open(point, 2, 5, 2))

    def test_a_peer_is_not_far_behind_for_a_bad_hour(self):
        def slow(time):
            results = Results(KINDS)
            for mode in ("loop", "each"):
                for number in range(3):
                    text = f"point all_reduce float 8 {mode} %s\ndone\n"
                    results.add("mpich", number * 2 + (mode == "each"), parse_report(text % "1@30", 2))
                results.add("openmpi", 9 + (mode == "each"), parse_report(text % f"{time}@160", 2))
            return results.far_behind("openmpi", "all_reduce/float/8", 2, 5)
        self.assertFalse(slow(20))
        self.assertTrue(slow(90))

    def test_a_run_goes_on_with_what_is_open(self):
        """Ours is measured while the cores are far, until the fourth round."""
        asked = []

        def job(implementation, _ranks, points, *_):
            asked.append((implementation.name, points))
            mine = sum(name == implementation.name for name, _ in asked)
            far = implementation.name == "catenary-mapped" and mine < 4
            return "".join(f"point all_reduce float 8 {mode} 1@{160 if far else 30}\n"
                           for mode in ("loop", "each")) + "done\n"

        arguments = argparse.Namespace(memory=["mapped"], only=None, bin="", rounds=2, ranks=[2], ops=["all_reduce"],
                                       sizes=[8], types=["float"], samples=1, sample_us=1, job_seconds=1)
        with unittest.mock.patch.multiple(compare, run_job=job, missing=lambda *_: None, tell=lambda *_: None):
            run = compare.Comparison(arguments)
            run.present = [each for each in run.present if each.name in ("catenary-mapped", "openmpi", "mpich",
                                                                         "limit-mapped")]
            run.results.kinds = {each.name: each.kind for each in run.present}
            run.run()
        self.assertEqual(run.more_rounds, 2)
        self.assertEqual(sum(name == "catenary-mapped" for name, _ in asked), 4)
        self.assertEqual(sum(name == "limit-mapped" for name, _ in asked), 2)
        self.assertEqual({tuple(points) for _, points in asked}, {("all_reduce/float/8",)})
        self.assertFalse(run.open_points("all_reduce", 2))

    def test_more_rounds_do_not_change_what_is_usual(self):
        results = self.results("1@30", "1@30", "9@160")
        results.settle()
        for number in range(3, 9):
            results.add("mpich", number, parse_report("point all_reduce float 8 loop 9@160\ndone\n", 2))
        self.assertEqual(results.times(SMALL, "mpich"), {0: 1, 1: 1})

    def test_samples_that_say_nothing_of_it_count(self):
        self.assertEqual(self.results("1@30 9", "4").times(SMALL, "mpich"), {0: 5, 1: 4})


class Output(unittest.TestCase):
    def test_the_table_has_times_ratios_and_marks_the_best(self):
        text = report.tables(canned())
        line = next(line for line in text.splitlines() if "1 MB" in line)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        self.assertEqual(cells, ["1 MB", "10.0", "40.0", "20.0 (20.0-30.0)", "80.0 (80.0-120)", "200*",
                                 "400", "10.00 (10.00-10.00)", "50%", "2.50 (2.50-2.50)", "50%"])
        self.assertIn("communicator made", text)
        self.assertEqual(len({len(line) for line in text.split("\n\n")[1].splitlines()}), 1)

    def test_the_table_without_peers_has_no_ratios(self):
        results = Results({"catenary-mapped": "ours"})
        results.add("catenary-mapped", 0, parse_report(said(1, 10), 2))
        line = next(line for line in report.tables(results).splitlines() if "1 MB" in line)
        self.assertEqual([cell.strip() for cell in line.strip("|").split("|")],
                         ["1 MB", "10.0 (10.0-10.0)", "-", "-"])

    def test_the_summary_has_a_ratio_for_each_size_and_their_geometric_mean(self):
        lines = report.summary(canned()).splitlines()
        self.assertEqual(lines[0], "Best peer / catenary-mapped")
        cells = [cell.strip() for cell in lines[4].strip("|").split("|")]
        self.assertEqual(cells, ["all_reduce, float, 2 ranks, loop", "1.50", "10.00", "3.87"])
        self.assertEqual(lines[12], "Best peer / limit-mapped: what memory alone would allow")
        cells = [cell.strip() for cell in lines[16].strip("|").split("|")]
        self.assertEqual(cells, ["all_reduce, float, 2 ranks, loop", "3.00", "20.00", "7.75"])
        self.assertEqual(len([line for line in lines if line.startswith("Best peer")]), 4)

    def test_the_csv_has_a_line_for_each_row_and_implementation(self):
        text = report.csv_text(canned(), FACTS)
        self.assertTrue(text.startswith("# date: today\n"))
        lines = list(csv.DictReader(io.StringIO(
            "\n".join(line for line in text.splitlines() if not line.startswith("#")))))
        self.assertEqual(len(lines), 4 * len(KINDS))
        ours, = [line for line in lines if line["implementation"] == "catenary-mapped" and
                 line["bytes"] == str(1 << 20)]
        self.assertEqual((ours["median_us"], ours["quartile3_us"], ours["rounds"], ours["best_peer"],
                          ours["best_peer_over_this"], ours["share_of_limit"]),
                         ("20", "30", "3", "openmpi", "10", "0.5"))
        self.assertEqual(ours["algbw_GBs"], "52.43")

    def test_the_picture_is_well_formed_and_has_every_line(self):
        root = xml.etree.ElementTree.fromstring(report.svg_text(canned(), FACTS))
        lines = [element for element in root.iter() if element.tag.endswith("polyline")]
        self.assertEqual(len(lines), len(KINDS) - 1)  # all but the limit that they are measured in

    def test_times_keep_three_digits(self):
        self.assertEqual([report.time_text(time) for time in (0.123, 1.234, 12.34, 123.4, 1234.5)],
                         ["0.12", "1.23", "12.3", "123", "1234"])
        self.assertEqual([report.size_text(size) for size in (8, 1000, 1 << 10, 3 << 20)],
                         ["8 B", "1000 B", "1 KB", "3 MB"])


class WhoTakesPart(unittest.TestCase):
    def test_what_is_not_there_is_absent_with_its_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            for implementation in catalogue(["mapped"], None):
                self.assertIn(implementation.remedy, missing(implementation, folder))
            here = os.path.join(folder, "catenary_worker")
            with open(here, "w", encoding="utf-8"):
                os.chmod(here, 0o755)
            ours, = [each for each in catalogue(["mapped"], None) if each.kind == "ours"]
            self.assertIsNone(missing(ours, folder))

    def test_a_launcher_that_is_not_there_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            for each in catalogue(["mapped"], "/nowhere"):
                with open(os.path.join(folder, each.worker), "w", encoding="utf-8") as file:
                    os.chmod(file.name, 0o755)
            intel, = [each for each in catalogue(["mapped"], "/nowhere") if each.name == "intel-mpi"]
            self.assertIn("no /nowhere/bin/mpiexec", missing(intel, folder))

    def test_points_are_whole_elements_for_every_rank(self):
        arguments = compare.parse_arguments(["--types", "float,half", "--sizes", "8,1K"])
        self.assertEqual(compare.points_of(arguments, "all_reduce", 4, 2),
                         ["all_reduce/float/8", "all_reduce/float/1024", "all_reduce/half/8",
                          "all_reduce/half/1024"])
        self.assertEqual(compare.points_of(arguments, "all_gather", 2, 2),
                         ["all_gather/float/8", "all_gather/float/1024"])
        self.assertEqual(compare.points_of(arguments, "all_gather", 4, 2),
                         ["all_gather/float/1024"])
        self.assertEqual(compare.points_of(arguments, STARTUP, 2, 2), [])

    def test_where_ranks_outnumber_cores_sizes_end_earlier(self):
        arguments = compare.parse_arguments([])
        largest = [int(compare.points_of(arguments, "all_reduce", ranks, 2)[-1].split("/")[2])
                   for ranks in (2, 4)]
        self.assertEqual(largest, [256 << 20, 16 << 20])

    def test_arguments_that_mean_nothing_are_refused(self):
        for bad in (["--sizes", "8Q"], ["--ops", "scan"], ["--types", "int"], ["--rounds", "0"],
                    ["--memory", "shared"], ["--ranks", "0"]):
            with self.subTest(bad=bad), self.assertRaises(SystemExit), \
                    open(os.devnull, "w", encoding="utf-8") as nowhere:
                sys.stderr, kept = nowhere, sys.stderr
                try:
                    compare.parse_arguments(bad)
                finally:
                    sys.stderr = kept


if __name__ == "__main__":
    unittest.main(verbosity=2)
