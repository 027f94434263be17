#!/usr/bin/env python3
"""What torch's own suite does not ask: every reduction with every data type, tensors of every layout,
uneven parts, tags and any source, futures, timeouts and errors.

usage: semantics_test.py [--world N ...]
"""
import argparse
import datetime
import sys
import time

import torch
import torch.distributed as dist

import ranks

Op = dist.ReduceOp
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64, torch.uint32,
            torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SMALL_FLOATS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
COMPLEX = [torch.complex64, torch.complex128]
ALL = [torch.bool, *INTEGERS, *FLOATS, *SMALL_FLOATS, *COMPLEX]


def given(rank, dtype, count=24):
    """What a rank contributes: small whole numbers, so that every order of adding gives the same."""
    numbers = (torch.arange(count) * 7 + rank * 5) % 4
    if dtype == torch.bool:
        return numbers > 1
    if dtype.is_complex:
        return torch.complex(numbers.double(), (numbers + 1).double()).to(dtype)
    return numbers.to(dtype)


def wanted(op, dtype, inputs):
    """The reduction in 64 bits, or None if it has no meaning."""
    bitwise = {Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor}
    if op in bitwise:
        if dtype.is_floating_point or dtype.is_complex:
            return None
        wide = [each.to(torch.int64) for each in inputs]
        combine = bitwise[op]
    else:
        wide = [each.to(torch.complex128 if dtype.is_complex else torch.float64) for each in inputs]
        if op in (Op.PRODUCT, Op.MIN, Op.MAX) and dtype.is_complex or op == Op.AVG and dtype == torch.bool:
            return None
        combine = {Op.SUM: torch.add, Op.AVG: torch.add, Op.PRODUCT: torch.mul, Op.MIN: torch.minimum,
                   Op.MAX: torch.maximum}[op]
    total = wide[0]
    for each in wide[1:]:
        total = combine(total, each)
    if op == Op.AVG:
        total = total / len(inputs)
        if not (dtype.is_floating_point or dtype.is_complex):
            total = total.floor()
    if dtype == torch.bool:
        return total != 0
    return total.to(dtype)


def same(one, other, roundings=0):
    assert one.dtype == other.dtype and one.shape == other.shape, (one, other)
    wide = torch.complex128 if one.is_complex() else torch.float64
    within = roundings * torch.finfo(one.dtype).eps if roundings else 0
    assert torch.allclose(one.to(wide), other.to(wide), within, 0), f"{one} is not {other}"


def roundings_of(op, dtype):
    """An average multiplies by one over the number of ranks."""
    return 2 if op == Op.AVG and (dtype.is_floating_point or dtype.is_complex) else 0


def raises(text, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except Exception as error:
        assert text in str(error), f"{text!r} is not in {str(error)!r}"
        return
    raise AssertionError(f"no error that says {text!r}")


def check_reductions(rank, world):
    for dtype in ALL:
        inputs = [given(each, dtype) for each in range(world)]
        for op in (Op.SUM, Op.AVG, Op.PRODUCT, Op.MIN, Op.MAX, Op.BAND, Op.BOR, Op.BXOR):
            total = wanted(op, dtype, inputs)
            within = roundings_of(op, dtype)
            if total is None:
                raises("ReduceOp" if not dtype.is_complex else "", dist.all_reduce, inputs[rank].clone(), op)
                continue
            everywhere, at_root = inputs[rank].clone(), inputs[rank].clone()
            dist.all_reduce(everywhere, op)
            same(everywhere, total, within)
            dist.reduce(at_root, world - 1, op)
            if rank == world - 1:
                same(at_root, total, within)
            rows = [given(each, dtype, 6 * world) for each in range(world)]
            total = wanted(op, dtype, rows).chunk(world)[rank]
            if not dtype.is_complex:
                part = torch.empty(6, dtype=dtype)
                dist.reduce_scatter_single(part, rows[rank], op)
                same(part, total, within)
                part = torch.empty(6, dtype=dtype)
                dist.reduce_scatter(part, [each.clone() for each in rows[rank].chunk(world)], op)
                same(part, total, within)


def check_factor(rank, world):
    for dtype in (*FLOATS, torch.int32):
        tensor = given(rank, dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(2.0))
        same(tensor, sum(given(each, dtype) * 2 for each in range(world)).to(dtype))
    tensor = given(rank, torch.float32)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(torch.tensor([0.5])))
    same(tensor, sum(given(each, torch.float32) * 0.5 for each in range(world)))


def strange(tensor):
    """The same elements, but not one behind the other."""
    place = torch.zeros(2 * tensor.numel(), dtype=tensor.dtype)[::2]
    place.copy_(tensor.flatten())
    assert not place.is_contiguous()
    return place


def check_movements(rank, world):
    for dtype in ALL:
        for form in (torch.clone, strange):
            inputs = [given(each, dtype) for each in range(world)]
            mine = form(inputs[rank])
            blank = [form(torch.zeros_like(inputs[0])) for _ in range(world)]
            dist.all_gather(blank, mine)
            for each, expected in zip(blank, inputs):
                same(each, expected)
            whole = form(torch.zeros(24 * world, dtype=dtype))
            dist.all_gather_single(whole, mine)
            same(whole, torch.cat(inputs))
            tensor = form(inputs[rank])
            dist.broadcast(tensor, world - 1)
            same(tensor, inputs[world - 1])
            blank = [form(torch.zeros_like(inputs[0])) for _ in range(world)] if rank == 0 else None
            dist.gather(mine, blank, 0)
            for each, expected in zip(blank or [], inputs):
                same(each, expected)
            tensor = form(torch.zeros_like(inputs[0]))
            dist.scatter(tensor, [form(each) for each in inputs] if rank == 0 else None, 0)
            same(tensor, inputs[rank])
            blank = [form(torch.zeros(8, dtype=dtype)) for _ in range(world)]
            dist.all_to_all(blank, [form(given(10 * rank + each, dtype, 8)) for each in range(world)])
            for each, tensor in enumerate(blank):
                same(tensor, given(10 * each + rank, dtype, 8))


def check_uneven(rank, world):
    rows = [given(each, torch.float32, 3 * (each + 1)).reshape(-1, 3) for each in range(world)]
    gathered = [torch.zeros_like(each) for each in rows]
    dist.all_gather(gathered, rows[rank])
    for one, other in zip(gathered, rows):
        same(one, other)
    part = torch.empty_like(rows[rank])
    dist.reduce_scatter(part, [each.clone() for each in rows])
    same(part, rows[rank] * world)
    sent = [rank + each for each in range(world)]
    out = torch.zeros(sum(sent), 2, dtype=torch.bfloat16)
    dist.all_to_all_single(out, torch.full((sum(sent), 2), rank, dtype=torch.bfloat16), sent, sent)
    same(out, torch.cat([torch.full((rank + each, 2), each, dtype=torch.bfloat16) for each in range(world)]))


def check_coalesced(rank, world):
    tensors = [torch.full((n,), float(rank)) for n in (1, 100, 100000)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, world * (world - 1) / 2))
    wholes = [torch.zeros(world * 3), torch.zeros(world * 5)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for whole in wholes:
            dist.all_gather_single(whole, torch.full((len(whole) // world,), float(rank)))
    manager.wait()
    for whole in wholes:
        same(whole, torch.arange(world).repeat_interleave(len(whole) // world).float())
    parts = [torch.zeros(2), torch.zeros(4)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for part in parts:
            dist.reduce_scatter_single(part, torch.ones(len(part) * world))
    manager.wait()
    for part in parts:
        same(part, torch.full_like(part, world))


def check_messages(rank, world):
    long = 200000
    if rank == 0:
        for peer in range(1, world):  # long and short ones, in another order than they are taken
            works = [dist.isend(torch.full((count,), float(tag)), peer, tag=tag)
                     for tag, count in ((1, long), (2, 3), (3, long), (4, 3))]
            for work in works:
                work.wait()
        for _ in range(2 * (world - 1)):
            tensor = torch.zeros(long)
            source = dist.recv(tensor, tag=9)
            same(tensor, torch.full((long,), float(source)))
    else:
        for tag in (4, 3, 2, 1):
            tensor = torch.zeros(long if tag % 2 else 3)
            assert dist.recv(tensor, 0, tag=tag) == 0
            same(tensor, torch.full_like(tensor, tag))
        for _ in range(2):
            dist.send(torch.full((long,), float(rank)), 0, tag=9)
    dist.barrier()
    right, left = (rank + 1) % world, (rank - 1) % world
    for count in (0, 1, 250, 255, 256, 100000):
        into = strange(torch.zeros(count)) if count > 1 else torch.zeros(count)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.irecv, into, left), dist.P2POp(dist.isend, torch.full((count,), float(rank)), right)])
        for work in works:
            work.wait()
        same(into, torch.full((count,), float(left)))
    if rank == 0:
        dist.send(torch.ones(5), 1)
    if rank == 1:
        raises("20 bytes", dist.recv, torch.zeros(3), 0)
    if rank == 0:
        for count in (5, 5000):
            dist.send(torch.ones(count), 1)
    if rank == 1:
        for count in (5, 5000):
            raises("of Float with tag 0", dist.recv, torch.zeros(count, dtype=torch.int32), 0)
    raises("a tag is not negative", dist.isend, torch.ones(1), right, tag=-1)


def receive_late(rank, world):
    """Ranks that only send to each other for longer than the library takes to be suspicious (5 s)."""
    right, left = (rank + 1) % world, (rank - 1) % world
    given = torch.full((2000000,), float(rank))
    works = [dist.isend(given, right, tag=tag) for tag in range(2)]
    time.sleep(7)
    for tag in (1, 0):
        into = torch.zeros_like(given)
        dist.recv(into, left, tag=tag)
        same(into, torch.full_like(given, left))
    for work in works:
        work.wait()
    dist.barrier()  # a rank whose process ends with frames asked for seems lost to those that still send


def check_futures(rank, world):
    tensor = torch.full((1000,), float(rank))
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    same(doubled.wait(), torch.full((1000,), float(world * (world - 1))))
    assert work.is_completed()

    def nested(future):
        inner = dist.all_reduce(future.value()[0], async_op=True).get_future()
        inner.wait()
        return inner.value()[0]

    first = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(nested)
    same(first.wait(), torch.full((3,), float(world * world)))
    late = dist.all_reduce(torch.ones(3), async_op=True)
    late.wait()
    same(late.get_future().value()[0], torch.full((3,), float(world)))
    parts = [torch.zeros(2) for _ in range(world)]
    gathered = dist.all_gather(parts, torch.full((2,), float(rank)), async_op=True)
    gathered.wait()
    same(gathered.get_future().value()[world - 1], torch.full((2,), world - 1.0))  # as gloo's and NCCL's
    works = [dist.all_reduce(torch.ones(10000), async_op=True) for _ in range(20)]
    del works
    dist.barrier()
    polled = dist.all_reduce(torch.ones(100000), async_op=True)
    while not polled.is_completed():
        time.sleep(0.001)


def check_memory(rank, world):
    import torch_catenary

    with torch_catenary.shared_allocations():
        with torch_catenary.shared_allocations():
            pass
        large, small = torch.ones(20000), torch.ones(20)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 200))
        for _ in range(3):
            model(torch.ones(4, 200)).sum().backward()
    assert torch_catenary.is_shared(large) and not torch_catenary.is_shared(small)
    assert not torch_catenary.is_shared(torch.ones(20000))
    buffers = []

    def look(_state, bucket):
        buffers.append(torch_catenary.is_shared(bucket.buffer()))
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, look)
    model(torch.ones(4, 200)).sum().backward()
    assert all(buffers) and buffers, buffers
    tensor = torch_catenary.empty(300, 1000)
    assert torch_catenary.is_shared(tensor)
    tensor.fill_(rank)
    dist.all_reduce(tensor)
    same(tensor, torch.full((300, 1000), world * (world - 1) / 2))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend.supports_tensor_alloc(torch.device("cpu"))


def check_groups(rank, world):
    halves = [dist.new_group([0]), dist.new_group(list(range(1, world)))]
    mine = halves[min(rank, 1)]
    tensor = torch.ones(4)
    dist.all_reduce(tensor, group=mine)
    same(tensor, torch.full((4,), 1.0 if rank == 0 else world - 1.0))
    everybody = dist.group.WORLD
    part = everybody.split_group(list(range(1, world)), datetime.timedelta(seconds=30), None, "part", "a part")
    assert (part is None) == (rank == 0)
    everybody.split_group([0], datetime.timedelta(seconds=1), None, "hasty", "a part without patience")
    if rank == 0:
        time.sleep(1.5)
    dist.barrier()  # whose patience is still its own
    if part:
        work = part.allreduce([tensor])
        work.wait()
        same(tensor, torch.full((4,), (world - 1.0) ** 2))


def check_monitored_barrier(rank, world):
    import torch_catenary

    for _ in range(3):
        torch_catenary.monitored_barrier()
    keys = dist.distributed_c10d._get_default_store().num_keys()
    dist.barrier()
    for _ in range(5):
        torch_catenary.monitored_barrier()
    dist.barrier()
    assert dist.distributed_c10d._get_default_store().num_keys() <= keys + world


def check_wait_with_timeout(rank, world):
    if rank == 0:
        time.sleep(0.5)
    work = dist.barrier(async_op=True)
    if rank != 0:
        raises("Timed out waiting 50ms", work.wait, datetime.timedelta(milliseconds=50))
    work.wait()
    dist.all_reduce(torch.ones(2))  # the group is as good as before


def check_refused(rank, world):
    raises("one tensor", dist.group.WORLD.allreduce, [torch.ones(1), torch.ones(1)])
    raises("elements", dist.all_gather_single, torch.ones(1), torch.ones(2))
    raises("cannot send to itself", dist.group.WORLD.send, [torch.ones(1)], rank, 0)
    raises("not complex", dist.all_reduce, torch.ones(1, dtype=torch.complex64),
           dist._make_nccl_premul_sum(torch.tensor([1j])))
    raises("a whole factor", dist.all_reduce, torch.ones(1, dtype=torch.int32), dist._make_nccl_premul_sum(0.5))
    alone = [dist.new_group([each]) for each in range(world)][rank]
    raises("nobody to receive from", dist.recv, torch.zeros(1), group=alone)
    dist.barrier()


all_checks = ranks.all_of(globals(), "check_")


def time_out(rank, world):
    if rank == 0:
        began = time.monotonic()
        raises("Timed out waiting 1000ms for catenary:all_reduce", dist.all_reduce, torch.ones(1))
        assert time.monotonic() - began < 5
    else:
        time.sleep(1.5)
        raises("rank 0", dist.all_reduce, torch.ones(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, nargs="*", default=[2, 3])
    worlds = parser.parse_args().world
    ranks.run(max(worlds), receive_late)
    for world in worlds:
        began = time.monotonic()
        count = ranks.run(world, all_checks)[0]
        ranks.run(world, time_out, timeout=1)
        print(f"{world} ranks: {count + 1} checks passed in {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
