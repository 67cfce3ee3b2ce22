"""Times from a table of kernel times: of another device, or of operators with other lengths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.errors import ChakraError
from chakra_et.io.json_text import from_json
from chakra_et.kerneltimes import Calls, KernelTimes, Provenance, calls_of, samples_of
from chakra_et.kerneltimes.features import HOST, LINKS
from chakra_et.model import Trace, TraceSet
from chakra_et.replay.columns import Columns
from chakra_et.whatif.carried import sizes_after, with_sizes
from chakra_et.whatif.edit import Change, Edit, scaled

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8]

_LENGTHS: Final = re.compile(r"(\d{1,12}):(\d{1,12})")


def other_device(text: str, _: str, value: str) -> Edit:
    """What ran on a device takes what a table says of another one; without one, what the host did.

    Calls that the table does not know stay as they were.
    """
    table, device = table_of(text, value)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        def factors(trace: Trace) -> tuple[Calls, Reals, Codes]:
            calls = calls_of(trace)
            mine = _on_device(calls)
            keys = [key._replace(device=device) for key in calls.keys]
            times, source = table.times_ns(keys, calls.features)
            times[~mine], source[~mine] = np.nan, _SAME
            with np.errstate(divide="ignore", invalid="ignore"):
                return calls, times / calls.took_ns, source

        timed = TraceSet({rank: _with_times(trace) for rank, trace in traces.items()})
        return _applied(timed, text, factors)

    return Edit(text, apply)


def table_of(text: str, value: str) -> tuple[KernelTimes, str]:
    """The table that `TABLE[:NAME]` names, and its device of that name, or its only one."""
    path, found, name = value.partition(".json:")
    table = KernelTimes.load(path + ".json" if found else value)
    return table, name or _only_device(text, table)


def _with_times(trace: Trace) -> Trace:
    """A trace whose calls take a nanosecond at least: what takes nothing cannot take longer."""
    nodes, call_of = trace.nodes.copied(), calls_of(trace).call_of
    nodes.duration_ns[(call_of >= 0) & (nodes.duration_ns == 0)] = 1
    return Trace(nodes, trace.edges, trace.metadata)


def _on_device(calls: Calls) -> npt.NDArray[np.bool_]:
    """Calls on devices; where there are none, those on the host."""
    devices = np.array([key.device for key in calls.keys], object)
    on_device = ~np.isin(devices.astype(str), (HOST, LINKS))
    return on_device if on_device.any() else np.asarray(devices == HOST)


def _only_device(text: str, table: KernelTimes) -> str:
    """The device that a table is of; the host where it has no other."""
    devices = sorted({key.device for key in table.samples.keys} - {HOST, LINKS}) or [HOST]
    if len(devices) > 1:
        raise ChakraError(
            f"{text}: the table has several devices: {', '.join(devices)}",
            remedy=f"Name one: device=TABLE.json:{devices[0]}",
        )
    return devices[0]


def other_lengths(text: str, _: str, value: str) -> Edit:
    """Operators work on other lengths: `lengths=256:384,1024:1536[,TABLE]`.

    Every length 256 of a tensor becomes 384. Each operator takes longer by what the table says of
    both shapes, so that what was special about it in the recording stays. Without a table, the run
    itself is one. Transfers carry as much more as what they are made of.
    """
    lengths, path = _parsed(text, value)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        before = {rank: calls_of(trace) for rank, trace in traces.items()}
        table = KernelTimes.load(path) if path else KernelTimes(samples_of(traces, "run", before))
        # Ranks have the same texts.
        longer = cache(partial(_changed, lengths=lengths))
        changed = TraceSet({rank: _with_lengths(t, longer) for rank, t in traces.items()})
        if not any(_occur(trace, lengths) for trace in traces.values()):
            raise ChakraError(
                f"{text}: no tensor has a length {' or '.join(map(str, lengths))}",
                remedy="chakra stats --by shape shows the shapes of operators.",
            )
        known = {id(changed[rank]): calls for rank, calls in before.items()}

        def factors(trace: Trace) -> tuple[Calls, Reals, Codes]:
            calls, others = known[id(trace)], calls_of(trace)
            same = (np.nan_to_num(calls.features) == np.nan_to_num(others.features)).all(1)
            rows = np.flatnonzero(~same)
            now, then = (
                table.times_ns([c.keys[row] for row in rows.tolist()], c.features[rows])
                for c in (others, calls)
            )
            ratio, source = np.full(len(same), np.nan), np.full(len(same), _SAME, np.uint8)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio[rows], source[rows] = now[0] / then[0], np.maximum(now[1], then[1])
            return calls, ratio, source

        sizes = {rank: sizes_after(trace, longer) for rank, trace in traces.items()}
        made, change = _applied(changed, text, factors)
        return with_sizes(made, sizes, before, table if path else None, change)

    return Edit(text, apply)


_SAME: Final = 255
"""In the place of a provenance: this call is as it was."""


def _applied(
    traces: TraceSet, text: str, factors: Callable[[Trace], tuple[Calls, Reals, Codes]]
) -> tuple[TraceSet, Change]:
    """The traces with the time of calls multiplied; where the new times come from."""
    sources: Counter[str] = Counter()

    def chosen(columns: Columns) -> tuple[npt.NDArray[np.bool_], Reals]:
        calls, factor, source = factors(columns.trace)
        told = np.isfinite(factor)
        for code in Provenance:
            here = (source == code) & (told | (code == Provenance.UNKNOWN))
            sources[code.label] += int(here.sum())
        parts = columns.parts
        call = np.append(calls.call_of, -1)[np.where(parts.gap, -1, parts.owner)]
        mask = (call >= 0) & np.append(told, False)[call]
        return mask, np.append(factor, 1.0)[call]

    made, change = scaled(traces, text, chosen)
    counts = {label: count for label, count in sources.items() if count}
    return made, replace(change, source="table", provenance=counts)


def _parsed(text: str, value: str) -> tuple[dict[int, int], Path | None]:
    """Lengths before and after, and the path of a table if one is named."""
    *items, last = value.split(",")
    items += [last] if _LENGTHS.fullmatch(last) else []
    pairs = [_LENGTHS.fullmatch(item) for item in items]
    lengths = {int(pair[1]): int(pair[2]) for pair in pairs if pair}
    if not lengths or len(lengths) != len(items) or not all(lengths.values()):
        raise ChakraError(
            f"{text}: expected lengths before and after, got {value!r}",
            remedy="Write lengths=256:384,1024:1536, and ,TABLE.json behind it for other times.",
        )
    return lengths, None if _LENGTHS.fullmatch(last) else Path(last)


def _with_lengths(trace: Trace, change: Callable[[bytes], bytes]) -> Trace:
    """A trace whose tensors have other lengths."""
    nodes = trace.nodes.copied()
    # Values, shapes and types of inputs or outputs.
    nodes.texts = [(text[0], change(text[1]), *text[2:]) for text in trace.nodes.texts]
    return Trace(nodes, trace.edges, trace.metadata)


def _occur(trace: Trace, lengths: Mapping[int, int]) -> bool:
    """Whether any tensor has one of some lengths."""
    gone = dict.fromkeys(lengths, 0)
    shapes = {text[1] for text in trace.nodes.texts}
    return any(_changed(text, gone) != text for text in shapes)


def _changed(text: bytes, lengths: Mapping[int, int]) -> bytes:
    """Shapes with other lengths; as they were where none changes."""
    try:
        shapes = from_json(text)
    except msgspec.DecodeError:
        return text
    changed = _mapped(shapes, lengths)
    return text if changed == shapes else msgspec.json.encode(changed)


def _mapped(shapes: Any, lengths: Mapping[int, int]) -> Any:
    if isinstance(shapes, list):
        return [_mapped(item, lengths) for item in shapes]
    return lengths.get(shapes, shapes) if isinstance(shapes, int) else shapes
