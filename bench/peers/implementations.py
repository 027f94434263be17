"""What `./dev compare` can measure, how each is started, and why one that is absent is absent."""

import dataclasses
import os
import shutil

LAUNCHED_BY_US = "us"  # a process for each rank, with --rank


@dataclasses.dataclass(frozen=True)
class Implementation:
    """A worker in one setting. `launcher` is a program in PATH, or LAUNCHED_BY_US."""
    name: str
    kind: str  # "ours", "peer" or "limit"
    worker: str
    remedy: str
    launcher: str = LAUNCHED_BY_US
    launcher_flags: tuple = ()
    worker_flags: tuple = ()
    environment: tuple = ()
    about: str = ""
    one_process: bool = False  # it stands for all ranks
    only_crowded: bool = False  # says something only where ranks outnumber cores
    operations: tuple = ()  # empty: all
    needs_scratch: bool = False


OPENMPI = "apt-get install libopenmpi-dev openmpi-bin"
MPICH = "apt-get install mpich libmpich-dev"
GLOO = "apt-get install libgloo-dev"
INTEL = ("pip install impi-devel oneccl-devel into a virtual environment, and set "
         "COMPARE_INTEL_PREFIX to that")
OPENMPI_FLAGS = ("--oversubscribe", "--bind-to", "none")


def open_mpi(name, about, *flags, **more):
    return Implementation(name, "peer", "mpi_worker_openmpi", OPENMPI, "mpirun.openmpi",
                          OPENMPI_FLAGS + flags, about=about, **more)


def catalogue(memories, intel_prefix):
    """All that could be measured, in the order of a round."""
    ours = [Implementation(f"catenary-{memory}", "ours", "catenary_worker", "./dev compare builds it",
                           worker_flags=("--memory", memory), about=f"ours, {memory} buffers")
            for memory in memories]
    limits = [Implementation(f"limit-{memory}", "limit", "limit_worker", "./dev compare builds it",
                             worker_flags=("--memory", memory), one_process=True,
                             about=f"what memory alone costs, {memory} buffers")
              for memory in memories]
    prefix = intel_prefix or ""
    intel = (("I_MPI_ROOT", prefix), ("LD_LIBRARY_PATH", os.path.join(prefix, "lib")),
             ("I_MPI_PIN", "0"), ("I_MPI_FABRICS", "shm"))
    intel_mpirun = os.path.join(prefix, "bin", "mpiexec") if prefix else "mpiexec.intel"
    return limits + ours + [
        open_mpi("openmpi", "as it is"),
        open_mpi("openmpi-yield", "with mpi_yield_when_idle", "--mca", "mpi_yield_when_idle", "1",
                 only_crowded=True),
        open_mpi("openmpi-sm", "with coll/sm first", "--mca", "coll_sm_priority", "100"),
        open_mpi("openmpi-ucx", "over UCX", "--mca", "pml", "ucx", "--mca",
                 "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x", "UCX_TLS=sm,self"),
        Implementation("mpich", "peer", "mpi_worker_mpich", MPICH, "mpiexec.mpich",
                       about="as it is"),
        Implementation("gloo", "peer", "gloo_worker", GLOO, needs_scratch=True,
                       about="its options interface, TCP on the loopback interface"),
        Implementation("gloo-halving", "peer", "gloo_worker", GLOO, needs_scratch=True,
                       worker_flags=("--variant", "halving"), operations=("all_reduce",),
                       about="its halving and doubling"),
        Implementation("intel-mpi", "peer", "mpi_worker_intel", INTEL, intel_mpirun,
                       environment=intel, about="over shared memory"),
        Implementation("oneccl", "peer", "oneccl_worker", INTEL, intel_mpirun,
                       environment=intel, about="as it is, started by Intel MPI"),
    ]


def missing(implementation, folder):
    """What this machine lacks to run it; None if nothing."""
    if not os.access(os.path.join(folder, implementation.worker), os.X_OK):
        return f"not installed when the workers were built: {implementation.remedy}"
    if implementation.launcher != LAUNCHED_BY_US and shutil.which(implementation.launcher) is None:
        return f"no {implementation.launcher}: {implementation.remedy}"
    return None
