"""Algorithms in MSCCL's XML: what each thread block of each rank does, step by step.

Format: https://github.com/microsoft/msccl-tools, as its compiler writes it. A step is a send (s), a
receive (r), a receive with addition (rrc; rrs and rrcs also send the sum, rcs what came), a local
copy (cpy) or addition (re), or nothing (nop). `depid` and `deps` name a step of another thread
block of the rank that has to be over. Messages between two ranks on one channel keep their order.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chakra_et.build import Rank
from chakra_et.errors import ChakraError, FormatError
from chakra_et.workloads.durations import Durations
from chakra_et.workloads.transfers import addition

_RECEIVES: Final = frozenset({"r", "rrc", "rrs", "rcs", "rrcs"})
_SENDS: Final = frozenset({"s", "rrs", "rcs", "rrcs"})
_ADDS: Final = frozenset({"rrc", "rrs", "rrcs", "re"})
_TYPES: Final = _RECEIVES | _SENDS | _ADDS | {"cpy", "nop"}
_CHANNEL_TAGS: Final = 1 << 20


@dataclass(frozen=True)
class Step:
    """One step of a thread block; `waits` is the block and step that it waits for."""

    type: str
    chunks: int
    waits: tuple[int, int] | None


@dataclass(frozen=True)
class Block:
    """A thread block: its peers (-1 for none), its channel, its steps in order."""

    number: int
    send: int
    receive: int
    channel: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Program:
    """An algorithm: for each rank its thread blocks, and the chunks that make up the buffer."""

    name: str
    collective: str
    chunks: int
    blocks: dict[int, list[Block]]


def read_msccl(path: str | Path) -> Program:
    """The algorithm in a file. Raises FormatError, with the place, for what is none."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise FormatError(f"not valid XML: {error}", path=path, remedy=_REMEDY) from error
    except OSError as error:
        raise ChakraError(
            f"cannot be read: {error.strerror or error}", path=path, remedy="Name an XML file."
        ) from error
    if root.tag != "algo":
        raise FormatError(f"the root is <{root.tag}>, not <algo>", path=path, remedy=_REMEDY)
    ranks: dict[int, list[Block]] = {}
    for gpu in root.findall("gpu"):
        number = _number(path, gpu, "id", f"<gpu {len(ranks)}>")
        ranks[number] = [_block(path, number, block) for block in gpu.findall("tb")]
    program = Program(
        root.get("name", ""), root.get("coll", ""),
        _number(path, root, "nchunksperloop", "<algo>"), ranks,
    )  # fmt: skip
    _check(path, program)
    return program


_REMEDY: Final = "msccl-tools' compiler writes such files."


def _block(path: str | Path, rank: int, block: ElementTree.Element) -> Block:
    place = f"gpu {rank}, tb {block.get('id')}"
    number, send, receive, channel = (
        _number(path, block, name, place) for name in ("id", "send", "recv", "chan")
    )
    steps = []
    for step in block.findall("step"):
        where = f"{place}, step {step.get('s')}"
        kind = step.get("type", "")
        if kind not in _TYPES:
            raise FormatError(
                f"unknown type of step: {kind!r}", path=path, place=where, remedy=_REMEDY
            )
        waits = None
        if step.get("depid", "-1") != "-1":
            waits = (_number(path, step, "depid", where), _number(path, step, "deps", where))
        if (kind in _SENDS and send < 0) or (kind in _RECEIVES and receive < 0):
            raise FormatError(f"{kind} without a peer", path=path, place=where, remedy=_REMEDY)
        steps.append(Step(kind, _number(path, step, "cnt", where, 1), waits))
    return Block(number, send, receive, channel, tuple(steps))


def _number(
    path: str | Path, of: ElementTree.Element, name: str, place: str, default: int | None = None
) -> int:
    text = of.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise FormatError(
            f"{name} is {text!r}, no number", path=path, place=place, remedy=_REMEDY
        ) from None


def _check(path: str | Path, program: Program) -> None:
    """Every rank and every step that others name must be there."""
    if sorted(program.blocks) != list(range(len(program.blocks))) or not program.blocks:
        raise FormatError(
            f"ranks {sorted(program.blocks)}", path=path, remedy="They must count from 0."
        )
    if program.chunks < 1:
        raise FormatError("nchunksperloop is below 1", path=path, remedy=_REMEDY)
    for rank, blocks in program.blocks.items():
        lengths = {block.number: len(block.steps) for block in blocks}
        for block in blocks:
            place = f"gpu {rank}, tb {block.number}"
            for peer in (block.send, block.receive):
                if peer >= len(program.blocks) or peer == rank:
                    raise FormatError(f"no peer {peer}", path=path, place=place, remedy=_REMEDY)
            for step in block.steps:
                if step.waits and step.waits[1] >= lengths.get(step.waits[0], 0):
                    raise FormatError(
                        f"waits for tb {step.waits[0]}, step {step.waits[1]}, which is not there",
                        path=path, place=place, remedy=_REMEDY,
                    )  # fmt: skip


def msccl_messages(
    program: Program, size_bytes: int, durations: Durations
) -> Callable[[Rank], None]:
    """What every rank does for a buffer of `size_bytes`, which `nchunksperloop` chunks make up."""
    chunk_bytes = -(-size_bytes // program.chunks)

    def run(rank: Rank) -> None:
        done: dict[tuple[int, int], int] = {}
        counts: dict[tuple[str, int, int], int] = {}

        def tag(way: str, peer: int, channel: int) -> int:
            number = counts.get((way, peer, channel), 0)
            counts[way, peer, channel] = number + 1
            return channel * _CHANNEL_TAGS + number

        for block, index in _order(program.blocks[rank.id]):
            step = block.steps[index]
            size = step.chunks * chunk_bytes
            waits = [done[w] for w in (step.waits, (block.number, index - 1)) if w in done]
            last: int | None = None
            name = f"tb {block.number} step {index}"
            if step.type in _RECEIVES:
                last = rank.receive(
                    block.receive, size, tag=tag("receive", block.receive, block.channel),
                    after=waits, name=f"{name}: receive",
                )  # fmt: skip
                waits = [last]
            if step.type in _ADDS or step.type == "cpy":
                word = "add" if step.type in _ADDS else "copy"
                work = addition(size)
                last = rank.compute(
                    f"{name}: {word}", op_type=word, moved_bytes=work.moved_bytes, after=waits,
                    flops=work.pointwise if word == "add" else None,
                    duration_ns=durations(work) or 0,
                )  # fmt: skip
                waits = [last]
            if step.type in _SENDS:
                last = rank.send(
                    block.send, size, tag=tag("send", block.send, block.channel), after=waits,
                    name=f"{name}: send",
                )  # fmt: skip
            if last is None:
                last = rank.compute(f"{name}: nothing", after=waits)
            done[block.number, index] = last

    return run


def _order(blocks: list[Block]) -> Iterator[tuple[Block, int]]:
    """All steps of a rank, each behind those that it waits for. Raises ChakraError for a circle."""
    at = {block.number: 0 for block in blocks}
    left = sum(len(block.steps) for block in blocks)
    while left:
        before = left
        for block in blocks:
            while at[block.number] < len(block.steps):
                waits = block.steps[at[block.number]].waits
                if waits is not None and at[waits[0]] <= waits[1]:
                    break
                yield block, at[block.number]
                at[block.number] += 1
                left -= 1
        if left == before:
            raise ChakraError(
                f"thread blocks {sorted(at)} of a rank wait for each other in a cycle",
                remedy="Check depid and deps.",
            )
