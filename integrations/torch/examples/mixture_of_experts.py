#!/usr/bin/env python3
"""A layer of experts, one a rank: a gate sends each token to one of them by all_to_all with uneven
splits, and the answers come back the same way.

    python mixture_of_experts.py --procs 2
"""
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_to_all_single

import language


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        world = dist.get_world_size()
        self.gate = nn.Linear(language.WIDTH, world)
        torch.manual_seed(100 + dist.get_rank())  # each rank's expert is another one
        self.mine = nn.Sequential(nn.Linear(language.WIDTH, 4 * language.WIDTH), nn.GELU(),
                                  nn.Linear(4 * language.WIDTH, language.WIDTH))
        torch.manual_seed(4)

    def forward(self, x):
        tokens = x.reshape(-1, language.WIDTH)
        weights, experts = self.gate(tokens).softmax(1).max(1)
        order = experts.argsort(stable=True)
        sent = torch.bincount(experts, minlength=dist.get_world_size())
        taken = torch.empty_like(sent)
        dist.all_to_all_single(taken, sent)
        sent, taken = sent.tolist(), taken.tolist()
        given = all_to_all_single(tokens.new_empty(sum(taken), language.WIDTH), tokens[order],
                                  taken, sent)
        answers = all_to_all_single(tokens.new_empty(sum(sent), language.WIDTH), self.mine(given),
                                    sent, taken)
        back = torch.empty_like(answers).index_copy(0, order, answers)
        return (back * weights[:, None]).view_as(x)


def main(options):
    rank, world = dist.get_rank(), dist.get_world_size()
    model = language.transformer(options.layers, Experts)
    shared = [value for name, value in model.named_parameters() if ".mine." not in name]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = language.batches(language.text(50000), options.batch, rank, world)
    began = time.monotonic()
    for step in range(options.steps):
        inputs, targets = next(data)
        loss = language.loss_of(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        works = [dist.all_reduce(each.grad, dist.ReduceOp.AVG, async_op=True) for each in shared]
        for work in works:
            work.wait()
        optimizer.step()
        language.report(step, options.steps, language.mean_over_ranks(loss), began)


if __name__ == "__main__":
    language.start(main, __doc__, batch=8, layers=2)
