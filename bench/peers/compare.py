#!/usr/bin/env python3
"""Our numbers beside those of Open MPI, MPICH, Gloo, oneCCL and Intel MPI, and beside what the machine
allows: same operation, sizes, ranks and placement, in turns, round after round.
"""

import argparse
import datetime
import itertools
import os
import platform
import random
import statistics
import sys
import time

import report
from implementations import catalogue, missing
from jobs import run_job
from results import STARTUP, Results, WorkerError, parse_report

HERE = os.path.dirname(os.path.abspath(__file__))
OPERATIONS = ["all_reduce", "reduce_scatter", "all_gather", "alltoall", "broadcast", "reduce",
              "sendrecv"]
MEMORIES = ["mapped", "private"]
SPLIT = {"reduce_scatter", "all_gather", "alltoall"}  # a size is a part for each rank
TYPE_BYTES = {"float": 4, "half": 2, "bfloat16": 2}
SIZES = "8,1K,8K,64K,256K,1M,4M,16M,64M,256M"
CROWDED_LARGEST = 16 << 20
QUIET_LOAD = 0.7
FAR_BEHIND = 5  # what takes a peer so many times as long as the best one is not measured again
MORE_ROUNDS = 2  # times as many, of what was only measured while the cores were not as mostly


def parse_size(text):
    """"8", "64K", "1M": bytes."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text}: expected bytes, such as 8, 64K or 1M")
    return int(digits) * factor


def listed(parse, known=None):
    """An argument of several values between commas."""
    def read(text):
        values = []
        for word in text.split(","):
            value = parse(word)
            if known is not None and value not in known:
                raise argparse.ArgumentTypeError(f"{word}: expected some of {', '.join(known)}")
            values.append(value)
        return values
    return read


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="./dev compare", description=__doc__)
    parser.add_argument("--ranks", type=listed(int), default=[2, 4, 8],
                        help="how many ranks (2,4,8)")
    parser.add_argument("--ops", type=lambda text: OPERATIONS + [STARTUP] if text == "all" else
                        listed(str, OPERATIONS + [STARTUP])(text), default=["all_reduce"],
                        help=f"all, or some of {', '.join(OPERATIONS + [STARTUP])} (all_reduce)")
    parser.add_argument("--sizes", type=listed(parse_size),
                        help=f"bytes of a rank's larger buffer ({SIZES}; where ranks outnumber cores, "
                             f"up to {CROWDED_LARGEST >> 20}M)")
    parser.add_argument("--types", type=listed(str, list(TYPE_BYTES)), default=["float"],
                        help="of all_reduce: float, half, bfloat16; all others are of float (float)")
    parser.add_argument("--memory", type=listed(str, MEMORIES), default=MEMORIES,
                        help="our buffers: mapped (ncclMemAlloc), private (malloc) (both)")
    parser.add_argument("--only", type=listed(str),
                        help=f"the implementations to measure, some of "
                             f"{', '.join(each.name for each in catalogue(MEMORIES, None))} (all)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each has its turn (5)")
    parser.add_argument("--sample-us", type=int, default=4000, help="how long a sample lasts (4000)")
    parser.add_argument("--samples", type=int, default=3, help="samples in each round (3)")
    parser.add_argument("--job-seconds", type=int, default=180,
                        help="a job that takes longer has failed (180)")
    parser.add_argument("--bin", default=os.path.join(HERE, "../../build/release/bin"),
                        help="where the workers are")
    parser.add_argument("--out", default=os.path.join(HERE, "../../build/compare"),
                        help="the folder for the results")
    arguments = parser.parse_args(argv)
    if arguments.rounds < 1 or min(arguments.ranks) < 1:
        parser.error("at least one round of one rank")
    return arguments


def points_of(arguments, operation, ranks, cores):
    """What a worker is told to measure of one operation: operation/type/bytes."""
    if operation == STARTUP:
        return []
    sizes = arguments.sizes
    if sizes is None:
        sizes = [size for size in map(parse_size, SIZES.split(","))
                 if ranks <= cores or size <= CROWDED_LARGEST]
    types = arguments.types if operation == "all_reduce" else ["float"]
    parts = ranks if operation in SPLIT else 1
    return [f"{operation}/{kind}/{size}" for kind in types for size in sizes
            if size % (TYPE_BYTES[kind] * parts) == 0]


def first_line(path, key):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    return "unknown"


def facts_of_machine(load):
    return [("date", datetime.datetime.now().strftime("%Y-%m-%d %H:%M")),
            ("machine", f"{first_line('/proc/cpuinfo', 'model name')}, "
                        f"{len(os.sched_getaffinity(0))} cores"),
            ("load before", f"{load:.2f}"),
            ("kernel", platform.release())]


def tell(*words):
    print(*words, flush=True)


class Comparison:
    """A run: who takes part, what they said, who failed."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.cpus = sorted(os.sched_getaffinity(0))
        everyone = catalogue(arguments.memory, os.environ.get("COMPARE_INTEL_PREFIX"))
        if arguments.only:
            unknown = set(arguments.only) - {each.name for each in everyone}
            if unknown:
                sys.exit(f"compare: no {', '.join(sorted(unknown))}; there are "
                         f"{', '.join(each.name for each in everyone)}")
            everyone = [each for each in everyone if each.name in arguments.only]
        reasons = {each.name: missing(each, arguments.bin) for each in everyone}
        self.absent = {name: why for name, why in reasons.items() if why}
        self.present = [each for each in everyone if not reasons[each.name]]
        self.failed = {}
        self.more_rounds = 0
        self.results = Results({each.name: each.kind for each in self.present})

    def takes_part(self, implementation, ranks, operation):
        if (implementation.name, ranks, operation) in self.failed:
            return False
        if implementation.only_crowded and ranks <= len(self.cpus):
            return False
        if operation == STARTUP:
            return implementation.kind != "limit"
        return not implementation.operations or operation in implementation.operations

    def turn(self, implementation, ranks, operation, points, number):
        """One implementation's turn at one operation."""
        pinned = implementation.one_process or ranks <= len(self.cpus)
        points = [point for point in points
                  if not self.results.far_behind(implementation.name, point, ranks, FAR_BEHIND)]
        if not points and operation != STARTUP:
            return
        flags = ["--samples", str(self.arguments.samples),
                 "--sample-us", str(self.arguments.sample_us)]
        begin = time.monotonic()
        try:
            text = run_job(implementation, ranks, points, self.arguments.bin,
                           self.cpus if pinned else None, self.arguments.job_seconds, flags)
            self.results.add(implementation.name, (number, operation), parse_report(text, ranks))
            tell(f"  {implementation.name:16} {time.monotonic() - begin:6.1f} s")
        except WorkerError as error:
            self.failed[implementation.name, ranks, operation] = str(error)
            tell(f"  {implementation.name} failed: {error}")

    def run(self):
        """All rounds, and some more of what was seldom measured while the cores were as they mostly are."""
        rounds = self.arguments.rounds
        for number in range(rounds * (1 + MORE_ROUNDS)):
            if number == rounds:
                self.results.settle()
            for ranks, operation in itertools.product(self.arguments.ranks, self.arguments.ops):
                what = f"{operation}, {ranks} ranks"
                if number < rounds:
                    tell(f"round {number + 1} of {rounds}: {what}")
                    points = points_of(self.arguments, operation, ranks, len(self.cpus))
                    self.everyone_at(ranks, operation, points, number)
                elif points := self.open_points(operation, ranks):
                    self.more_rounds = number - rounds + 1
                    tell(f"round {self.more_rounds} more: {what}, {len(points)} sizes")
                    self.everyone_at(ranks, operation, points, number)

    def open_points(self, operation, ranks):
        enough = (self.arguments.rounds + 1) // 2
        return [point for point in points_of(self.arguments, operation, ranks, len(self.cpus))
                if self.results.is_open(point, ranks, FAR_BEHIND, enough)]

    def everyone_at(self, ranks, operation, points, number):
        # Nobody always comes after the same one's warm caches and clocks.
        for implementation in random.Random(number).sample(self.present, len(self.present)):
            # A limit is the least of its rounds, which would be less if it had more of them.
            may_turn = number < self.arguments.rounds or implementation.kind != "limit"
            if may_turn and self.takes_part(implementation, ranks, operation):
                self.turn(implementation, ranks, operation, points, number)

    def facts(self, machine):
        facts = list(machine)
        lines = self.results.usual_lines() or self.results.ping_pongs_ns
        if lines:
            facts.insert(2, ("cache line from core to core, one way, in samples that count",
                             f"{statistics.median(lines):.0f} ns ({min(lines):.0f}-{max(lines):.0f})"))
        unusual, known = self.results.unusual()
        if unusual:
            facts.append(("left out", f"{unusual} samples of {known}, while which that line took less than "
                                      f"half or more than twice as long as mostly; where all were, the "
                                      f"time has a ~ and no ratio"))
        more = f", and up to {self.more_rounds} more of what was left out mostly" if self.more_rounds else ""
        facts.append(("rounds", f"{self.arguments.rounds}{more}; fewer of what took a peer {FAR_BEHIND} times as "
                                "long as the best one"))
        facts += [(each.name, each.about) for each in self.present]
        facts += [(f"{name} is absent", why) for name, why in self.absent.items()]
        facts += [(f"{name} failed", f"{operation}, {ranks} ranks: {why}")
                  for (name, ranks, operation), why in self.failed.items()]
        return facts

    def worst(self):
        """0, or 1 if one of ours, or a limit, is missing from the result."""
        ours = {each.name for each in self.present if each.kind != "peer"}
        broken = any(name in ours for name, _, _ in self.failed)
        return 1 if broken or not self.results.rows() else 0


def write(folder, name, text):
    path = os.path.normpath(os.path.join(folder, name))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    tell(f"wrote {path}")


def main(argv):
    arguments = parse_arguments(argv)
    load = os.getloadavg()[0]
    machine = facts_of_machine(load)
    comparison = Comparison(arguments)
    for name, why in comparison.absent.items():
        tell(f"{name} is absent: {why}")
    if not comparison.present:
        sys.exit("compare: nothing to measure")
    tell(f"measuring {', '.join(each.name for each in comparison.present)}")
    if load > QUIET_LOAD:
        tell(f"the machine is busy (load {load:.2f}): small sizes will look worse than they are")
    try:
        comparison.run()
    except KeyboardInterrupt:
        tell("interrupted: what there is so far")
    results, facts = comparison.results, comparison.facts(machine)
    summary = "\n".join(f"{name}: {value}" for name, value in facts)
    text = (f"{summary}\n\nMicroseconds of the slowest rank, median of the rounds, of ours with "
            f"quartiles; * the best peer.\n\n{report.tables(results)}\n{report.copy_table(results)}\n\n"
            f"{report.summary(results)}")
    tell("\n" + text)
    os.makedirs(arguments.out, exist_ok=True)
    stem = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    write(arguments.out, f"{stem}.md", text)
    write(arguments.out, f"{stem}.csv", report.csv_text(results, facts))
    write(arguments.out, f"{stem}.svg", report.svg_text(results, facts))
    return comparison.worst()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
