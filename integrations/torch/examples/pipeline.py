#!/usr/bin/env python3
"""A pipeline of two stages: activations go to the second with send and recv, gradients come back, and
four micro-batches are on their way at once.

    python pipeline.py --procs 2
"""
import time

import torch
import torch.distributed as dist

import language


def first_stage(stage, optimizer, inputs, micro):
    outs, sends = [], []
    for number, part in enumerate(inputs.chunk(micro)):
        outs.append(stage(part))
        sends.append(dist.isend(outs[-1].detach(), 1, tag=number))
    for number, out in enumerate(outs):
        gradient = torch.empty_like(out)
        dist.recv(gradient, 1, tag=number)
        out.backward(gradient)
    for send in sends:
        send.wait()
    optimizer.step()
    optimizer.zero_grad()


def second_stage(stage, optimizer, targets, micro):
    parts = targets.chunk(micro)
    places = [torch.empty(*part.shape, language.WIDTH) for part in parts]
    receives = [dist.irecv(place, 0, tag=number) for number, place in enumerate(places)]
    sends, total = [], 0.0
    for number, (place, part) in enumerate(zip(places, parts)):
        receives[number].wait()
        place.requires_grad_()
        loss = language.loss_of(stage(place), part) / micro
        loss.backward()
        sends.append(dist.isend(place.grad, 0, tag=number))
        total += loss.item()
    for send in sends:
        send.wait()
    optimizer.step()
    optimizer.zero_grad()
    return total


def main(options):
    rank = dist.get_rank()
    whole = language.transformer(options.layers)
    half = len(whole) // 2
    stage = whole[:half] if rank == 0 else whole[half:]
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-3)
    data = language.batches(language.text(50000), options.batch, 0, 1)
    began = time.monotonic()
    for step in range(options.steps):
        inputs, targets = next(data)
        loss = torch.zeros(1)
        if rank == 0:
            first_stage(stage, optimizer, inputs, options.micro)
        else:
            loss.fill_(second_stage(stage, optimizer, targets, options.micro))
        dist.broadcast(loss, 1)
        language.report(step, options.steps, loss.item(), began)


if __name__ == "__main__":
    language.start(main, __doc__, only_ranks=2, batch=16, layers=2, micro=4)
