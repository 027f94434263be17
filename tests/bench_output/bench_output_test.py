"""The bandwidth tools, run as programs: columns by position, JSON keys, exit status.

usage: bench_output_test.py <folder of the tools>
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = ""
TIMEOUT_S = 60

# First and last column of each field, from 0, as scripts written for nccl-tests cut them out.
LEFT = {"size": (0, 12), "count": (14, 26), "type": (28, 36), "redop": (38, 44), "root": (46, 52)}
SIDE = {"time": (2, 9), "algbw": (11, 17), "busbw": (19, 25), "wrong": (27, 33)}
SIDE_WIDTH = 33
ITERATION_WIDTH = 4 * 9

CONFIG_KEYS = {
    "nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "warmup_iters", "iterations",
    "aggregated_iterations", "validation", "graph", "blocking_collectives", "per_iter_timing",
    "per_iter_skip", "parallel_init", "memory", "devices"}
DEVICE_KEYS = {"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"}
RESULT_KEYS = {"size", "count", "type", "redop", "root", "out_of_place", "in_place",
               "actual_iterations", "experiment_name"}
ITERATION_KEYS = {"skipped_iterations", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us",
                  "stdev_us", "cv_pct", "times_us", "per_process_max_times_us"}


def environment(**changes):
    """Ours, without what would make a tool believe in a launcher or in other settings."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("OMPI_", "PMI_", "PMIX_", "NCCL_TESTS_", "SLURM_", "MASTER_"))
            and key not in ("RANK", "WORLD_SIZE", "NCCL_COMM_ID")}
    kept.update(changes)
    return kept


def run(tool, *flags, **changes):
    return subprocess.run([os.path.join(TOOLS, tool), *flags], env=environment(**changes),
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def rows(output):
    return [line for line in output.splitlines() if line and not line.startswith("#")]


def cut(line, fields, start=0):
    return {name: line[start + first:start + last].strip()
            for name, (first, last) in fields.items()}


def out_of_place(line):
    return cut(line, SIDE, 52)


def in_place(line, width=SIDE_WIDTH):
    return cut(line, SIDE, 52 + width)


class TableTest(unittest.TestCase):
    def test_columns_are_where_scripts_look_for_them(self):
        done = run("all_reduce_perf", "-g", "2", "-b", "8", "-e", "2K", "-f", "4", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = rows(done.stdout)
        self.assertEqual([int(cut(line, LEFT)["size"]) for line in lines], [8, 32, 128, 512, 2048])
        for line in lines:
            self.assertEqual(len(line), 52 + 2 * SIDE_WIDTH)
            left = cut(line, LEFT)
            self.assertEqual(int(left["count"]) * 4, int(left["size"]))
            self.assertEqual((left["type"], left["redop"], left["root"]), ("float", "sum", "-1"))
            for side in (out_of_place(line), in_place(line)):
                self.assertGreater(float(side["time"]), 0)
                self.assertGreaterEqual(float(side["algbw"]), 0)
                # 2(n-1)/n is 1 for two ranks.
                self.assertEqual(side["algbw"], side["busbw"])
                self.assertEqual(side["wrong"], "0")

    def test_head_and_tail_are_comments_with_known_words(self):
        done = run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2")
        text = done.stdout
        self.assertRegex(text, r"nccl-tests version \S+ nccl-headers=\d+ nccl-library=\d+\n")
        self.assertRegex(text, r"(?m)^# Collective test starting: all_reduce_perf$")
        self.assertRegex(text, r"(?m)^# nThread 1 nGpus 2 minBytes 1024 maxBytes 1024 step: ")
        self.assertRegex(text, r"(?m)^#  Rank  1 Group  0 Pid +\d+ on +\S+ device  1 \[\S+\] \S+")
        self.assertRegex(text, r"(?m)^# Out of bounds values : 0 OK$")
        self.assertRegex(text, r"(?m)^# Avg bus bandwidth    : [\d.e+-]+ $")
        self.assertRegex(text, r"(?m)^# Collective test concluded: all_reduce_perf$")

    def test_unchecked_results_are_marked(self):
        done = run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2", "-c", "0")
        line, = rows(done.stdout)
        self.assertEqual(out_of_place(line)["wrong"], "N/A")
        self.assertEqual(in_place(line)["wrong"], "N/A")

    def test_send_and_receive_are_not_judged_in_place(self):
        done = run("sendrecv_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        line, = rows(done.stdout)
        self.assertEqual(cut(line, LEFT)["redop"], "none")
        self.assertEqual(out_of_place(line)["wrong"], "0")
        self.assertEqual(in_place(line)["wrong"], "N/A")

    def test_iteration_times_and_time_of_day_add_columns(self):
        done = run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "4", "-I", "1",
                   "-S", "1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        line, = rows(done.stdout)
        width = SIDE_WIDTH + ITERATION_WIDTH
        self.assertEqual(len(line), 52 + 2 * width + 21)
        self.assertEqual(in_place(line, width)["wrong"], "0")
        least, most, high, _ = line[52 + SIDE_WIDTH:52 + width].split()
        self.assertLessEqual(float(least), float(most))
        self.assertEqual(float(high), float(most))
        time.strptime(line[-19:], "%Y-%m-%d %H:%M:%S")

    def test_gathering_sizes_are_whole_shares(self):
        done = run("all_gather_perf", "-g", "3", "-b", "100", "-e", "100", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        left = cut(rows(done.stdout)[0], LEFT)
        self.assertEqual((left["count"], left["size"]), ("8", "96"))


class VerdictTest(unittest.TestCase):
    def test_every_damaged_result_is_noticed(self):
        for tool in ("all_reduce_perf", "sendrecv_perf", "reduce_scatter_perf"):
            with self.subTest(tool=tool):
                done = run(tool, "-g", "2", "-b", "64", "-e", "64K", "-f", "32", "-n", "1",
                           "--spoil_results")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                for line in rows(done.stdout):
                    self.assertGreater(int(out_of_place(line)["wrong"]), 0)
                    self.assertNotEqual(in_place(line)["wrong"], "0")
                self.assertIn("instead of", done.stderr)
                self.assertRegex(done.stdout, r"Out of bounds values : \d+ FAILED")

    def test_damage_of_averages_is_noticed_in_spite_of_their_tolerance(self):
        done = run("all_reduce_perf", "-g", "3", "-b", "1K", "-e", "1K", "-n", "1", "-o", "avg",
                   "-d", "all", "--spoil_results")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(len(rows(done.stdout)), 12)

    def test_too_little_bandwidth_is_a_failure(self):
        done = run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2",
                   NCCL_TESTS_MIN_BW="1e9")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"Avg bus bandwidth    : \S+ FAILED")

    def test_flags_that_are_unknown_or_cannot_work_are_refused(self):
        for flags, words in ((["--no-such-flag"], "unknown flag"), (["-G", "1"], "cannot work"),
                             (["-D", "1"], "cannot work"), (["-d", "int7"], "no such data type"),
                             (["-b", "8", "-e", "1Q"], "expected bytes"), (["-r", "7"], "root")):
            with self.subTest(flags=flags):
                done = run("all_reduce_perf", *flags)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
                self.assertRegex(done.stderr, r"\ntry \S+all_reduce_perf --help\n$")
                self.assertEqual(rows(done.stdout), [])


class JsonTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "result.json")

    def load(self, path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def test_keys_are_those_of_format_three(self):
        done = run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "4K", "-f", "2", "-n", "5", "-I",
                   "1", "-K", "2", "-J", self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = self.load(self.path)
        self.assertEqual(report["version"], 3)
        self.assertLessEqual({"start_time", "args", "env", "nccl_version", "config", "results",
                              "out_of_bounds", "average_bus_bandwidth", "errors", "end_time"},
                             set(report))
        self.assertEqual(set(report["config"]), CONFIG_KEYS | {"step_factor"})
        self.assertEqual(report["config"]["per_iter_timing"], "true")
        self.assertEqual(set(report["config"]["devices"][1]), DEVICE_KEYS)
        self.assertEqual(len(report["results"]), 3)
        for result in report["results"]:
            self.assertEqual(set(result),
                             RESULT_KEYS | {"out_of_place_per_iter", "in_place_per_iter"})
            self.assertEqual(set(result["in_place"]), {"time", "alg_bw", "bus_bw", "nwrong"})
            self.assertEqual(result["in_place"]["nwrong"], 0)
            iterations = result["out_of_place_per_iter"]
            self.assertEqual(set(iterations), ITERATION_KEYS)
            self.assertEqual(iterations["skipped_iterations"], 2)
            self.assertEqual(len(iterations["times_us"]), 5)
            self.assertEqual(len(iterations["per_process_max_times_us"][0]), 5)
        self.assertEqual(report["out_of_bounds"], {"count": 0, "okay": "true"})
        self.assertEqual(report["errors"], [])

    def test_the_kind_of_memory_is_told(self):
        for number, kind in enumerate(("mapped", "private")):
            with self.subTest(kind=kind):
                path = self.path.replace(".json", f"{number}.json")
                done = run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2", "-J", path,
                           "--memory", kind)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(self.load(path)["config"]["memory"], kind)
                self.assertRegex(done.stdout, f"(?m)^# nThread .* memory: {kind}$")

    def test_files_are_never_overwritten(self):
        for _ in range(2):
            run("all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2", "-c", "0", "-C",
                "1", "-J", self.path)
        first, second = self.load(self.path), self.load(self.path + ".1")
        self.assertEqual(first["args"], second["args"])
        self.assertIn("cpu_time", first["results"][0]["out_of_place"])
        self.assertIsNone(first["results"][0]["out_of_place"]["nwrong"])


class ProcessesTest(unittest.TestCase):
    def test_forked_processes_agree_on_one_table(self):
        done = run("all_reduce_perf", "--procs", "2", "-b", "8", "-e", "32K", "-f", "16", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(rows(done.stdout)), 4)
        pids = {line.split("Pid")[1].split()[0] for line in done.stdout.splitlines()
                if line.startswith("#  Rank")}
        self.assertEqual(len(pids), 2)

    def test_threads_and_devices_multiply(self):
        done = run("all_reduce_perf", "-t", "2", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("#  Rank"), 4)

    def start_endless(self):
        """Two processes that measure for ever, and their process ids."""
        tool = subprocess.Popen(
            [os.path.join(TOOLS, "all_reduce_perf"), "--procs", "2", "-b", "64K", "-e", "64K", "-N",
             "0"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tool.stderr.close)
        self.addCleanup(tool.stdout.close)
        self.addCleanup(tool.kill)
        pids = []
        for line in tool.stdout:
            if line.startswith("#  Rank"):
                pids.append(int(line.split("Pid")[1].split()[0]))
            if line and not line.startswith("#"):
                break
        self.assertEqual(len(pids), 2)
        return tool, pids

    def assert_gone(self, pids):
        for pid in pids:
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)

    def test_a_process_that_dies_ends_the_run(self):
        tool, pids = self.start_endless()
        os.kill(pids[1], signal.SIGKILL)
        _, errors = tool.communicate(timeout=20)
        self.assertNotEqual(tool.returncode, 0)
        self.assertIn("process 1 of 2 was ended by signal 9", errors)
        self.assert_gone(pids)

    def test_an_interrupt_ends_all_processes(self):
        tool, pids = self.start_endless()
        tool.send_signal(signal.SIGINT)
        tool.communicate(timeout=20)
        self.assertEqual(tool.returncode, 128 + signal.SIGINT)
        self.assert_gone(pids)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class JobTest(unittest.TestCase):
    """Processes that something else started, and that have environment variables only."""

    def start(self, flags, environments):
        tools = [subprocess.Popen([os.path.join(TOOLS, "all_reduce_perf"), *flags],
                                  env=environment(**changes), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
                 for changes in environments]
        for tool in tools:
            self.addCleanup(tool.stderr.close)
            self.addCleanup(tool.stdout.close)
            self.addCleanup(tool.kill)
        return tools

    def assert_one_table(self, environments):
        tools = self.start(["-b", "8", "-e", "32K", "-f", "16", "-n", "2"], environments)
        outputs = [tool.communicate(timeout=TIMEOUT_S) for tool in tools]
        self.assertEqual([tool.returncode for tool in tools], [0] * len(tools), outputs)
        self.assertEqual(len(rows(outputs[0][0])), 4)
        self.assertEqual(outputs[0][0].count("#  Rank"), len(tools))
        self.assertEqual([output[0] for output in outputs[1:]], [""] * (len(tools) - 1))

    def test_the_variables_of_torchrun_make_one_job(self):
        common = {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port() - 1)}
        self.assert_one_table([{"RANK": str(rank), **common} for rank in range(3)])

    def test_the_variables_of_srun_make_one_job_where_all_know_where_to_meet(self):
        common = {"SLURM_NTASKS": "2", "NCCL_COMM_ID": f"127.0.0.1:{free_port()}"}
        self.assert_one_table([{"SLURM_PROCID": str(rank), **common} for rank in range(2)])

    def test_a_shell_of_an_allocation_is_no_job(self):
        self.assert_one_table([{"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}])

    def test_tasks_of_srun_that_do_not_know_where_to_meet_are_told(self):
        for task, step, times in (("0", "2", 1), ("1", "2", 0), ("0", "1", 0)):
            done = run("all_reduce_perf", "-b", "8", "-e", "8", SLURM_PROCID=task, SLURM_NTASKS="2",
                       SLURM_STEP_NUM_TASKS=step)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("NCCL_COMM_ID=host:port"), times, done.stderr)

    def test_variables_without_sense_are_refused(self):
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
        for changes, word in (({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
                              ({"RANK": "x", "WORLD_SIZE": "2", **common}, "RANK=x"),
                              ({"RANK": "0", "WORLD_SIZE": "-2", **common}, "WORLD_SIZE=-2")):
            done = run("all_reduce_perf", "-b", "8", "-e", "8", **changes)
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.stderr)

    def test_a_process_that_dies_ends_the_job(self):
        common = {"WORLD_SIZE": "2", "NCCL_COMM_ID": f"127.0.0.1:{free_port()}"}
        tools = self.start(["-b", "64K", "-e", "64K", "-N", "0"],
                           [{"RANK": str(rank), **common} for rank in range(2)])
        for line in tools[0].stdout:
            if not line.startswith("#"):
                break
        tools[1].kill()
        _, errors = tools[0].communicate(timeout=20)
        self.assertEqual(tools[0].returncode, 1)
        self.assertIn("rank 1", errors)


if __name__ == "__main__":
    TOOLS = sys.argv.pop(1)
    unittest.main()
