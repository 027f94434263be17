"""Runs one worker of one implementation on all its ranks, and leaves nothing behind.

While ranks measure, this process sleeps: they have the cores for themselves.
"""

import os
import select
import shutil
import signal
import subprocess
import tempfile

from implementations import LAUNCHED_BY_US
from results import WorkerError

MEET_BYTES = 1 << 16  # kMeetBytes of meet.h
GRACE_S = 2


def commands(implementation, ranks, folder, common):
    """The programs to start: one for each rank, or a launcher."""
    worker = [os.path.join(folder, implementation.worker), "--ranks", str(ranks),
              *implementation.worker_flags, *common]
    if implementation.one_process:
        return [worker + ["--rank", "0"]]
    if implementation.launcher == LAUNCHED_BY_US:
        return [worker + ["--rank", str(rank)] for rank in range(ranks)]
    return [[implementation.launcher, *implementation.launcher_flags, "-n", str(ranks), *worker]]


def environment(implementation):
    changed = dict(os.environ, **dict(implementation.environment))
    if os.geteuid() == 0:  # Open MPI wants to hear that twice
        changed.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return changed


def wait_for_one(processes, timeout_s):
    """The next of `processes` to end, or None. Sleeps until then."""
    descriptors = {os.pidfd_open(process.pid): process for process in processes}
    try:
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        ended = poll.poll(timeout_s * 1000)
        return descriptors[ended[0][0]] if ended else None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def stop(processes):
    """Ends them and what they started."""
    for number, grace_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, number)
        for process in processes:
            try:
                process.wait(grace_s)
            except subprocess.TimeoutExpired:
                continue


def last_words(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return " / ".join(lines[-3:])[-400:] or "nothing on standard error"


def run_job(implementation, ranks, points, folder, cpus, timeout_s, flags=()):
    """The output of rank 0. Throws WorkerError if the job fails or takes too long."""
    scratch = tempfile.mkdtemp(prefix="compare-")
    meet = os.memfd_create("compare-meet", 0)
    os.ftruncate(meet, MEET_BYTES)
    common = ["--meet", f"/proc/{os.getpid()}/fd/{meet}", *flags]
    if cpus:
        common += ["--cpus", ",".join(map(str, cpus))]
    if implementation.needs_scratch:
        store = os.path.join(scratch, "store")
        os.mkdir(store)
        common += ["--scratch", store]
    processes = []
    said, errors = os.path.join(scratch, "said"), os.path.join(scratch, "errors")
    try:
        with open(said, "wb") as output, open(errors, "wb") as complaints:
            # In one session, as a launcher's are: where Linux schedules by session (autogroup), ranks
            # of different ones do not give way to each other.
            for command in commands(implementation, ranks, folder, common + list(points)):
                processes.append(subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints,
                    env=environment(implementation), process_group=0))
        left = list(processes)
        while left:
            ended = wait_for_one(left, timeout_s)
            if ended is None:
                raise WorkerError(f"not done after {timeout_s} s")
            left.remove(ended)
            if ended.wait() != 0:
                raise WorkerError(f"status {ended.returncode}: {last_words(errors)}")
        with open(said, encoding="utf-8", errors="replace") as file:
            return file.read()
    finally:
        stop(processes)
        os.close(meet)
        shutil.rmtree(scratch)
