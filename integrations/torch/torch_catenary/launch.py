"""Who am I? The answer of whatever started this process, in the variables that torch reads.

torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. Open MPI, MPICH and Intel MPI,
MVAPICH and SLURM have variables of their own; set_environment() translates them, so that

    torch_catenary.launch.set_environment()
    dist.init_process_group("catenary")

works under each of them, and alone, as the only rank.
"""
import os
import re

# (the starter, its variables for rank, number of ranks, rank on this machine). The first one whose
# rank and size are set is believed. SLURM is the last: its variables are also there around mpirun.
STARTERS = [
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    ("MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
]
PORT = "29500"


def first_host(nodes):
    """The first name of a list in SLURM's way of writing: rack[1-2]node[03-07,12],login1 begins with
    rack1node03."""
    match = re.match(r"(?:[^,\[\]]|\[[^\[\]]+\])+(?=,|$)", nodes)
    if not match:
        raise ValueError(f"not a list of nodes: {nodes!r}")
    return re.sub(r"\[([^-,\]]+)[^\]]*\]", r"\1", match.group())


def set_environment(environment=os.environ):
    """Sets what is not set; returns the name of the starter."""
    for name, rank, size, local in STARTERS:
        if rank in environment and size in environment:
            break
    else:
        name, rank, size, local = "nothing", "RANK", "WORLD_SIZE", "LOCAL_RANK"
    environment.setdefault("RANK", environment.get(rank, "0"))
    environment.setdefault("WORLD_SIZE", environment.get(size, "1"))
    environment.setdefault("LOCAL_RANK", environment.get(local, environment["RANK"]))
    lists = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")  # the last one is the oldest's
    nodes = next((environment[name] for name in lists if environment.get(name)), None)
    environment.setdefault("MASTER_ADDR", first_host(nodes) if nodes else "127.0.0.1")
    environment.setdefault("MASTER_PORT", PORT)
    return name
