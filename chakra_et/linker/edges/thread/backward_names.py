"""Forward and backward operations that belong together by their names and shapes.

Older exporters write neither sequence numbers nor flows. Autograd names a backward operation after
its forward one (`MmBackward0`, `aten::mm`), and runs what came last first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.patterns import lazy_pattern
from chakra_et.recording import DeviceTrace, HostTrace, Role

_BACKWARD: Final = lazy_pattern(r"(?:.*[:.])?(\w+?)Backwards?\d*$")
_SEARCHED: Final = 64
"""So many operations of one name are looked at for the shape, back from the last one."""


def pairs_by_name(
    table: Activities, device: DeviceTrace, host: HostTrace | None
) -> tuple[Rows, Rows]:
    """Pairs of a forward and a backward operation.

    Of the forward operations of the name that had ended before, and that none has followed yet, it
    is the last whose result has the shape of what the backward operation was given; where shapes
    are not known, the last. A name whose forward operations ran on several threads tells nothing.
    """
    code, backward, forward = _keys(table, device)
    passed = _passed_over(table, code, backward, forward)
    shapes = _Shapes(table, host)
    waiting: dict[str, list[int]] = defaultdict(list)
    lanes: dict[str, set[int]] = defaultdict(set)
    found: list[tuple[str, int, int]] = []
    for row in _in_time(table, code, backward, forward):
        key = backward.get(code[row])
        if key is not None:
            source = _take(waiting[key], shapes, row)
            found += [] if source is None else [(key, source, row)]
        elif row not in passed:
            waiting[forward[code[row]]].append(row)
            lanes[forward[code[row]]].add(int(table.lane[row]))
    pairs = [(source, row) for key, source, row in found if len(lanes[key]) == 1]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _keys(
    table: Activities, device: DeviceTrace
) -> tuple[list[int], dict[int, str], dict[int, str]]:
    """The code of each activity's name, and keys by code: of backward and of forward names."""
    names = device.names.in_order
    matches = {code: _BACKWARD.fullmatch(name) for code, name in enumerate(names)}
    backward = {code: _key(match[1]) for code, match in matches.items() if match}
    wanted = set(backward.values())
    others = {code: _key(name.rpartition("::")[2]) for code, name in enumerate(names)}
    forward = {c: key for c, key in others.items() if key in wanted and c not in backward}
    operation = np.flatnonzero((table.role == Role.OP) & (table.record != NO_ROW))
    code_of = np.full(len(table), NO_ROW, np.int64)
    code_of[operation] = device.name[table.record[operation]]
    return code_of.tolist(), backward, forward


def _key(name: str) -> str:
    return name.replace("_", "").lower()


def _in_time(
    table: Activities, code: list[int], backward: dict[int, str], forward: dict[int, str]
) -> list[int]:
    """Rows in the order of time: forward operations count from their end on."""
    rows = [
        row for row in table.host_order.tolist() if code[row] in backward or code[row] in forward
    ]
    start, end = table.start_ns.tolist(), table.end_ns.tolist()
    return sorted(rows, key=lambda row: start[row] if code[row] in backward else end[row])


def _passed_over(
    table: Activities, code: list[int], backward: dict[int, str], forward: dict[int, str]
) -> set[int]:
    """What a backward operation called, and what an operation of the same key called.

    Of several within each other it is nearly always the outermost that autograd knows.
    """
    around, within = table.nested_in.tolist(), set[int]()
    inner: dict[int, list[int]] = defaultdict(list)
    for row in table.host_order.tolist():
        caller = around[row]
        inner[caller].append(row)
        if caller != NO_ROW and (caller in within or code[caller] in backward):
            within.add(row)
    return within | _within_same(inner, [forward.get(number) for number in code])


def _within_same(inner: dict[int, list[int]], keys: list[str | None]) -> set[int]:
    """Rows inside another one of the same key, at any depth; `inner` lists what each row holds."""
    found, open_keys = set[int](), Counter[str]()
    waiting = [(row, True) for row in inner[NO_ROW]]
    while waiting:
        row, begins = waiting.pop()
        key = keys[row]
        if begins and key is not None and open_keys[key]:
            found.add(row)
        if key is not None:
            open_keys[key] += 1 if begins else -1
        if begins:
            waiting.append((row, False))
            waiting += [(child, True) for child in inner.get(row, ())]
    return found


def _take(forward: list[int], shapes: _Shapes, row: int) -> int | None:
    """Take the forward operation that a backward one follows, if there is one."""
    wanted = shapes.given(row)
    places = range(len(forward) - 1, max(len(forward) - _SEARCHED, 0) - 1, -1)
    for place in places:
        made = shapes.made(forward[place])
        if wanted is None or made is None or made == wanted:
            return forward.pop(place)
    return None


class _Shapes:
    """Shapes of tensors, as far as a host trace tells them."""

    def __init__(self, table: Activities, host: HostTrace | None) -> None:
        self._host, self._row = host, table.host.tolist()
        self._texts = [] if host is None else host.texts.in_order

    def given(self, row: int) -> list[int] | None:
        """The shape of the first thing that an operation was given."""
        return None if self._host is None else self._first(self._host.inputs, row)

    def made(self, row: int) -> list[int] | None:
        """The shape of the first thing that an operation made."""
        return None if self._host is None else self._first(self._host.outputs, row)

    def _first(self, side: npt.NDArray[np.int32], row: int) -> list[int] | None:
        if self._row[row] == NO_ROW:
            return None
        assert self._host is not None
        return self._host.dialect.first_shape(self._texts[side[self._row[row]]][1])
