#!/usr/bin/env python3
"""Data parallel training of a small transformer.

    python train_ddp.py --procs 2
    torchrun --nproc-per-node 4 train_ddp.py --dtype bfloat16
    python train_ddp.py --procs 2 --backend gloo        # the same losses, to rounding
    python train_ddp.py --procs 2 --trace trace.json    # a trace for Perfetto: overlap can be seen
"""
import contextlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import language


def main(options):
    rank, world = dist.get_rank(), dist.get_world_size()
    model = language.transformer(options.layers).to(language.TYPES[options.dtype])
    model = DistributedDataParallel(model, bucket_cap_mb=options.bucket_mb)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = language.batches(language.text(50000), options.batch, rank, world)
    profile = torch.profiler.profile() if options.trace and rank == 0 else contextlib.nullcontext()
    began = time.monotonic()
    with profile:
        for step in range(options.steps):
            inputs, targets = next(data)
            loss = language.loss_of(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            language.report(step, options.steps, language.mean_over_ranks(loss), began)
    if options.trace and rank == 0:
        profile.export_chrome_trace(options.trace)


if __name__ == "__main__":
    language.start(main, __doc__, dtype="float32", batch=8, layers=2, bucket_mb=1.0, trace="")
