"""Laws that hold for any traces, however odd: each table, timeline and picture takes them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import traces, values

from chakra_et import ChakraError
from chakra_et.definitions import ATTRIBUTES, Kind
from chakra_et.export.chrome import chrome
from chakra_et.export.dot import dot
from chakra_et.export.graphml import graphml
from chakra_et.export.perfetto import perfetto
from chakra_et.export.picture import picture
from chakra_et.export.sketch import sketch
from chakra_et.export.timeline import timeline
from chakra_et.model import Trace, TraceSet
from chakra_et.tables import FRAMES, TABLES, frame
from chakra_et.tables.diff import diff
from chakra_et.tables.encode import to_csv, to_json_text

READ = (
    "is_cpu_op", "thread", "tid", "stream", "device", "comm_type", "comm_size", "comm_tag",
    "comm_src", "comm_dst", "pg_name", "category", "inclusive_ns", "exclusive_ns", "own_start_ns",
    "time_parts", "rest_of", "polling", "same_kernel", "phase", "layer", "lag_ns", "rf_id",
    "op_schema", "sync_on", "release_ns",
)  # fmt: skip
"""Attributes that tables and timelines look at."""
EXAMPLES = 6
BOUNDS = (-(1 << 40), 1 << 40)


@st.composite
def odd_traces(draw: st.DrawFn) -> Trace:
    """Any trace, with attributes that are looked at, of the right kind or of any other."""
    one = draw(traces())
    # Times that no sum of which fits into 64 bits are told by the replay, in words.
    one.nodes.start_ns[:] = np.clip(one.nodes.start_ns, *BOUNDS)
    one.nodes.duration_ns[:] = np.clip(one.nodes.duration_ns, *BOUNDS)
    for name in draw(st.lists(st.sampled_from(READ), max_size=6, unique=True)):
        right = ATTRIBUTES[name].kind
        kind = draw(st.just(right) | st.sampled_from([Kind.STRING, Kind.DOUBLE, Kind.INT64_LIST]))
        items = [draw(_bounded(kind)) for _ in range(len(one.nodes))]
        one.nodes.attributes.add(name, kind, items)
    return one


def _bounded(kind: Kind) -> st.SearchStrategy[object]:
    if kind.name.endswith("INT64") or kind.name.endswith("INT32"):
        low = 0 if kind.name.startswith("U") else -5
        return st.integers(low, 12)
    return values(kind)


@contextmanager
def told() -> Iterator[None]:
    """What cannot be done is told in words, and nothing else is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(ChakraError):
            yield


@given(odd_traces(), odd_traces())
@settings(max_examples=EXAMPLES)
def test_every_table_takes_any_traces(one: Trace, other: Trace) -> None:
    run = TraceSet({0: one, 1: other})
    for make in TABLES.values():
        with told():
            table = make(run)
            json.loads(to_json_text(table))
            assert len(to_csv(table).splitlines()) > len(table)
            assert table._repr_html_()


@given(odd_traces(), odd_traces())
@settings(max_examples=EXAMPLES)
def test_every_frame_takes_any_traces_and_a_run_is_the_same_as_itself(
    one: Trace, other: Trace
) -> None:
    run = TraceSet({0: one, 1: other})
    with told():
        for what in FRAMES:
            json.loads(to_json_text(frame(run, what)))
        assert diff(run, run).same
        diff({0: one}, {0: other}).as_dict()


@given(odd_traces(), odd_traces())
@settings(max_examples=EXAMPLES)
def test_timelines_and_pictures_take_any_traces(one: Trace, other: Trace) -> None:
    run = TraceSet({0: one, 1: other})
    with told():
        for collapse in (None, "operator", "module"):
            every = {rank: np.ones(len(trace.nodes), np.bool_) for rank, trace in run.items()}
            drawn = picture(run, every, collapse=collapse)
            assert dot(drawn)
            assert graphml(drawn)
    with told():
        scene = timeline(run, replayed=True)
        assert b"".join(perfetto(scene))
        json.loads(b"".join(chrome(scene)))
        assert sketch(scene, 40)
