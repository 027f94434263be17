#!/usr/bin/env python3
"""The exported files of MSCCL compute the collective: reads them back as MSCCL's runtime would,
without looking at what they were made from, and runs them on symbols.

usage: msccl.py <catenary>              checks every algorithm that can be exported
       msccl.py <catenary> --self-test  fails unless each broken copy of some files is noticed

A chunk is the list of contributions in it, (rank, chunk of its input). Thread blocks run in any
order that messages and dependences leave; that the outcome is the same in all of them is seen from
this: of two operations of a rank that touch one place, one of them writing, one is known to come
first. A connection holds two messages, as NCCL's do. In place, input and output are one memory, which
files call i or o and which is called m here.
"""
import copy
import sys
import xml.etree.ElementTree

import command

KNOWN = ("AllReduce", "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AlltoAll")
SENDS, RECEIVES = {"s", "rcs", "rrs", "rrcs"}, {"r", "rcs", "rrs", "rrc", "rrcs"}
READS_SRC = {"s", "rrs", "rrc", "rrcs", "cpy", "re"}
WRITES_DST = {"r", "rcs", "rrc", "rrcs", "cpy", "re"}
TYPES = SENDS | RECEIVES | {"cpy", "re", "nop"}
CAPACITY = 2
NUMBERS = ("s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")


class Wrong(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Wrong(what)


class Operation:
    def __init__(self, rank, block, element, in_place):
        buffers = {"i": "m", "o": "m", "s": "s"} if in_place else {"i": "i", "o": "o", "s": "s"}
        self.rank, self.block = rank, block
        values = {name: int(element.get(name)) for name in NUMBERS}
        self.step, self.count = values["s"], values["cnt"]
        self.type = element.get("type")
        self.src = (buffers[element.get("srcbuf")], values["srcoff"])
        self.dst = (buffers[element.get("dstbuf")], values["dstoff"])
        self.depends = (values["depid"], values["deps"])
        self.is_awaited = values["hasdep"] == 1
        need(self.type in TYPES, f"rank {rank}: no such type {self.type}")
        need(self.type == "nop" or self.count == 1, f"rank {rank}: more than a chunk at a time")

    def reads(self):
        return [self.src] * (self.type in READS_SRC) + [self.dst] * (self.type == "re")

    def writes(self):
        return [self.dst] * (self.type in WRITES_DST)


class File:
    """What MSCCL's parser makes of a file, and what it refuses."""

    def __init__(self, root):
        need(root.tag == "algo" and root.get("proto") in ("Simple", "LL", "LL128"), "no algorithm")
        need(len(root.get("name")) <= 63, "the name is too long")
        self.collective = root.get("coll")
        self.ranks, self.chunks = int(root.get("ngpus")), int(root.get("nchunksperloop"))
        self.in_place = root.get("inplace") == "1"
        self.channels = int(root.get("nchannels"))
        self.gpus = list(root)
        need([int(gpu.get("id")) for gpu in self.gpus] == list(range(self.ranks)), "ranks are missing")
        self.sizes = [{"i": int(gpu.get("i_chunks")), "o": int(gpu.get("o_chunks")),
                       "s": int(gpu.get("s_chunks"))} for gpu in self.gpus]
        for size in self.sizes:
            for buffer, short in (("i", "allgather"), ("o", "reduce_scatter")):
                times = self.ranks if self.collective == short else 1
                need(size[buffer] in (0, self.chunks // times), "sizes contradict each other")
        if self.in_place:
            for size in self.sizes:
                need((size["i"] == 0) != (size["o"] == 0), "two buffers in place")
                size["m"] = size.pop("i") + size.pop("o")
        self.blocks = [self.read_blocks(rank, gpu) for rank, gpu in enumerate(self.gpus)]

    def read_blocks(self, rank, gpu):
        blocks, peers = [], set()
        for number, element in enumerate(gpu):
            need(int(element.get("id")) == number, f"rank {rank}: a thread block is missing")
            send, recv, channel = (int(element.get(name)) for name in ("send", "recv", "chan"))
            need(0 <= channel < self.channels, f"rank {rank}: no such channel")
            for way, peer in (("send", send), ("recv", recv)):
                need(peer != rank and -1 <= peer < self.ranks, f"rank {rank}: no such peer")
                need(peer < 0 or (way, peer, channel) not in peers,
                     f"rank {rank}: two blocks at one end of a connection")
                peers.add((way, peer, channel))
            operations = [Operation(rank, number, step, self.in_place) for step in element]
            need([o.step for o in operations] == list(range(len(operations))),
                 f"rank {rank}: steps are missing")
            need(not any(o.type in SENDS and send < 0 or o.type in RECEIVES and recv < 0
                         for o in operations), f"rank {rank}: no peer for a step")
            # The runtime hangs what such operations wait for on the next real one.
            need(not any(a.type == "nop" and b.depends[0] < 0
                         for a, b in zip(operations, operations[1:])) and
                 not (operations and operations[-1].type == "nop"),
                 f"rank {rank}: a chain of dependences ends without one")
            blocks.append({"send": send, "recv": recv, "channel": channel, "steps": operations})
        for block in blocks:
            for operation in block["steps"]:
                self.check_places(operation)
                on, step = operation.depends
                if on >= 0:
                    need(on < len(blocks) and step < len(blocks[on]["steps"]) and
                         blocks[on]["steps"][step].is_awaited,
                         f"rank {rank}: a step waits for one that tells nobody")
        return blocks

    def check_places(self, operation):
        for buffer, offset in operation.reads() + operation.writes():
            need(0 <= offset < self.sizes[operation.rank][buffer],
                 f"rank {operation.rank}: {buffer}[{offset}] is outside of its buffer")
        need("i" not in [buffer for buffer, _ in operation.writes()], "writes to input")


def check_order(file, rank):
    """Of two operations on one place, one of them writing, one comes first in every run."""
    blocks = file.blocks[rank]
    position, before = {}, []  # before: bit sets
    left = [(block["steps"], [0]) for block in blocks]
    touched = {}
    moved = True
    while moved:
        moved = False
        for steps, at in left:
            while at[0] < len(steps):
                operation = steps[at[0]]
                on = operation.depends if operation.depends[0] >= 0 else None
                if on is not None and on not in position:
                    break
                known = 0
                for earlier in (on, (operation.block, operation.step - 1)):
                    if earlier in position:
                        known |= before[position[earlier]] | 1 << position[earlier]
                for place, writes in [(p, False) for p in operation.reads()] + \
                                     [(p, True) for p in operation.writes()]:
                    for other, wrote in touched.get(place, []):
                        need(other == len(before) or not (writes or wrote) or known >> other & 1,
                             f"rank {rank}: two operations race for {place[0]}[{place[1]}]")
                    touched.setdefault(place, []).append((len(before), writes))
                position[operation.block, operation.step] = len(before)
                before.append(known)
                at[0] += 1
                moved = True
    need(len(before) == sum(len(steps) for steps, _ in left), f"rank {rank}: dependences in a circle")


def input_of(file, rank, root):
    """(place, contributions) of what a rank has at the start."""
    if not file.in_place:
        for chunk in range(file.sizes[rank]["i"]):
            yield ("i", chunk), [(rank, chunk)]
        return
    part = file.chunks // file.ranks
    if file.collective == "allgather":
        for chunk in range(part):
            yield ("m", rank * part + chunk), [(rank, chunk)]
    elif file.collective != "broadcast" or rank == root:
        for chunk in range(file.chunks):
            yield ("m", chunk), [(rank, chunk)]


def outputs_of(file, rank, root):
    """(place, number of the output chunk) of what a rank must have in the end."""
    if file.collective == "reduce" and rank != root:
        return []
    first, chunks = 0, file.chunks
    if file.collective == "reduce_scatter":
        chunks //= file.ranks
        first = rank * chunks if file.in_place else 0
    return [(("m" if file.in_place else "o", first + chunk), chunk) for chunk in range(chunks)]


def run(file, root):
    """What is in every rank's memory in the end: for each place the contributions."""
    memory = [dict(input_of(file, rank, root)) for rank in range(file.ranks)]
    links, at = {}, {}
    queue = [(rank, number) for rank in range(file.ranks) for number in range(len(file.blocks[rank]))]

    def read(rank, place):
        need(place in memory[rank], f"rank {rank}: reads {place[0]}[{place[1]}] before it is there")
        return memory[rank][place]

    def advance(rank, number):
        block = file.blocks[rank][number]
        step = at.get((rank, number), 0)
        if step == len(block["steps"]):
            return False
        operation = block["steps"][step]
        on, awaited = operation.depends
        inward = links.setdefault((block["recv"], rank, block["channel"]), [])
        outward = links.setdefault((rank, block["send"], block["channel"]), [])
        if on >= 0 and at.get((rank, on), 0) <= awaited or \
                operation.type in RECEIVES and not inward or \
                operation.type in SENDS and len(outward) >= CAPACITY:
            return False
        value = inward.pop(0) if operation.type in RECEIVES else []
        for place in operation.reads():
            value = value + read(rank, place)
        for place in operation.writes():
            memory[rank][place] = value
        if operation.type in SENDS:
            outward.append(value)
        at[rank, number] = step + 1
        return True

    moved = True
    while moved:
        moved = False
        for rank, number in queue:
            while advance(rank, number):
                moved = True
    need(all(at.get((rank, number), 0) == len(file.blocks[rank][number]["steps"])
             for rank, number in queue), "deadlock")
    need(not any(links.values()), "messages that nobody takes")
    return memory


def expected(file, rank, chunk, root):
    """The contributions that an output chunk must hold, by the meaning of the collective."""
    everyone, part = range(file.ranks), file.chunks // file.ranks
    if file.collective in ("allreduce", "reduce"):
        return [(giver, chunk) for giver in everyone]
    if file.collective == "broadcast":
        return [(root, chunk)]
    if file.collective == "allgather":
        return [(chunk // part, chunk % part)]
    if file.collective == "reduce_scatter":
        return [(giver, rank * part + chunk) for giver in everyone]
    return [(chunk // part, rank * part + chunk % part)]


def problem(element, root):
    """What is wrong with a file, or nothing."""
    try:
        file = File(element)
        for rank in range(file.ranks):
            check_order(file, rank)
        memory = run(file, root)
        for rank in range(file.ranks):
            for place, chunk in outputs_of(file, rank, root):
                found = sorted(memory[rank].get(place, []))
                need(found == expected(file, rank, chunk, root),
                     f"rank {rank}: output {chunk} holds {found}")
    except Wrong as wrong:
        return str(wrong)
    return ""


def exported(program, collective, algorithm, ranks, root, lanes, in_place, box=1):
    text = command.run(program, "export", collective, algorithm, "--ranks", ranks, "--root", root,
                       "--box", box, "--lanes", lanes, "--format", "msccl", *["--in-place"] * in_place)
    return xml.etree.ElementTree.fromstring(text)


def check_all(program):
    for collective, algorithm in command.algorithms(program):
        if collective not in KNOWN:
            continue
        for ranks, root, lanes, box in ((1, 0, 1, 1), (2, 1, 1, 1), (3, 1, 2, 1), (4, 0, 1, 1),
                                        (5, 3, 1, 1), (8, 2, 2, 1), (4, 3, 1, 2), (12, 5, 2, 4)):
            if not command.runs_on(program, collective, algorithm, ranks, box):
                continue
            for in_place in {False, collective != "AlltoAll"}:
                found = problem(exported(program, collective, algorithm, ranks, root, lanes,
                                         in_place, box), root)
                if found:
                    yield (f"{collective} {algorithm}, {ranks} ranks, root {root}, {lanes} lanes, "
                           f"boxes of {box}, {'in' if in_place else 'out of'} place: {found}")


def broken(element):
    """(what was done, a copy with it) for every step."""
    for gpu_at, gpu in enumerate(element):
        for block_at, block in enumerate(gpu):
            for step_at, step in enumerate(block):
                def changed(**attributes):
                    other = copy.deepcopy(element)
                    other[gpu_at][block_at][step_at].attrib.update(attributes)
                    return other
                where = f"rank {gpu_at}, block {block_at}, step {step_at}"
                if step.get("depid") != "-1" and step.get("type") != "nop":
                    yield f"{where} waits for nothing", changed(depid="-1", deps="-1")
                if step.get("hasdep") == "1":
                    yield f"{where} tells nobody", changed(hasdep="0")
                for name, types in (("src", READS_SRC), ("dst", WRITES_DST)):
                    if step.get("type") in types:
                        size = int(gpu.get(step.get(name + "buf") + "_chunks"))
                        other = (int(step.get(name + "off")) + 1) % max(size, 1)
                        yield (f"{where} has another {name}",
                               changed(**{name + "off": str(other if size > 1 else -1)}))
                kind = {"rrc": "r", "rrcs": "rcs", "rrs": "rcs", "re": "cpy", "r": "rrc"}
                if step.get("type") in kind:
                    yield f"{where} does something else", changed(type=kind[step.get("type")])
                if step.get("type") != "nop":
                    yield f"{where} does nothing", changed(type="nop")


def self_test(program):
    mutants = 0
    for collective, algorithm, root, in_place in (
            ("AllReduce", "ring", 0, False), ("AllReduce", "direct", 0, False),
            ("AllReduce", "one_shot", 0, False), ("Reduce", "chain", 1, False),
            ("AlltoAll", "pairwise", 0, False), ("AllReduce", "direct", 0, True),
            ("AllGather", "ring", 0, True), ("ReduceScatter", "ring", 0, True)):
        element = exported(program, collective, algorithm, 4, root, 1, in_place)
        for what, mutant in broken(element):
            mutants += 1
            if not problem(mutant, root):
                yield f"went unnoticed in {algorithm} {collective}: {what}"
    if mutants < 700:
        yield f"only {mutants} broken files were tried"


if __name__ == "__main__":
    found_problems = list(self_test(sys.argv[1]) if "--self-test" in sys.argv else check_all(sys.argv[1]))
    print("\n".join(found_problems) or "all of it is right")
    sys.exit(bool(found_problems))
