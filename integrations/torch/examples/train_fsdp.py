#!/usr/bin/env python3
"""The same training with FSDP2: parameters, gradients and the optimizer's state are sharded.

    python train_fsdp.py --procs 2
    python train_fsdp.py --procs 2 --dtype bf16
    python train_fsdp.py --procs 2 --shared 1    # its buffers in memory that other ranks read in place
"""
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import language


def main(options):
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    model = language.transformer(options.layers).to(language.TYPES[options.dtype])
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if options.shared:
        model.set_allocate_memory_from_process_group_for_comm(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = language.batches(language.text(50000), options.batch, rank, world)
    began = time.monotonic()
    for step in range(options.steps):
        inputs, targets = next(data)
        loss = language.loss_of(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        language.report(step, options.steps, language.mean_over_ranks(loss), began)


if __name__ == "__main__":
    language.start(main, __doc__, dtype="float32", batch=8, layers=2, shared=0)
