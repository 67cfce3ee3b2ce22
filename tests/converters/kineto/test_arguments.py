"""Arguments that tell of communication: equal ones are read once, each with its own number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from both_ways import both_ways, needs_kernel
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chakra_et.converters.kineto.arguments import _telling, facts_of, read_arguments
from chakra_et.converters.kineto.shapes import operands_of
from chakra_et.io.repairs import Repairs
from chakra_et.recording import DeviceTrace, Role
from chakra_et.recording.carried_texts import CarriedTexts
from chakra_et.recording.numbers import whole

FILE = Path("d.json")
ODD = st.none() | st.booleans() | st.floats(-9, 9) | st.lists(st.integers(0, 2))


def field(*values: Any) -> st.SearchStrategy[Any]:
    """Few values, so that many records have the same, and now and then an odd one."""
    return st.sampled_from(values) | ODD


ARGUMENTS = st.fixed_dictionaries(
    {"Collective name": field("allreduce", "scatter", "send", "", 'a "quoted" one', "naïve")},
    optional={
        "Seq": field(1, 2, 3, "4", "x"),
        "Concrete Inputs": field(["", '"reduce"'], ["", ""], "allreduce"),
        "In msg nelems": field(4, "8", -1, 1 << 70),
        "Out msg nelems": field(2, "x"),
        "dtype": field("Float", "BFloat16", "unheard of"),
        "Process Group Name": field("0", "1", 7),
        "Process Group Ranks": field("[0, 1, 2, 3]", "[0, 1, ...]", [4, 5]),
        "Group size": field(2, 4, "4"),
        "Global rank start": field(0, 4),
        "Global rank stride": field(1, 2),
        "Rank": field(0, 3, 9),
        "Src Rank": field(0, 1),
        "Dst Rank": field(0, 1),
        "In split size": field("[]", "[1, ...]"),
        "Input Dims": field([[4, 2]], [[[3], [5]]], [[], [2]]),
        "Input type": field(["float"], ["TensorList"], ["c10::Half", "Scalar"]),
        "Input Types": field(["double"]),
        "External id": st.integers(0, 1 << 40),
    },
)


@given(st.lists(st.tuples(st.booleans(), ARGUMENTS), max_size=12))
def test_records_tell_what_each_tells_alone(records: list[tuple[bool, dict[str, Any]]]) -> None:
    role = np.array([Role.WORK if work else Role.OP for work, _ in records], np.uint8)
    texts = [json.dumps(args, ensure_ascii=False) for _, args in records]
    device = DeviceTrace.of(FILE, len(records), Repairs(FILE), role=role, args=texts)
    device.name[:] = device.names["any"]
    read_arguments(device)
    for row, (work, args) in enumerate(records):
        facts = facts_of(args, work=work)
        assert device.collectives.get(row) == replace(facts, sequence=whole(args.get("Seq")))
        assert (device.operands.get(row) or []) == operands_of(args)


def test_a_number_is_nobody_elses() -> None:
    texts = ['{"Collective name": "allreduce", "Seq": 1}', '{"Collective name": "allreduce"}']
    role = np.full(2, Role.WORK, np.uint8)
    device = DeviceTrace.of(FILE, 2, Repairs(FILE), role=role, args=texts)
    device.name[:] = device.names["any"]
    read_arguments(device)
    assert [facts.sequence for _, facts in device.collectives.items()] == [1, None]


@needs_kernel
@given(st.lists(st.sampled_from(["", "{}", '{"a": 1}', '{"b": 2}', '{"a": "naïve", "b": 3}'])))
def test_rows_that_hold_a_word(texts: list[str]) -> None:
    rows, words = np.arange(0, len(texts), 2), ('"a"', '"b"')
    wanted = [row for row in rows if '"a"' in texts[row] or '"b"' in texts[row]]
    assert both_ways(_telling, texts, rows, words) == (wanted, wanted)
    assert both_ways(_telling, CarriedTexts(texts), rows, words) == (wanted, wanted)
