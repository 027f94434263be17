"""Ranks for tests: forked processes that run one function each and report what went wrong.

The parent must not have used the backend: a forked child could not.
"""
import datetime
import os
import tempfile
import time
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def start(rank, world, path, timeout=60, backend="catenary"):
    """Makes this process rank `rank` of `world`, which meet in the file `path`."""
    import torch_catenary  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=timeout))


def _rank(function, rank, world, path, arguments, results):
    try:
        start(rank, world, path, **arguments)
        answer = function(rank, world)
        if dist.is_initialized():
            dist.destroy_process_group()
        results.put((rank, None, answer))
    except BaseException:
        results.put((rank, traceback.format_exc(), None))
        results.close()
        results.join_thread()
        os._exit(1)


def all_of(names, prefix):
    """A function for run(): calls those of `names` that begin like that, and tells how many."""
    checks = [value for name, value in sorted(names.items()) if name.startswith(prefix)]

    def all_checks(rank, world):
        for check in checks:
            check(rank, world)
            dist.barrier()
        return len(checks)

    return all_checks


def run(world, function, limit=120, may_die=(), **arguments):
    """What function(rank, world) returned at each rank; raises if one of them raised or took longer
    than `limit` seconds. Ranks in `may_die` need not answer."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory(prefix="catenary_ranks_") as scratch:
        path = os.path.join(scratch, "meet")
        ranks = [context.Process(target=_rank, args=(function, i, world, path, arguments, results))
                 for i in range(world)]
        for process in ranks:
            process.start()
        answers, deadline = {}, time.monotonic() + limit
        try:
            while len(answers) < world - len(may_die):
                rank, error, answer = results.get(timeout=max(0.1, deadline - time.monotonic()))
                if error:
                    raise AssertionError(f"rank {rank} of {world}: {error}")
                answers[rank] = answer
            for process in ranks:
                process.join(max(0.1, deadline - time.monotonic()))
            hung = [i for i, process in enumerate(ranks) if process.is_alive()]
            if hung:
                raise AssertionError(f"ranks {hung} did not end")
        finally:
            for process in ranks:
                if process.is_alive():
                    process.kill()
                process.join()
    return answers
