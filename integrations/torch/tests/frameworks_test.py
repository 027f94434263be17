#!/usr/bin/env python3
"""What torch builds on a backend: functional collectives and the compiler, device meshes and DTensor,
distributed checkpoints, profiler, debug mode, composite backend strings, launchers.

usage: frameworks_test.py
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import ranks


def functional_collectives(rank, world):
    group = list(range(world))
    total = functional.all_reduce(torch.full((4,), float(rank)), "sum", group)
    assert torch.equal(total + 0, torch.full((4,), world * (world - 1) / 2))
    rows = functional.all_gather_tensor(torch.full((2,), float(rank)), 0, group)
    assert torch.equal(rows + 0, torch.arange(world).repeat_interleave(2).float())
    part = functional.reduce_scatter_tensor(torch.ones(2 * world), "avg", 0, group)
    assert torch.equal(part + 0, torch.ones(2))
    swapped = functional.all_to_all_single(torch.full((world,), float(rank)), None, None, group)
    assert torch.equal(swapped + 0, torch.arange(world).float())

    @torch.compile(backend="aot_eager")
    def step(x):
        return functional.all_reduce(x * 2, "sum", group) + 1

    assert torch.equal(step(torch.ones(3)), torch.full((3,), 2.0 * world + 1))


def tensors_on_a_mesh(rank, world):
    mesh = init_device_mesh("cpu", (world,))
    whole = torch.arange(world * 6.0).reshape(world * 2, 3)
    shards = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(shards.to_local(), whole[2 * rank:2 * rank + 2])
    assert torch.equal(shards.redistribute(mesh, [Replicate()]).to_local(), whole)
    columns = shards.redistribute(mesh, [Shard(1)]).redistribute(mesh, [Replicate()])
    assert torch.equal(columns.to_local(), whole)
    product = torch.mm(distribute_tensor(whole, mesh, [Shard(0)]), distribute_tensor(whole.t(), mesh, [Replicate()]))
    assert torch.allclose(product.full_tensor(), whole @ whole.t())


def checkpoints(rank, world):
    path = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(path)
    mesh = init_device_mesh("cpu", (world,))
    weights = torch.arange(world * 4.0)
    state = {"weights": distribute_tensor(weights, mesh, [Shard(0)]), "step": 7}
    checkpoint.save(state, checkpoint_id=path[0])
    loaded = {"weights": distribute_tensor(torch.zeros_like(weights), mesh, [Shard(0)]), "step": 0}
    checkpoint.load(loaded, checkpoint_id=path[0])
    assert isinstance(loaded["weights"], DTensor) and loaded["step"] == 7
    assert torch.equal(loaded["weights"].full_tensor(), weights)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(path[0])


def profiles(rank, world):
    with torch.profiler.profile() as profile:
        dist.all_reduce(torch.ones(100))
        dist.broadcast(torch.ones(100), 0, async_op=True).wait()
    names = {event.name for event in profile.events()}
    assert {"catenary:all_reduce", "catenary:broadcast"} <= names, names


def all_frameworks(rank, world):
    for check in (functional_collectives, tensors_on_a_mesh, checkpoints, profiles):
        check(rank, world)


def debug_mode(rank, world):
    """torch's wrapper compares what ranks call, through gloo, before it calls the backend."""
    dist.all_reduce(torch.ones(3))
    try:
        dist.all_reduce(torch.ones(3 + rank))
    except RuntimeError as error:
        assert "mismatch" in str(error), error
        return
    raise AssertionError("nobody noticed that the shapes differ")


STARTED = """
import os, torch, torch.distributed as dist, torch_catenary, torch_catenary.launch
by = torch_catenary.launch.set_environment()
dist.init_process_group("cpu:catenary")
total = torch.ones(1)
dist.all_reduce(total)
os.write(1, f"{by} {dist.get_rank()} of {int(total.item())}\\n".encode())  # in one piece
dist.destroy_process_group()
"""


def launchers():
    """Started by mpirun, by torchrun and by nothing, each rank knows who it is."""
    from torch_catenary import launch

    for nodes, first in (("node[03-07,12],login1", "node03"), ("a1,a2", "a1"), ("n[9]-x", "n9-x"),
                         ("rack[1-2]node[03-07,12],login1", "rack1node03")):
        assert launch.first_host(nodes) == first, launch.first_host(nodes)
    made = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "c[5-6]"}
    assert launch.set_environment(made) == "SLURM"
    assert (made["RANK"], made["WORLD_SIZE"], made["LOCAL_RANK"], made["MASTER_ADDR"]) == ("3", "8", "1", "c5")
    old = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_NODELIST": "m1,m2"}
    launch.set_environment(old)
    assert (old["LOCAL_RANK"], old["MASTER_ADDR"]) == ("0", "m1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "MASTER_PORT": port, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write(STARTED)
        program.flush()
        python = [sys.executable, "-W", "ignore", program.name]
        torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2",
                    "--master-port", port]
        mpirun = [shutil.which("mpirun.openmpi") or "mpirun", "-n", "2", "--oversubscribe"]
        for name, size, command in (("Open MPI", 2, [*mpirun, *python]), ("torchrun", 2, [*torchrun, program.name]),
                                    ("nothing", 1, python)):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
            for rank in range(size):
                assert f"{name} {rank} of {size}" in done.stdout, (done.stdout, done.stderr)


def main():
    began = time.monotonic()
    ranks.run(2, all_frameworks)
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    ranks.run(2, debug_mode)
    launchers()
    print(f"what builds on the backend works: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
