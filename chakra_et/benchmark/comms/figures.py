"""What a run of the calls took, beside what was recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec
import numpy as np

from chakra_et.benchmark.comms.call import DELAY, Call, RankOutcome, Skipped
from chakra_et.benchmark.comms.listing import Listing
from chakra_et.tables.collectives import bandwidth
from chakra_et.tables.table import Column, Table, known, texts

_NOTE = (
    "recorded and run are means; of the members of a call the shortest counts: all before the "
    "last one begins is waiting"
)


@dataclass(frozen=True)
class Figures:
    """A run of communication: by type, group, element type and size, and in all."""

    table: Table
    backend: str
    ranks: int
    recorded_ranks: int
    calls: int
    """Collectives and messages, each once for all its members."""
    spans_ns: tuple[int, ...]
    """The longest of all ranks, for each iteration."""
    checked: int
    wrong: tuple[str, ...]
    wrong_count: int
    skipped: tuple[Skipped, ...]
    shrunk: int
    delays: int
    as_bytes: int
    buffer_bytes: int

    @property
    def span_ns(self) -> int:
        """The median of the iterations."""
        return round(median(self.spans_ns)) if self.spans_ns else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mode": "communication",
            "backend": self.backend,
            "ranks": self.ranks,
            "recorded_ranks": self.recorded_ranks,
            "calls": self.calls,
            "span_ns": self.span_ns,
            "spans_ns": list(self.spans_ns),
            "checked": self.checked,
            "wrong": list(self.wrong),
            "wrong_count": self.wrong_count,
            "skipped": [msgspec.to_builtins(one) for one in self.skipped],
            "shrunk": self.shrunk,
            "delays": self.delays,
            "as_bytes": self.as_bytes,
            "buffer_bytes": self.buffer_bytes,
            "collectives": self.table.as_dicts(),
        }


def figures_of(
    recorded_ranks: int, listing: Listing, outcomes: Sequence[RankOutcome] = ()
) -> Figures:
    """The figures of a run, or of what would run: `outcomes` has what each rank saw, or nothing."""
    met = _meetings(listing.calls, outcomes)
    spans = [max(spans) for spans in zip(*(o.spans_ns for o in outcomes), strict=True)]
    made = [call for mine in listing.calls.values() for call in mine]
    return Figures(
        table=_table(met),
        backend=outcomes[0].backend if outcomes else "dry",
        ranks=len(listing.calls),
        recorded_ranks=recorded_ranks,
        calls=len(met),
        spans_ns=tuple(spans),
        checked=sum(o.checked for o in outcomes),
        wrong=tuple(text for o in outcomes for text in o.wrong),
        wrong_count=sum(o.wrong_count for o in outcomes),
        skipped=_summed(listing.skipped),
        shrunk=sum(call.shrunk_from > 0 for call in made),
        delays=sum(call.kind == DELAY for call in made),
        as_bytes=sum(o.as_bytes for o in outcomes),
        buffer_bytes=max((o.buffer_bytes for o in outcomes), default=0),
    )


@dataclass
class _Met:
    """One collective or message, with what its members took."""

    call: Call
    comm_bytes: int
    recorded_ns: list[int]
    run_ns: list[list[int]]

    @property
    def key(self) -> tuple[Any, ...]:
        """What calls of one row of the table have in common."""
        call = self.call
        label = f"{DELAY} of {call.recorded_as}" if call.kind == DELAY else call.kind
        kind = "SEND_RECV" if call.is_message else label
        group = "" if call.is_message else call.group.name
        return (kind, group, len(call.group.ranks), call.dtype, self.comm_bytes)


def _meetings(calls: Mapping[int, Sequence[Call]], outcomes: Sequence[RankOutcome]) -> list[_Met]:
    found: dict[tuple[object, ...], _Met] = {}
    for place, mine in enumerate(calls.values()):
        took = outcomes[place].durations_ns if outcomes else []
        runs = list(zip(*took, strict=True)) or [()] * len(mine)
        for call, run in zip(mine, runs, strict=True):
            met = found.setdefault(call.meeting, _Met(call, 0, [], []))
            met.comm_bytes = max(met.comm_bytes, call.size_bytes)
            met.recorded_ns += [] if call.recorded_ns is None else [call.recorded_ns]
            if all(run):  # 0 stands for a time that nobody saw.
                met.run_ns.append(list(run))
    return list(found.values())


def _table(met: Sequence[_Met]) -> Table:
    rows: dict[tuple[Any, ...], list[_Met]] = {}
    for one in met:
        rows.setdefault(one.key, []).append(one)
    keys = list(rows)
    recorded = [
        _mean([min(m.recorded_ns) for m in each if m.recorded_ns]) for each in rows.values()
    ]
    run = [_mean([ns for m in each for ns in map(min, zip(*m.run_ns, strict=True))])
           for each in rows.values()]  # fmt: skip
    columns: dict[str, Column] = {
        "type": texts([key[0] for key in keys]),
        "group": texts([key[1] for key in keys]),
        "size": np.array([key[2] for key in keys], np.int64),
        "dtype": texts([key[3] for key in keys]),
        "count": np.array([len(each) for each in rows.values()], np.int64),
    }
    sizes = np.array([-1 if key[0].startswith(DELAY) else key[4] for key in keys], np.int64)
    columns["recorded_ns"], columns["run_ns"] = _times(recorded), _times(run)
    rates = bandwidth({**columns, "comm_bytes": sizes, "transfer_ns": columns["run_ns"]})
    order = (
        "type", "group", "size", "dtype", "message_bytes", "count", "recorded_ns", "run_ns",
        "algorithm_bytes_per_s", "bus_bytes_per_s",
    )  # fmt: skip
    columns |= rates
    return Table("collectives", {name: columns[name] for name in order}, _NOTE)


def _mean(times: Sequence[int]) -> int | None:
    return round(sum(times) / len(times)) if times else None


def _times(times: Sequence[int | None]) -> Column:
    there = np.array([time is not None for time in times], np.bool_)
    return known(np.array([time or 0 for time in times], np.int64), there)


def _summed(skipped: Mapping[int, Sequence[Skipped]]) -> tuple[Skipped, ...]:
    counts: Counter[str] = Counter()
    took: Counter[str] = Counter()
    for one in (one for each in skipped.values() for one in each):
        counts[one.reason] += one.count
        took[one.reason] += one.recorded_ns
    return tuple(Skipped(reason, counts[reason], took[reason]) for reason in counts)
