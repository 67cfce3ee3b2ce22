"""Fusion of device work by a table: which kernels become one, and in which share of their time."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay.columns import columns_of
from chakra_et.whatif.chains import program_order
from chakra_et.whatif.edit import Change, Edit, MissedError
from chakra_et.whatif.surgery import Surgery

_SUMMED: Final = ("num_ops", "tensor_size")


@dataclass(frozen=True)
class Fusion:
    """Work of such names, one right after the other, is done at once in a share of its time."""

    patterns: tuple[re.Pattern[str], ...]
    factor: float


def read_fusions(path: Path) -> list[Fusion]:
    """The rows `PATTERN + PATTERN,FACTOR` of a CSV file. Raises ChakraError for another one."""
    try:
        rows = [row for row in csv.reader(path.read_text().splitlines()) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise ChakraError("cannot be read", path=path, remedy="Name a CSV file.") from error
    found = []
    for place, row in enumerate(rows, 1):
        if place == 1 and row[-1].strip() == "factor":
            continue
        try:
            words, factor = row
            patterns = tuple(re.compile(word.strip()) for word in words.split(" + "))
            fusion = Fusion(patterns, float(factor))
        except (ValueError, re.error) as error:
            raise ChakraError(
                f"no fusion: {','.join(row)!r}",
                path=path,
                place=f"line {place}",
                remedy="Write kernels,factor: regular expressions joined by ' + ', and a number.",
            ) from error
        if len(patterns) < 2 or not 0 <= fusion.factor <= 1e6:
            raise ChakraError(
                f"no fusion: {','.join(row)!r}",
                path=path,
                place=f"line {place}",
                remedy="Name two kernels or more, and a factor from 0 on.",
            )
        found.append(fusion)
    return found


def fuse(text: str, _: str, value: str) -> Edit:
    """Device work that follows each other is fused, where a table says so."""
    fusions = read_fusions(Path(value))

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        made, fused, before, after, apart = {}, 0, 0, 0, 0
        for rank, trace in traces.items():
            work = _Fuser(trace, fusions)
            made[rank] = work.run()
            fused, before, after = fused + work.fused, before + work.before, after + work.after
            apart += work.apart
        if not fused:
            raise MissedError(
                f"{text}: device work of such names, one right after the other on a stream"
                + (f"; {apart} groups have something to wait for in between" if apart else "")
            )
        nodes = sum(len(trace.nodes) for trace in made.values())
        told: tuple[str, ...] = (f"{fused} groups of device work fused",)
        told += (f"{apart} left apart: one waits for what follows another",) if apart else ()
        provenance = Counter({"table": fused, "recorded": nodes - fused})
        return TraceSet(made), Change(text, nodes, before, after, "structure", provenance, told)

    return Edit(text, apply)


class _Fuser:
    """The fusions of one rank."""

    def __init__(self, trace: Trace, fusions: list[Fusion]) -> None:
        self._trace = trace
        self._fusions = fusions
        self._surgery = Surgery(trace)
        self._place = np.argsort(program_order(trace))
        self._numbers = {name: _told(trace, name) for name in _SUMMED}
        self.fused = self.before = self.after = self.apart = 0

    def run(self) -> Trace:
        """The trace with device work fused."""
        columns = columns_of(self._trace)
        streams = self._trace.nodes.attributes.dense("stream", -1, np.int64)
        devices = self._trace.nodes.attributes.dense("device", 0, np.int64)
        work = columns.device & ~columns.communication & (streams >= 0)
        for device, stream in sorted(
            set(zip(devices[work].tolist(), streams[work].tolist(), strict=True))
        ):
            mine = np.flatnonzero(work & (devices == device) & (streams == stream))
            self._stream(mine[np.argsort(self._place[mine])].tolist())
        return self._surgery.finish()

    def _stream(self, rows: list[int]) -> None:
        names = [self._trace.nodes.names[code] for code in self._trace.nodes.name_code[rows]]
        place = 0
        while place < len(rows):
            for fusion in self._fusions:
                length = len(fusion.patterns)
                some = names[place : place + length]
                if len(some) == length and all(
                    p.search(name) for p, name in zip(fusion.patterns, some, strict=True)
                ):
                    if self._together(rows[place : place + length]):
                        self._fuse(rows[place : place + length], fusion.factor)
                        place += length - 1
                        break
                    self.apart += 1
            place += 1

    def _together(self, rows: list[int]) -> bool:
        """Whether none of them waits for what comes behind the first."""
        into = np.concatenate([self._surgery.into(row) for row in rows[1:]])
        waits = self._surgery.source[into[self._surgery.kind[into] != EdgeKind.LAUNCH]]
        waits = waits[~np.isin(waits, rows)]
        return bool((self._place[waits] < self._place[rows[0]]).all())

    def _fuse(self, rows: list[int], factor: float) -> None:
        surgery, nodes, first = self._surgery, self._trace.nodes, rows[0]
        took = int(nodes.duration_ns[rows].sum())
        surgery.takes(first, round(took * factor))
        surgery.name(first, " + ".join(nodes.names[code] for code in nodes.name_code[rows]))
        for name in _SUMMED:
            told, numbers = self._numbers[name]
            if told[first]:
                surgery.tell(name, first, int(numbers[rows].sum()))
        source, kind = surgery.source, surgery.kind
        for row in rows[1:]:
            into = surgery.into(row)
            for edge in into[~np.isin(source[into], rows)].tolist():
                if kind[edge] == EdgeKind.LAUNCH:
                    # One launch does: the call of the other takes no time.
                    surgery.takes(int(source[edge]), 0)
                elif not surgery.links[edge]:
                    surgery.wait(first, int(source[edge]), EdgeKind(int(kind[edge])))
            surgery.replace(row, first)
        self.fused += 1
        self.before += took
        self.after += round(took * factor)


def _told(trace: Trace, name: str) -> tuple[Mask, Rows]:
    """Which nodes have a whole number in an attribute, and which."""
    table = trace.nodes.attributes
    return table.present(name), table.dense(name, 0, np.int64)
