"""The arithmetic of a comparison: what workers said, medians and quartiles over rounds, the best peer,
ratios within a round."""

import collections
import dataclasses
import statistics

# One row of a result: what was measured, with how many ranks.
Row = collections.namedtuple("Row", "ranks operation type bytes mode")
STARTUP = "startup"


# A time in microseconds, and how many nanoseconds a cache line took meanwhile from core to core, or None.
Sample = collections.namedtuple("Sample", "time line")
ALIKE = 2  # lines that differ by no more than this factor are the same to us
MOST_BY_ODDITY = 10  # no more times as long does anything take because they are not


class WorkerError(Exception):
    """A worker said something that no worker says, or did not say all."""


@dataclasses.dataclass
class Report:
    """What one job said."""
    samples: dict  # Row -> [Sample]
    unknown: set  # (operation, type)
    ping_pong_ns: float | None = None
    copies: dict = dataclasses.field(default_factory=dict)  # bytes -> (GB/s of one core, of all)


def parse_sample(word):
    """4.25, or 4.25@27.0 with the line."""
    time, _, line = word.partition("@")
    return Sample(float(time), float(line) if line else None)


def parse_report(text, ranks):
    """Reads a worker's output. Throws WorkerError unless it came to its end."""
    report = Report({}, set())
    finished = False
    for line in text.splitlines():
        words = line.split()
        try:
            match words:
                case ["startup", what, time]:
                    report.samples[Row(ranks, STARTUP, "-", 0, what)] = [Sample(float(time), None)]
                case ["point", operation, kind, size, mode, _, *_]:
                    report.samples[Row(ranks, operation, kind, int(size), mode)] = [
                        parse_sample(word) for word in words[5:]]
                case ["unknown", operation, kind]:
                    report.unknown.add((operation, kind))
                case ["ping_pong", nanoseconds]:
                    report.ping_pong_ns = float(nanoseconds)
                case ["copy", size, one, every]:
                    report.copies[int(size)] = (float(one), float(every))
                case ["done"]:
                    finished = True
                case []:
                    pass
                case _:
                    raise WorkerError(f"a worker said: {line}")
        except ValueError as error:
            raise WorkerError(f"a worker said: {line}") from error
    if not finished:
        raise WorkerError("a worker stopped half-way")
    return report


Spread = collections.namedtuple("Spread", "median low high count")


def spread(values):
    """Median and quartiles; the quartiles are values that occurred, or lie between two of them."""
    values = sorted(values)
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(statistics.median(values), low, high, len(values))


def rows_of(point, ranks):
    """Of an operation/type/bytes, one for each way of looping over it."""
    operation, kind, size = point.split("/")
    return [Row(ranks, operation, kind, int(size), mode) for mode in ("loop", "each")]


class Results:
    """Samples by row, implementation and round."""

    def __init__(self, kinds):
        self.kinds = dict(kinds)  # name -> "ours", "peer" or "limit"
        self.ping_pongs_ns = []
        self.copies = collections.defaultdict(list)  # (ranks, bytes) -> [(one, all)]
        self._samples = collections.defaultdict(dict)  # (row, name) -> {round: [Sample]}
        self._lines = []
        self._usual_line = None  # the median of those, once it is asked for
        self._is_settled = False

    def add(self, name, number, report):
        for row, samples in report.samples.items():
            self._samples[row, name][number] = samples
            self._lines += [sample.line for sample in samples if sample.line is not None]
            if not self._is_settled:
                self._usual_line = None
        if report.ping_pong_ns is not None:
            self.ping_pongs_ns.append(report.ping_pong_ns)
        for size, speeds in report.copies.items():
            self.copies[size].append(speeds)

    def is_usual(self, sample):
        """Whether the cores were as far from each other as they mostly were."""
        if sample.line is None:
            return True
        if self._usual_line is None:
            self._usual_line = statistics.median(self._lines)
        return self._usual_line / ALIKE <= sample.line <= self._usual_line * ALIKE

    def usual_lines(self):
        return [line for line in self._lines if self.is_usual(Sample(0, line))]

    def unusual(self):
        """How many samples were not, and how many are known."""
        return sum(not self.is_usual(Sample(0, line)) for line in self._lines), len(self._lines)

    def times(self, row, name):
        """By round, the median of the samples that are usual; of all where no round has any."""
        return self.usual_times(row, name) or self._medians(row, name, lambda sample: True)

    def usual_times(self, row, name):
        return self._medians(row, name, self.is_usual)

    def _medians(self, row, name, is_counted):
        rounds = self._samples.get((row, name), {})
        return {number: statistics.median(sample.time for sample in kept)
                for number, samples in rounds.items() if (kept := list(filter(is_counted, samples)))}

    def is_odd(self, row, name):
        """Whether it was measured, but never while the cores were as far from each other as mostly."""
        return bool(self.times(row, name)) and not self.usual_times(row, name)

    def is_open(self, point, ranks, factor, rounds):
        """Whether at an operation/type/bytes anything is odd, but for what is far_behind(), or one of ours
        has a ratio to the best peer from fewer than so many rounds."""
        near = [name for name in self.names("ours") + self.names("peer")
                if not self.far_behind(name, point, ranks, factor)]
        for row in rows_of(point, ranks):
            best = self.best_peer(row)
            if any(self.is_odd(row, name) for name in near):
                return True
            ratios = [self.ratio(row, best, name) for name in self.names("ours")
                      if best and self.times(row, name)]
            if any(ratio is None or ratio.count < rounds for ratio in ratios):
                return True
        return False

    def settle(self):
        """What is added from now on does not change which samples are usual."""
        if self._lines:
            self._usual_line = statistics.median(self._lines)
        self._is_settled = True

    def rows(self):
        """In the order in which they were first heard of."""
        return list(dict.fromkeys(row for row, _ in self._samples))

    def names(self, kind=None):
        heard = {name for _, name in self._samples}
        return [name for name, its in self.kinds.items() if name in heard and kind in (None, its)]

    def spread(self, row, name):
        """Over the rounds, of a limit their least; None where there is nothing."""
        times = self.times(row, name).values()
        if not times:
            return None
        return spread([min(times)] if self.kinds[name] == "limit" else times)

    def best_peer(self, row):
        """The peer of the smallest median, or None."""
        medians = {name: found.median for name in self.names("peer")
                   if (found := self.spread(row, name)) is not None}
        return min(medians, key=medians.get, default=None)

    def far_behind(self, name, point, ranks, factor):
        """Whether a peer took `factor` times as long as the best one at an operation/type/bytes, whichever
        way it was looped over; if it is odd, that might be for the cores alone."""
        rows = rows_of(point, ranks)
        if self.kinds[name] != "peer" or any(self.spread(row, name) is None for row in rows):
            return False
        if any(self.is_odd(row, name) for row in rows):
            factor *= MOST_BY_ODDITY
        return all(self.spread(row, name).median >
                   factor * self.spread(row, self.best_peer(row)).median for row in rows)

    def ratio(self, row, other, name):
        """How many times as long `other` takes as `name`: the spread of the ratios within each round, so
        that what changes between rounds does not count. None where they have no round in common in which
        neither was odd."""
        others, ours = self.usual_times(row, other), self.usual_times(row, name)
        ratios = [others[number] / ours[number] for number in others.keys() & ours.keys()]
        return spread(ratios) if ratios else None

    def limit_of(self, name):
        """The limit that holds for an implementation: that for its kind of memory. A peer's memory is
        private."""
        own = "limit-mapped" if name.endswith("-mapped") else "limit-private"
        return own if own in self.kinds else None

    def limit_row(self, row):
        """Limits are measured in a loop; the other loop cannot be faster."""
        return row._replace(mode="loop")

    def share_of_limit(self, row, name):
        """The time that the limit takes, of the time that `name` takes; None if either is odd or not there."""
        own = self.limit_of(name)
        if own is None or self.is_odd(row, name) or self.is_odd(self.limit_row(row), own):
            return None
        limit, ours = self.spread(self.limit_row(row), own), self.spread(row, name)
        return limit.median / ours.median if limit and ours else None

    def ratio_to_limit(self, row, other, limit):
        """How many times as long `other` takes as a limit; None if either is odd or not there."""
        at = self.limit_row(row)
        if self.is_odd(row, other) or self.is_odd(at, limit):
            return None
        least, theirs = self.spread(at, limit), self.spread(row, other)
        return theirs.median / least.median if least and theirs else None
