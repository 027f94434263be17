#!/usr/bin/env python3
"""Ranks that do not agree, also about their very last call: all of them are told. And how groups end.

usage: agreement_test.py [--world N ...]
"""
import argparse
import sys
import time

import torch
import torch.distributed as dist

import ranks
from semantics_test import Op, raises


def disagree(rank, world):
    """After this the group is lost, so it is the last thing."""
    def call():
        if rank == 0:
            dist.all_reduce(torch.ones(10))
        else:
            dist.broadcast(torch.ones(20, dtype=torch.float64), 0)

    raises("AllReduce", call)
    raises("Broadcast", call)


def coalesced(op):
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = op
    return options


# Calls that differ between rank 0 and the others, and what all ranks' errors say.
DISAGREEMENTS = {
    "bitwise": (lambda rank, world: dist.all_reduce(torch.ones(8, dtype=torch.int32), Op.BAND if rank == 0 else Op.BOR),
                ["in torch ALLREDUCE of Int by BAND", "in torch ALLREDUCE of Int by BOR"]),
    "types that are reduced alike": (
        lambda rank, world: dist.all_reduce(torch.ones(8, dtype=torch.int16 if rank == 0 else torch.int32)),
        ["of Short by SUM", "of Int by SUM"]),
    "root of a gather": (
        lambda rank, world: dist.gather(torch.ones(3), [torch.zeros(3) for _ in range(world)] if rank < 2 else None,
                                        min(rank, 1)),
        ["in torch GATHER of Float with root 0", "in torch GATHER of Float with root 1"]),
    "types of the second of two": (
        lambda rank, world: dist.group.WORLD._get_backend(torch.device("cpu")).allreduce_coalesced(
            [torch.ones(2), torch.ones(2, dtype=torch.bool if rank == 0 else torch.uint8)], coalesced(Op.MAX)).wait(),
        ["of Bool by MAX", "of Byte by MAX"]),
}


def disagree_in_torch(name):
    def call(rank, world):
        function, said = DISAGREEMENTS[name]
        for text in said:  # the second time the group is lost, and says why
            raises(text, function, rank, world)

    return call


def last_words(call, *said, late=()):
    """A program that ends with `call`, after which nothing but the group's end can show that ranks do not agree."""
    def run(rank, world):
        try:
            call(rank, world)  # which may hear it, if others have come to the end already
            if rank in late:
                time.sleep(1)
            dist.destroy_process_group()
        except dist.DistBackendError as error:
            assert all(text in str(error) for text in said), str(error)
        else:
            raise AssertionError("nobody said that ranks did not agree")
        # The frame destroys it again, as who catches this must: torch takes it for alive.

    return run


def end_of_a_smaller_group(rank, world):
    group = dist.new_group(list(range(world)))
    dist.broadcast(torch.ones(8), int(rank == 1), group=group)
    try:
        dist.destroy_process_group(group)
    finally:
        dist.destroy_process_group(group)


def end_of_a_group_for_which_one_is_late(rank, world):
    """The last group's end tells what a group disagreed about that ended here long before it did elsewhere."""
    group = dist.new_group(list(range(world)))
    dist.broadcast(torch.ones(8), int(rank == 1), group=group)
    if rank == 1:
        time.sleep(1)  # and hears it at once
    dist.destroy_process_group(group)
    del group


def handler_of_an_iteration(rank, world):
    """The end of an iteration is an exception, but not one to clean up after."""
    things = iter([1])
    try:
        while True:
            next(things)
    except StopIteration:
        dist.broadcast(torch.ones(8), int(rank == 1))
        dist.destroy_process_group()


def end_in_trouble(rank, world):
    """Who cleans up after an exception ends with that one, and at once."""
    if rank == 1:
        began = time.monotonic()
        try:
            try:
                raise ValueError("of its own")
            finally:
                dist.destroy_process_group()
        except ValueError:
            assert time.monotonic() - began < 2
        else:
            raise AssertionError("its own error is gone")
    else:
        raises("rank 1 has left", dist.all_reduce, torch.ones(8))


def end_of_groups_one_by_one(rank, world):
    """Nobody has to come to the end of a group in which nothing went wrong, and many cost no more than few."""
    groups = [dist.new_group(list(range(world))) for _ in range(40)]
    for group in groups:
        dist.broadcast(torch.ones(8), 0, group=group)
    began = time.monotonic()
    for group in groups if rank == 0 else []:
        dist.destroy_process_group(group)
    dist.barrier()
    for group in reversed(groups if rank != 0 else []):
        dist.destroy_process_group(group)
    assert time.monotonic() - began < 6, "groups waited for each other"


# Programs that go wrong in their last call, of which some ranks or all see nothing.
LAST_WORDS = {
    "all are roots": last_words(lambda rank, world: dist.broadcast(torch.ones(8), rank),
                                "in torch BROADCAST of Float with root "),
    "one has another root": last_words(lambda rank, world: dist.broadcast(torch.ones(8), int(rank == 1)),
                                       "in torch BROADCAST of Float with root 0", "with root 1"),
    "the root is late": last_words(lambda rank, world: dist.broadcast(torch.ones(8), rank),
                                     "in torch BROADCAST of Float with root ", late=[0]),
    "one leaves it out": last_words(lambda rank, world: rank == 1 or dist.broadcast(torch.ones(8), 0),
                                    "in torch BROADCAST of Float with root 0", "rank 1 has parted after 0 collectives"),
    "nobody waits for it": last_words(lambda rank, world: dist.broadcast(torch.ones(8), rank, async_op=True) and None,
                                      "in torch BROADCAST of Float with root "),
    "in a smaller group": last_words(lambda rank, world: end_of_a_smaller_group(rank, world),
                                     "in torch BROADCAST of Float with root 0", "with root 1"),
    "in a smaller group to which one comes late": last_words(
        end_of_a_group_for_which_one_is_late, "in torch BROADCAST of Float with root 0", "with root 1"),
    "in a handler": last_words(handler_of_an_iteration, "in torch BROADCAST of Float with root 0", "with root 1"),
    "one has nothing": last_words(lambda rank, world: dist.broadcast(torch.ones(0 if rank == 1 else 4), 0),
                                  "Barrier number 0 (count 0, int8, in torch BROADCAST", "Broadcast number 0 (count 4, float"),
    "one calls another one": last_words(
        lambda rank, world: dist.broadcast(torch.ones(8), 0) if rank == 0 else dist.reduce(torch.ones(8), 0),
        "in torch BROADCAST of Float with root 0", "in torch REDUCE of Float by SUM with root 0"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, nargs="*", default=[2, 3])
    programs = [disagree, *map(disagree_in_torch, DISAGREEMENTS), *LAST_WORDS.values(), end_in_trouble,
                end_of_groups_one_by_one]
    for world in parser.parse_args().world:
        began = time.monotonic()
        for program in programs:
            ranks.run(world, program)
        print(f"{world} ranks: {len(programs)} programs ended as they should in {time.monotonic() - began:.1f} s",
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
