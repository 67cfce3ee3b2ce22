"""Latency of operators by shapes and types of their inputs, as simulators look it up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chakra_et.columns import Mask, Rows, no_rows
from chakra_et.model import Trace
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.places import Places
from chakra_et.tables.table import Column, Table, known, texts
from chakra_et.tables.work import work_of
from chakra_et.times import have_times


def latency_table(traces: Mapping[int, Trace]) -> Table:
    """What a call of each operator took, by the shapes and types of its inputs.

    On `host`: from its start to its end. On `device`: the sum of the device work that the call
    itself launched, communication left out; calls that launched none have no such row. `flops` and
    `moved_bytes` are of one call, where shapes tell (see `work_of`).
    """
    items: list[tuple[str, bytes, bytes, bytes, bytes, str]] = []
    times: list[Rows] = []
    timed: list[Mask] = []
    for trace in traces.values():
        keys, took, known_here = _calls(trace)
        items += keys
        times.append(took)
        timed.append(known_here)
    code, distinct = codes(items)
    spread = _spread(
        code, np.concatenate([*times, no_rows()]), np.concatenate([*timed, no_rows() > 0])
    )
    work = [work_of(*key[:5]) for key in distinct]
    columns = {
        "operator": texts([key[0] for key in distinct]),
        "shapes": texts([_text(key[1]) for key in distinct]),
        "dtypes": texts([_text(key[2]) for key in distinct]),
        "on": texts([key[5] for key in distinct]),
        **spread,
        "flops": np.array([np.nan if w.flops is None else w.flops for w in work], np.float64),
        "moved_bytes": np.array([np.nan if w.bytes is None else w.bytes for w in work], np.float64),
    }
    return Table("latencies", columns, "flops and moved_bytes are of one call").by("total_ns")


def _spread(code: Rows, ns: Rows, timed: Mask) -> dict[str, Column]:
    """The times of calls of each code; of those without a time, their number is known."""
    keys = Keys.of(code)
    some = np.unique(code[timed])
    there = np.isin(np.arange(len(keys)), some)
    columns: dict[str, Column] = {}
    for name, values in Keys.of(code[timed]).spread(ns[timed], (50, 95, 99)).items():
        whole = np.zeros(len(keys), values.dtype)
        whole[some] = values
        columns[name] = known(whole, there)
    return columns | {"count": keys.count()}


def _calls(
    trace: Trace,
) -> tuple[list[tuple[str, bytes, bytes, bytes, bytes, str]], Rows, Mask]:
    """Operator, shapes, types of inputs and outputs, and place of each call; and what it took.

    The last value says which calls have a time.
    """
    nodes, places = trace.nodes, Places(trace)
    rows = np.flatnonzero(places.operator & (nodes.input_code >= 0))
    inclusive = nodes.attributes.dense("inclusive_ns", -1, np.int64)
    took = np.where(inclusive >= 0, inclusive, nodes.duration_ns)[rows]
    launched, by = places.device_work
    on_device, calls = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.bool_)
    np.add.at(on_device, by[by >= 0], nodes.duration_ns[launched[by >= 0]])
    calls[by[by >= 0]] = True
    names, codes_in, codes_out = nodes.name, nodes.input_code, nodes.output_code
    nothing = (b"", b"", b"")

    def key(row: int, on: str) -> tuple[str, bytes, bytes, bytes, bytes, str]:
        inputs = nodes.texts[int(codes_in[row])]
        outputs = nodes.texts[int(codes_out[row])] if codes_out[row] >= 0 else nothing
        return names[row], inputs[1], inputs[2], outputs[1], outputs[2], on

    devices = rows[calls[rows]]
    keys = [key(row, "host") for row in rows.tolist()]
    keys += [key(row, "device") for row in devices.tolist()]
    timed = np.append(have_times(trace)[rows], np.ones(len(devices), np.bool_))
    return keys, np.concatenate((took, on_device[devices])), timed


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
