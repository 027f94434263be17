"""What the examples share: text that they make themselves, a small transformer, and how they start.

Start any of them with torchrun, mpirun or srun, or with --procs N and nothing else.
"""
import argparse
import os
import random
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import nn
from torch.nn import functional

CONTEXT, WIDTH, HEADS = 64, 128, 4
TYPES = {"float32": torch.float32, "fp32": torch.float32, "bfloat16": torch.bfloat16, "bf16": torch.bfloat16}
LETTERS = "abcdefghijklmnopqrstuvwxyz .,\n"


def text(length, seed=1):
    """Sentences by a small grammar: enough order that a model can learn it, and no file to fetch."""
    chance = random.Random(seed)
    who = ["the chain", "a cable", "the arch", "every bridge", "the tower", "some wire"]
    does = ["hangs from", "carries", "follows", "bends under", "rests on", "holds"]
    what = ["two points", "its own weight", "the curve", "a load", "the pillars", "the ground"]
    parts = []
    while sum(map(len, parts)) < length:
        parts.append(f"{chance.choice(who)} {chance.choice(does)} {chance.choice(what)}.\n")
    return torch.tensor([LETTERS.index(letter) for letter in "".join(parts)[:length]])


def batches(tokens, size, rank, world, seed=2):
    """For each step, this rank's share of the same batch that one process alone would take."""
    chance = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - CONTEXT - 1, (size * world,), generator=chance)
        rows = torch.stack([tokens[start:start + CONTEXT + 1] for start in starts[rank::world]])
        yield rows[:, :-1], rows[:, 1:]


class Block(nn.Module):
    def __init__(self, mixer=None):
        super().__init__()
        self.before_attention, self.before_mixer = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mixer = mixer or nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.queries_keys_values(self.before_attention(x))
        q, k, v = heads.view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mixer(self.before_mixer(x))


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(CONTEXT, WIDTH)

    def forward(self, tokens):
        return self.letters(tokens) + self.places(torch.arange(tokens.shape[1]))


def transformer(layers=2, mixer=lambda: None):
    torch.manual_seed(3)
    head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS)))
    return nn.Sequential(Embedding(), *(Block(mixer()) for _ in range(layers)), head)


def loss_of(logits, targets):
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def mean_over_ranks(value):
    value = value.detach().clone()
    dist.all_reduce(value)
    return (value / dist.get_world_size()).item()


def report(step, steps, loss, began):
    if dist.get_rank() == 0 and (step % 10 == 0 or step == steps - 1):
        print(f"step {step:4}  loss {loss:.4f}  {(time.monotonic() - began) / (step + 1) * 1e3:.1f} ms a step",
              flush=True)


def _one(index, main, options, port):
    os.environ.update(RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=str(options.procs),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    _main(main, options)


def _main(main, options):
    import torch_catenary  # noqa: F401
    import torch_catenary.launch

    torch_catenary.launch.set_environment()
    if options.only_ranks and int(os.environ["WORLD_SIZE"]) != options.only_ranks:
        raise SystemExit(f"this runs as {options.only_ranks} ranks, not as {os.environ['WORLD_SIZE']}")
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    try:
        main(options)
    finally:
        dist.destroy_process_group()


def start(main, description, only_ranks=None, **more):
    """Runs main(options) as a rank; `more` are options with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(only_ranks=only_ranks)
    parser.add_argument("--procs", type=int, help="start so many processes, without any launcher")
    parser.add_argument("--backend", default="catenary")
    parser.add_argument("--steps", type=int, default=100)
    for name, value in more.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help="default: %(default)r",
                            choices=TYPES if name == "dtype" else None)
    options = parser.parse_args()
    if options.procs and only_ranks and options.procs != only_ranks:
        parser.error(f"this runs as {only_ranks} ranks: --procs {only_ranks}")
    if not options.procs:
        _main(main, options)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(_one, (main, options, port), nprocs=options.procs)
