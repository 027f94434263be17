#!/usr/bin/env python3
"""Processes that end in other ways than well: a rank killed in the middle of training, one that leaves
without destroying its groups, DataLoader workers, ranks that are spawned and not forked.

usage: process_life_test.py [--few]
"""
import datetime
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ranks

VICTIM = 1


def train_until_lost(rank, world):
    """What a survivor's training loop raised, and how long after the death of the victim."""
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Linear(512, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    marker = os.environ["CATENARY_TEST_MARKER"]
    for step in range(100000):
        if rank == VICTIM and step == 20:
            with open(marker, "w") as file:
                file.write(str(time.monotonic()))
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        try:
            model(torch.randn(16, 64)).sum().backward()
        except RuntimeError as error:
            with open(marker) as file:
                return str(error), time.monotonic() - float(file.read())
        optimizer.step()
    raise AssertionError("nobody noticed that a rank died")


def killed_rank(world):
    """After how many seconds the last survivor raised an error that names the victim."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CATENARY_TEST_MARKER"] = os.path.join(scratch, "when")
        answers = ranks.run(world, train_until_lost, may_die=(VICTIM,))
    for rank, (message, _) in answers.items():
        if f"rank {VICTIM}" not in message:
            raise AssertionError(f"rank {rank} does not name rank {VICTIM}: {message}")
    return max(seconds for _, seconds in answers.values())


def call_in_child(rank, world):
    """A forked child is told what it is, and harms nobody."""
    dist.all_reduce(torch.ones(1))
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            os._exit(0 if "was forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    dist.all_reduce(torch.ones(1))


def miss_one(rank, world):
    """Who waits for a group to be made is told who did not come."""
    if rank == 1:
        time.sleep(2)
        return
    try:
        dist.new_group(timeout=datetime.timedelta(seconds=1))
    except RuntimeError as error:
        assert "without rank 1" in str(error) and "frame #" not in str(error), error
        return
    raise AssertionError("nobody missed rank 1")


LEAVE = """
import os, sys, time, torch, torch.distributed as dist, torch_catenary
rank, world, path, way = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
dist.init_process_group("catenary", init_method="file://" + path, rank=rank, world_size=world)
tensor = torch.ones(1000)
dist.all_reduce(tensor)
if way == "pending":
    works = [dist.all_reduce(tensor, async_op=True)]
    works[0].get_future().then(lambda done: time.sleep(0.5))  # Python ends while it runs
    time.sleep(0.2)
    if rank == 0:
        works.append(dist.irecv(torch.zeros(5), 1))
        works[-1].get_future()
if way == "sys_exit":
    sys.exit(0)
if way == "loader":
    data = torch.utils.data.TensorDataset(torch.arange(64.))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
    for (batch,) in loader:
        dist.all_reduce(batch)
if way == "loader":
    dist.destroy_process_group()
"""


def leaving(way, world=2):
    """Programs of their own, which must end by themselves, well and without a word."""
    with tempfile.TemporaryDirectory() as scratch:
        programs = [
            subprocess.Popen([sys.executable, "-W", "ignore", "-c", LEAVE, str(rank), str(world),
                              os.path.join(scratch, "meet"), way], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, cwd=scratch)  # python -c imports what lies in its own folder first
            for rank in range(world)]
        try:
            for rank, program in enumerate(programs):
                said = program.communicate(timeout=60)[0]
                # torch itself remarks that the group was not destroyed, and Python that it forks.
                said = "\n".join(line for line in said.splitlines()
                                 if not re.search("destroy_process_group|Warning|self.pid = os.fork", line))
                if program.returncode or said:
                    raise AssertionError(f"{way}, rank {rank}: exit code {program.returncode}, {said}")
        finally:
            for program in programs:
                program.kill()
                program.wait()


def main():
    began = time.monotonic()
    print(f"a killed rank is named after {killed_rank(3):.3f} s")
    ranks.run(2, call_in_child)
    ranks.run(3, miss_one)
    for way in ("pending",) if "--few" in sys.argv else ("nothing", "sys_exit", "pending", "loader"):
        leaving(way)
    print(f"processes end as they should: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
