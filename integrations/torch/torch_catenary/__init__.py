"""Catenary as a backend of torch.distributed, for CPU tensors.

Importing this registers the backend "catenary":

    import torch.distributed as dist
    import torch_catenary
    dist.init_process_group("catenary")
"""
import atexit
import contextlib
import datetime
import threading

import torch
import torch.distributed as dist

from torch_catenary import _backend

__all__ = ["empty", "is_shared", "monitored_barrier", "shared_allocations"]


def _create(options, _backend_options):
    return _backend.create(
        options.store, options.group_rank, options.group_size, options.timeout, options.group_id,
        [int(rank) for rank in options.global_ranks_in_group])


def empty(*sizes, dtype=None):
    """An uninitialized tensor in memory that other ranks of this machine read where it lies, so that
    what is sent from it is not copied on this side."""
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        sizes = sizes[0]
    return _backend.empty(list(sizes), dtype or torch.get_default_dtype())


def is_shared(tensor):
    """Whether the tensor lies in such memory."""
    return _backend.is_in_shared_memory(tensor)


_open = 0
_open_lock = threading.Lock()


def _count_shared_allocations(change):
    global _open
    with _open_lock:
        _open += change
        _backend.allocate_large_in_shared_memory(_open > 0)


@contextlib.contextmanager
def shared_allocations():
    """While this is open, CPU tensors of 64 KiB and more that torch makes in this process lie in such
    memory, and stay there. Open it around DistributedDataParallel's construction and the first two
    steps, in which it makes its buckets. Do not fork meanwhile."""
    _count_shared_allocations(+1)
    try:
        yield
    finally:
        _count_shared_allocations(-1)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """dist.monitored_barrier, which itself takes no backend but gloo: rank 0 raises an error that
    names who did not come in time, the others one that says so."""
    limit = {} if timeout is None else {"timeout": timeout}  # without one it is the group's
    (group or dist.group.WORLD).monitored_barrier(**limit, wait_all_ranks=wait_all_ranks)


# Callbacks run on threads of the backend, which could not go on once Python has ended. And groups that
# ended say goodbye, of which other ranks are not through.
atexit.register(_backend.rest, datetime.timedelta(seconds=10))
dist.Backend.register_backend("catenary", _create, extended_api=True, devices=["cpu"])
