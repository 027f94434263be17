#!/usr/bin/env python3
"""What goes together and in which order: tensors of several types at once, ranks whose memory lies
otherwise, operations that are not waited for, groups that end or are made again.

usage: order_test.py
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional

import ranks
from semantics_test import given, same

Op = dist.ReduceOp


def check_types_together(rank, world):
    types = [torch.bool, torch.float32, torch.int16, torch.float64, torch.bfloat16]
    for order in (types, types[::-1]):
        tensors = [torch.ones(5, dtype=dtype) for dtype in order]
        with dist._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        for tensor, dtype in zip(tensors, order):
            same(tensor, torch.ones(5).to(dtype) if dtype == torch.bool else torch.full((5,), world).to(dtype))
        parts = [torch.zeros(4, dtype=dtype) for dtype in order]
        with dist._coalescing_manager():
            for part in parts:
                dist.reduce_scatter_single(part, torch.ones(4 * world, dtype=part.dtype))
        for part in parts:
            same(part, torch.ones(4).to(part.dtype) if part.dtype == torch.bool else
                 torch.full((4,), world).to(part.dtype))
    made = functional.reduce_scatter_single_coalesced(
        [torch.full((4 * world,), 1.5), torch.full((4 * world,), 2.0, dtype=torch.bfloat16)], "sum", [0, 0],
        dist.group.WORLD)
    same(made[0] + 0, torch.full((4,), 1.5 * world))
    same(made[1] + 0, torch.full((4,), 2 * world, dtype=torch.bfloat16))


def check_other_memory(rank, world):
    wide = torch.zeros(20 * world)
    out = list(torch.zeros(4 * world).chunk(world)) if rank == 0 else [wide[20 * i:20 * i + 4] for i in range(world)]
    dist.all_gather(out, torch.full((4,), float(rank)))
    for each, tensor in enumerate(out):
        same(tensor, torch.full((4,), float(each)))
    wide = torch.ones(20 * world)
    rows = list(torch.ones(4 * world).chunk(world)) if rank == 0 else [wide[7 * i:7 * i + 4] for i in range(world)]
    part = torch.zeros(4)
    dist.reduce_scatter(part, rows)
    same(part, torch.full((4,), float(world)))
    sent, taken = torch.full((2 * world,), float(rank)), torch.zeros(2 * world)
    splits = None if rank == 0 else [2] * world
    dist.all_to_all_single(taken, sent, splits, splits)
    same(taken, torch.arange(world).repeat_interleave(2).float())


def check_uneven_types(rank, world):
    for dtype in (torch.float32, torch.int16, torch.bool, torch.complex64):
        rows = [given(each, dtype, each + 1) for each in range(world)]
        part = torch.zeros(rank + 1, dtype=dtype)
        dist.reduce_scatter(part, [each.clone() for each in rows])
        same(part, rows[rank] if dtype == torch.bool else rows[rank] * world)
    rows = [torch.full((each + 1,), 1 << rank, dtype=torch.int32) for each in range(world)]
    part = torch.zeros(rank + 1, dtype=torch.int32)
    dist.reduce_scatter(part, rows, Op.BOR)
    same(part, torch.full((rank + 1,), (1 << world) - 1, dtype=torch.int32))
    part = torch.zeros(2, dtype=torch.complex64)
    dist.reduce_scatter_single(part, torch.full((2 * world,), 1 + 1j, dtype=torch.complex64))
    same(part, torch.full((2,), world + world * 1j, dtype=torch.complex64))


def check_average_of_negatives(rank, world):
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        for sum_of_all in (-2 * world - 1, -1, 1, 2 * world + 1):
            tensor = torch.tensor([sum_of_all if rank == 0 else 0], dtype=dtype)
            dist.all_reduce(tensor, Op.AVG)
            assert tensor.item() == int(sum_of_all / world), (dtype, sum_of_all, tensor)


def check_one_after_the_other(rank, world):
    for dtype in (torch.float32, torch.int16):
        tensor = torch.full((6,), 1 + rank, dtype=dtype)
        view = tensor if dtype == torch.int16 else tensor[::2]
        works = [dist.broadcast(view, 0, async_op=True), dist.all_reduce(view, async_op=True),
                 dist.broadcast(view, world - 1, async_op=True)]
        for work in works:
            work.wait()
        same(view.clone(), torch.full(view.shape, world, dtype=dtype))


def check_nothing_blocks(rank, world):
    """Rank 0 starts copies out of strange memory and then sends, the others receive first."""
    tensors = [torch.ones(6)[::2], torch.ones(6, dtype=torch.int16), torch.ones(6, dtype=torch.int32)]
    word = torch.zeros(1)
    if rank != 0:
        dist.recv(word, 0)
    works = [dist.all_reduce(tensor, op, async_op=True) for tensor, op in zip(tensors, (Op.SUM, Op.SUM, Op.BOR))]
    works += [dist.all_reduce(tensor, op, async_op=True) for tensor, op in zip(tensors, (Op.SUM, Op.SUM, Op.BOR))]
    if rank == 0:
        for peer in range(1, world):
            dist.send(word, peer)
    for work in works:
        work.wait()
    same(tensors[0].clone(), torch.full((3,), float(world * world)))
    same(tensors[1], torch.full((6,), world * world, dtype=torch.int16))


def check_polling(rank, world):
    """Whoever asks holds the GIL, which to drop a tensor takes."""
    for _ in range(1000):
        out = [torch.empty(200) for _ in range(world)]
        work = dist.all_gather(out, torch.ones(200), async_op=True)
        future = work.get_future()
        while not work.is_completed():
            pass
        del future


def check_wait_for_the_first(rank, world):
    """Though somebody asked for a later one before, which is not done for long."""
    word = torch.zeros(1)
    first = dist.all_reduce(torch.ones(4), async_op=True)
    if rank == 0:
        second = dist.all_reduce(torch.ones(4), async_op=True)
        future = second.get_future()
        for peer in range(1, world):
            dist.recv(word, peer)
        first.wait(datetime.timedelta(milliseconds=50))
        assert not future.done()
        for peer in range(1, world):
            dist.send(word, peer)
    else:
        first.wait()
        dist.send(word, 0)
        dist.recv(word, 0)
        second = dist.all_reduce(torch.ones(4), async_op=True)
    second.wait()


def check_inference(rank, world):
    with torch.inference_mode():
        view = torch.ones(6)[::2]
        work = dist.all_reduce(view, async_op=True)
        time.sleep(0.3)
        work.wait()
        same(view.clone(), torch.full((3,), float(world)))


def check_split_again(rank, world):
    for _ in range(2):
        group = dist.group.WORLD.split_group(list(range(world)), datetime.timedelta(seconds=10))
        tensor = torch.ones(1)
        group.allreduce([tensor]).wait()
        same(tensor, torch.tensor([float(world)]))


def check_end_of_group(rank, world):
    group = dist.new_group(list(range(world)))
    tensors = [torch.ones(3), torch.ones(6)[::2], torch.ones(3)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor in tensors]
    future = works[2].get_future()
    dist.destroy_process_group(group)
    for work in works[:2]:
        work.wait()
    future.wait()
    for tensor in tensors:
        same(tensor.clone(), torch.full((3,), float(world)))


all_checks = ranks.all_of(globals(), "check_")


def same_store_again(rank, world):
    store = dist.distributed_c10d._get_default_store()
    for _ in range(2):
        dist.destroy_process_group()
        dist.init_process_group("catenary", store=store, rank=rank, world_size=world,
                                timeout=datetime.timedelta(seconds=10))
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        same(tensor, torch.tensor([float(world)]))


def peer_leaves(rank, world):
    """What was done before a peer ended is done, whoever asks later."""
    tensor, sent = torch.ones(3), torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    if rank == world - 1:
        work.wait()
        dist.recv(sent, 0)
        os._exit(0)
    if rank == 0:
        sending = dist.isend(sent, world - 1)
        sending.wait()
    time.sleep(0.3)
    work.wait()
    same(tensor, torch.full((3,), float(world)))


def peer_of_subgroup_ends(rank, world):
    group = dist.new_group([1, 2])
    if rank == 2:
        os._exit(0)
    if rank == 1:
        try:
            dist.all_reduce(torch.ones(1), group=group)
        except RuntimeError as error:
            assert "are ranks 1, 2 of all" in str(error), error
            return
        raise AssertionError("nobody missed rank 2")


def main():
    count = ranks.run(3, all_checks)[0]
    ranks.run(2, same_store_again)
    ranks.run(2, peer_leaves, may_die=(1,))
    ranks.run(3, peer_of_subgroup_ends, may_die=(2,))
    print(f"{count + 3} checks passed")


if __name__ == "__main__":
    sys.exit(main())
