#!/usr/bin/env python3
"""Catenary beside gloo, in one run of the same processes, in turns.

usage: side_by_side.py [--procs N ...] [--rounds N] [--out DIRECTORY]

Each round measures both backends, one right after the other, and gives a ratio; what is reported is
the median of the ratios, and of the times. A time is that of the slowest rank. Writes side_by_side.csv
and side_by_side.svg. `./dev torch --bench` runs it into docs/torch.
"""
import argparse
import csv
import math
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "examples")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import language  # noqa: E402
import ranks  # noqa: E402

KIB, MIB = 1024, 1024 * 1024
CASES = [("all_reduce", dtype, size) for dtype in ("float32", "bfloat16")
         for size in (KIB, 64 * KIB, MIB, 25 * MIB, 100 * MIB)]
CASES += [(name, "float32", size) for name in ("reduce_scatter", "all_gather", "all_to_all")
          for size in (MIB, 32 * MIB)]
SHARED = "all_reduce (shared memory)"  # of tensors that ours reads where they lie
CASES.append((SHARED, "float32", 25 * MIB))
BYTES_A_TURN, MOST_CALLS = 64 * MIB, 300


def call_of(name, dtype, size, world):
    """call(group) does the collective once; size is the bytes of the longer side."""
    import torch_catenary

    make = torch_catenary.empty if name == SHARED else torch.empty
    whole = make(size // dtype.itemsize // world * world, dtype=dtype).fill_(1)
    part = torch.ones(len(whole) // world, dtype=dtype)
    other = torch.empty_like(whole)
    return {SHARED: lambda group: dist.all_reduce(whole, group=group),
            "all_reduce": lambda group: dist.all_reduce(whole, group=group),
            "reduce_scatter": lambda group: dist.reduce_scatter_single(part, whole, group=group),
            "all_gather": lambda group: dist.all_gather_single(whole, part, group=group),
            "all_to_all": lambda group: dist.all_to_all_single(other, whole, group=group)}[name]


def slowest(seconds, group):
    longest = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(longest, dist.ReduceOp.MAX, group=group)
    return longest.item()


def turn(work, group, control, calls):
    dist.barrier(control)
    began = time.perf_counter()
    for _ in range(calls):
        work(group)
    return slowest((time.perf_counter() - began) / calls, control)


def no_communication(_state, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def training(groups):
    """step(name) trains one step of the example with that backend; with "none", gradients stay here."""
    models = {}
    for name in (*groups, "none"):
        model = torch.nn.parallel.DistributedDataParallel(
            language.transformer(4), process_group=groups.get(name), bucket_cap_mb=1.0)
        if name == "none":
            model.register_comm_hook(None, no_communication)
        models[name] = model, torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, targets = next(language.batches(language.text(5000), 2, dist.get_rank(), dist.get_world_size()))

    def step(name):
        model, optimizer = models[name]
        optimizer.zero_grad()
        language.loss_of(model(inputs), targets).backward()
        optimizer.step()

    return step


def measure_training(groups, control, rounds):
    """Times of a step with each backend, and of what communication adds to it."""
    step = training(groups)
    whole, added = {each: [] for each in groups}, {each: [] for each in groups}
    for each in (*groups, "none"):
        turn(lambda _, each=each: step(each), None, control, 5)
    for _ in range(2 * rounds):
        alone = turn(lambda _: step("none"), None, control, 10)
        for each in groups:
            whole[each].append(turn(lambda _, each=each: step(each), None, control, 10))
            added[each].append(max(1e-5, whole[each][-1] - alone))
    return whole, added


def measure(rank, world):
    """Rows (operation, type, bytes, ranks, ours in us, gloo's in us, ratio), of rank 0."""
    rounds = int(os.environ["SIDE_BY_SIDE_ROUNDS"])
    control = dist.new_group(backend="gloo")
    groups = {"catenary": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    rows = []

    def note(name, kind, size, times):
        ratios = [theirs / ours for ours, theirs in zip(times["catenary"], times["gloo"])]
        medians = [statistics.median(times[each]) * 1e6 for each in groups]
        rows.append([name, kind, size, world, *(f"{each:.1f}" for each in medians),
                     f"{statistics.median(ratios):.2f}"])
        if rank == 0:
            print(*rows[-1], flush=True)

    for name, kind, size in CASES:
        work = call_of(name, getattr(torch, kind), size, world)
        calls = max(3, min(MOST_CALLS, BYTES_A_TURN // size))
        times = {each: [] for each in groups}
        for each in groups.values():
            turn(work, each, control, 3)
        for _ in range(rounds):
            for each, group in groups.items():
                times[each].append(turn(work, group, control, calls))
        note(name, kind, size, times)
    whole, added = measure_training(groups, control, rounds)
    note("DDP step", "float32", 0, whole)
    note("DDP communication", "float32", 0, added)
    return rows


def size_text(size):
    return "" if size == 0 else f"{size // MIB} MB" if size >= MIB else f"{size // KIB} KB"


def svg(rows, facts):
    """Bars: how many times as fast as gloo, on a scale of powers of two."""
    counts = sorted({row[3] for row in rows})
    labels = list(dict.fromkeys((row[0], row[1], row[2]) for row in rows))
    left, unit, bar = 280, 75, 11
    height = 50 + len(labels) * (len(counts) * bar + 8)
    colours = dict(zip(counts, ("#1b6ca8", "#e07b39", "#4a9e5c")))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{height + 40}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18" font-size="14">Times as fast as gloo ({facts})</text>']
    for power in range(0, 8):
        x = left + power * unit
        dash = "" if power == 1 else ' stroke-dasharray="2 3"'
        out.append(f'<line x1="{x}" y1="28" x2="{x}" y2="{height}" stroke="#999"{dash}/>'
                   f'<text x="{x}" y="{height + 14}" text-anchor="middle">{2 ** power}x</text>')
    for at, colour in enumerate(colours.items()):
        out.append(f'<text x="{left + 120 * at}" y="{height + 32}" fill="{colour[1]}">{colour[0]} ranks</text>')
    y = 34
    for label in labels:
        out.append(f'<text x="{left - 8}" y="{y + len(counts) * bar / 2 + 4}" text-anchor="end">'
                   f'{label[0]} {size_text(int(label[2]))} {label[1]}</text>')
        for row in rows:
            if (row[0], row[1], row[2]) != label:
                continue
            ratio = float(row[6])
            wide = min(7.4, math.log2(max(ratio, 1.01))) * unit
            out.append(f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="{bar - 1}" '
                       f'fill="{colours[row[3]]}"/><text x="{left + wide + 4:.1f}" y="{y + 9}" '
                       f'font-size="10">{ratio:.1f}</text>')
            y += bar
        y += 8
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--procs", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    os.environ["SIDE_BY_SIDE_ROUNDS"] = str(options.rounds)
    load = os.getloadavg()[0]
    facts = f"{os.cpu_count()} cores, torch {torch.__version__}, load before {load:.1f}"
    rows = [row for world in options.procs for row in ranks.run(world, measure, limit=1500)[0]]
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "side_by_side.csv", "w", newline="") as file:
        file.write(f"# {facts}, {options.rounds} rounds\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["operation", "type", "bytes", "ranks", "catenary_us", "gloo_us", "gloo_over_catenary"])
        writer.writerows(rows)
    (options.out / "side_by_side.svg").write_text(svg(rows, facts))


if __name__ == "__main__":
    main()
