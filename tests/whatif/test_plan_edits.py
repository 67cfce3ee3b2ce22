"""A run that is edited from one plan to another is the run that the other plan makes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_plans import DENSE, MOE, interleaved, plans, with_experts

from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError
from chakra_et.kerneltimes import Samples, samples_of
from chakra_et.kerneltimes.files import write_samples
from chakra_et.model import Trace, TraceSet
from chakra_et.replay import network_of, replay
from chakra_et.whatif import Edited, MissedError, edit, parse_edit
from chakra_et.whatif.plan_edits import changed
from chakra_et.whatif.transformer import recognise
from chakra_et.workloads import Model, Phase, Plan, Recompute, Roofline, Schedule, device, generate

ROOFLINE = Roofline(device("a100"))


def model(of: Model = DENSE, **changed: Any) -> Model:
    return Model(**{name: getattr(of, name) for name in of.__struct_fields__}
                 | {"layers": 4} | changed)  # fmt: skip


START = Plan(model=model(), tp=2, pp=2, dp=2, sequence=64, global_batch=8)
GRID = {
    "dp=4": replace(START, dp=4, global_batch=16),
    "dp=1": replace(START, dp=1, global_batch=4),
    "dp=4 global_batch=8": replace(START, dp=4, global_batch=8),
    "pp=4": replace(START, pp=4),
    "pp=1": replace(START, pp=1),
    "tp=4": replace(START, tp=4),
    "tp=1": replace(START, tp=1),
    "layers=6": replace(START, model=model(layers=6)),
    "layers=3": replace(START, model=model(layers=3)),
    "hidden=128": replace(START, model=model(hidden=128)),
    "ffn=192 heads=8": replace(START, model=model(ffn=192, heads=8)),
    "sequence=128": replace(START, sequence=128),
    "precision=fp32": replace(START, dtype="fp32"),
    "recompute=full": replace(START, recompute=Recompute.FULL),
    "sequence_parallel=on": replace(START, sequence_parallel=True),
    "schedule=interleaved:2": replace(START, schedule=Schedule.INTERLEAVED, chunks=2),
    "schedule=gpipe": replace(START, schedule=Schedule.GPIPE),
    "zero=0 bucket=40000": replace(START, zero=0, overlap=True, bucket=10000),
    "layers=8 dp=4 tp=1 pp=4": replace(
        START, model=model(layers=8), dp=4, tp=1, pp=4, global_batch=16
    ),
}


TOLD = {
    "experts": (
        Plan(model=model(MOE), tp=2, ep=2, dp=4, sequence=32, global_batch=4),
        ["dp=2", "ep=4", "ep=1", "tp=1", "pp=2", "cp=2", "layers=6", "experts=8",
         "experts_per_token=1 expert_ffn=96", "sequence=64 dp=8 tp=1"],
    ),
    "prefill": (
        Plan(model=model(), phase=Phase.PREFILL, tp=2, pp=2, sequence=64),
        ["sequence=128", "dp=2 layers=6", "tp=1", "micro_batch=2"],
    ),
    "decode": (
        Plan(model=model(MOE), phase=Phase.DECODE, tp=2, ep=2, dp=2, context=64, tokens=2),
        ["context=128", "tokens=3", "pp=2 layers=5", "ep=1", "global_batch=8", "precision=fp16"],
    ),
    "serve": (
        Plan(model=model(), phase=Phase.SERVE, pp=2, sequence=64),
        ["tp=2", "sequence=32 tokens=2", "dp=2", "hidden=128"],
    ),
    # Of one replica no graph tells how more of them would share gradients and weights.
    "one replica": (replace(START, dp=1, zero=0, overlap=True, global_batch=4), ["dp=2"]),
}  # fmt: skip
"""Plans that no graph tells whole, with edits of them."""


def made(plan: Plan) -> TraceSet:
    return generate(plan, ROOFLINE)


def silent(traces: TraceSet) -> TraceSet:
    """The set without a word of how it was made: only its graph is left."""
    for trace in traces.values():
        kept = [a for a in trace.metadata.attributes
                if a.key.name not in ("workload", "grid", "coordinates", "producer")]  # fmt: skip
        trace.metadata.attributes[:] = kept
    return traces


def edited(traces: TraceSet, text: str) -> Edited:
    return edit(traces, [parse_edit(part) for part in text.split()])


def same(a: TraceSet, b: TraceSet) -> bool:
    """Whether nodes, edges, sizes, groups and times of all ranks are equal."""
    return list(a) == list(b) and all(
        a[rank].nodes.same(b[rank].nodes)
        and a[rank].edges == b[rank].edges
        and a[rank].groups == b[rank].groups
        for rank in a
    )


def spans(traces: TraceSet) -> list[int]:
    done = replay(traces, network=network_of("2,100", "network"))
    return [figures.span_ns for figures in done.figures.values()]


@pytest.mark.parametrize("text", GRID)
def test_a_set_edited_to_a_plan_is_the_set_generated_for_it(text: str) -> None:
    wanted = made(GRID[text])
    after = edited(silent(made(START)), text)
    assert same(after.traces, wanted)
    assert spans(after.traces) == spans(wanted)
    # What ran before has its time from there, what did not from the device that fits all of it.
    assert set(after.changes[0].provenance) <= {"recorded", "model", "unknown"}


def wanted_of(plan: Plan, text: str) -> Plan:
    """The plan that the edits of a text lead to."""
    edits = [parse_edit(part).plan for part in text.split()]
    return changed(plan, [each for each in edits if each is not None])


@pytest.mark.parametrize(
    ("plan", "text"), [(plan, text) for plan, texts in TOLD.values() for text in texts]
)
def test_a_plan_that_a_set_tells_counts_where_its_graph_bears_it_out(plan: Plan, text: str) -> None:
    after, wanted = edited(made(plan), text).traces, made(wanted_of(plan, text))
    assert same(after, wanted)
    assert after[0].metadata.get("workload") == wanted[0].metadata.get("workload")
    assert spans(after) == spans(wanted)


@given(
    plan=with_experts.filter(lambda plan: plan.world_size <= 8),
    text=st.sampled_from(["layers=9", "tp=2", "dp=4", "ep=1", "pp=2", "hidden=128", "zero=0",
                          "experts=8", "cp=1 micro_batch=2", "recompute=full tp=1"]),
)  # fmt: skip
@settings(max_examples=10)
def test_experts_edited_are_experts_generated_or_both_are_refused(plan: Plan, text: str) -> None:
    try:
        wanted = generate(wanted_of(plan, text))
    except ChakraError as error:
        with pytest.raises(MissedError, match=re.escape(error.problem)):
            edited(generate(plan), text)
        return
    assert same(edited(generate(plan), text).traces, wanted)


def test_a_plan_that_the_graph_does_not_bear_out_does_not_count() -> None:
    """The graph of a dense model tells its plan all the same; one of experts does not."""
    for start, text in ((START, "layers=6"), (TOLD["experts"][0], "hidden=128")):
        traces = made(start)
        for trace in traces.values():
            told = replace(start, sequence=16).facts["workload"]
            trace.metadata.set("workload", Kind.STRING, told)
        if start is START:
            assert same(edited(traces, text).traces, made(GRID[text]))
            continue
        with pytest.raises(MissedError, match=r"has another .*: so says the set that it is"):
            edited(traces, text)


@pytest.mark.parametrize(
    "told",
    ["", "no JSON", "[]", '{"kind": "llm"}', '{"kind": "llm", "model": {"layers": "many"}}',
     '{"kind": "llm", "model": {"name": "", "layers": 4, "hidden": 1, "heads": 1, "ffn": 1, '
     '"vocabulary": 1}, "tp": 2, "pp": 2, "dp": 2, "global_batch": 200000000}'],
)  # fmt: skip
def test_metadata_that_tell_no_plan_are_no_plan(told: str) -> None:
    traces = silent(made(START))
    for trace in traces.values():
        trace.metadata.set("workload", Kind.STRING, told)
    assert same(edited(traces, "layers=6").traces, made(GRID["layers=6"]))


@pytest.mark.parametrize(
    ("plan", "text", "why"),
    [("decode", "sequence=32", "sequence does nothing: this is decode of 2 tokens after 64"),
     ("prefill", "context=32", "context does nothing: this is a prefill"),
     ("serve", "zero=0", "zero does nothing: this is serve of 1 token"),
     ("one replica", "tokens=2", "tokens does nothing: this is a 1f1b step"),
     ("experts", "ep=3", "ep 3 does not divide dp 4"),
     ("experts", "experts=1", "2 experts_per_token of 1 experts"),
     ("one replica", "ep=2 dp=2", "but dense has no experts"),
     ("one replica", "heads=6 hidden=96", "6 heads are not a multiple of 4 kv_heads")],
)  # fmt: skip
def test_what_does_nothing_in_a_run_or_cannot_be_is_refused(plan: str, text: str, why: str) -> None:
    with pytest.raises(MissedError, match=why):
        edited(made(TOLD[plan][0]), text)


def test_an_edit_that_leaves_the_graph_as_it_is_says_so_and_is_kept_for_later() -> None:
    """One replica has nothing to share; with another one, it counts how they would."""
    plan = replace(START, dp=1, zero=1, global_batch=4)
    once = edited(made(plan), "zero=0")
    assert once.changes[0].nodes == 0
    after = edited(once.traces, "dp=2").traces
    assert same(after, made(replace(plan, dp=2, zero=0, global_batch=8)))


@pytest.mark.parametrize("there", ["pp=4", "tp=1", "layers=6", "dp=1", "hidden=128", "zero=0"])
def test_an_edit_is_undone_by_its_inverse(there: str) -> None:
    back = {"pp=4": "pp=2", "tp=1": "tp=2", "layers=6": "layers=4", "dp=1": "dp=2",
            "hidden=128": "hidden=64", "zero=0": "zero=1"}  # fmt: skip
    before = made(START)
    assert same(edited(edited(before, there).traces, back[there]).traces, before)


def test_the_last_of_two_edits_of_one_size_counts_and_order_of_others_does_not() -> None:
    before = made(START)
    assert same(edited(before, "layers=6 layers=3").traces, edited(before, "layers=3").traces)
    one, other = "dp=4 tp=1 layers=6", "layers=6 tp=1 dp=4"
    assert same(edited(before, one).traces, edited(before, other).traces)
    apart = edited(edited(edited(before, "dp=4").traces, "tp=1").traces, "layers=6")
    assert same(edited(before, one).traces, apart.traces)


def test_an_edit_to_what_is_there_changes_nothing() -> None:
    before = made(START)
    after = edited(before, "layers=4 dp=2 schedule=1f1b precision=bf16")
    assert after.traces is before
    assert after.changes[0].nodes == 0


@given((plans | interleaved).filter(lambda plan: plan.world_size <= 8))
@settings(max_examples=12)
def test_a_plan_is_recognised_from_its_graph_alone(plan: Plan) -> None:
    """Every plan makes the graph that the recognised one makes; what no graph tells may differ."""
    found = recognise(silent(generate(plan))).plan
    assert same(silent(generate(found)), silent(generate(plan)))
    told = ("tp", "pp", "dp", "cp", "micro_batch", "global_batch", "sequence", "dtype", "chunks")
    assert [getattr(found, name) for name in told] == [getattr(plan, name) for name in told]
    for name in ("layers", "hidden", "heads", "ffn", "gated"):
        assert getattr(found.model, name) == getattr(plan.model, name)


@pytest.mark.parametrize("layers", [1, 3, 4])
@pytest.mark.parametrize("schedule", [Schedule.ZERO_BUBBLE, Schedule.ONE_F_ONE_B])
def test_a_schedule_is_recognised_where_stages_have_one_layer(
    schedule: Schedule, layers: int
) -> None:
    """The order of layers in a backward pass tells nothing there; the order of operators does."""
    pp = {1: 1, 3: 2, 4: 4}[layers]
    plan = Plan(model=model(layers=layers), pp=pp, sequence=64, global_batch=8, schedule=schedule)
    assert recognise(silent(generate(plan))).plan.schedule is schedule


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"dp": 1, "global_batch": 4}, "ZeRO stage, overlap and bucket not told"),
        ({"zero": 0}, "ZeRO 0, overlap not told, bucket not told: one holds all"),
        ({"zero": 1, "overlap": True, "bucket": 9000},
         "ZeRO 1, gradients summed while the backward pass goes on, buckets of up to {largest:,}"),
        ({"zero": 2, "bucket": 9000},
         "ZeRO 2, gradients summed for each micro-batch, buckets of up to {largest:,} bytes"),
    ],
)  # fmt: skip
def test_how_gradients_are_shared_is_told_where_the_graph_tells_it(
    options: dict[str, Any], told: str
) -> None:
    traces = silent(made(replace(START, **options)))
    table = traces[0].nodes.attributes
    sums = (table.dense("phase", "", object) == "gradients") & (traces[0].nodes.type == 7)
    largest = table.dense("comm_size", 0, np.int64)[sums].max(initial=0)
    # The other stage has gradients of the same sizes, but for the embedding and the head.
    assert told.format(largest=largest) in edited(traces, "layers=5").changes[0].told[0]


def test_names_of_nodes_do_not_matter_and_are_kept() -> None:
    before = silent(made(START))
    for trace in before.values():
        trace.nodes.names = [f"op{len(name)}.{hash(name)}" for name in trace.nodes.names]
    after = edited(before, "layers=6").traces
    assert set(after[0].nodes.names) == set(before[0].nodes.names)


def test_times_that_vary_stay_where_they_were() -> None:
    """A slow layer stays slow when stages move; what is new takes the usual time."""
    before = made(START)
    for trace in before.values():
        layer = trace.nodes.attributes.dense("layer", -1, np.int64)
        trace.nodes.duration_ns[layer == 3] *= 3
    after = edited(before, "pp=4")
    slow = [
        int(ns)
        for trace in after.traces.values()
        for ns in trace.nodes.duration_ns[trace.nodes.attributes.dense("layer", -1, np.int64) == 3]
    ]
    usual = [
        int(ns)
        for trace in made(GRID["pp=4"]).values()
        for ns in trace.nodes.duration_ns[trace.nodes.attributes.dense("layer", -1, np.int64) == 3]
    ]
    assert slow == [3 * ns for ns in usual]
    assert after.changes[0].provenance["recorded"] > 0


def test_other_shapes_scale_by_the_rates_of_the_run_where_no_device_fits() -> None:
    before = made(START)
    for trace in before.values():
        trace.nodes.duration_ns = trace.nodes.duration_ns * 5 // 3
    after = edited(before, "hidden=128")
    assert after.changes[0].provenance["extrapolated"] > 0
    grown = sum(int(t.nodes.duration_ns.sum()) for t in after.traces.values())
    assert grown > sum(int(t.nodes.duration_ns.sum()) for t in before.values())


@pytest.mark.parametrize("text", ["hidden=128", "tp=4"])
def test_what_an_edit_makes_new_takes_what_a_table_says(text: str, tmp_path: Path) -> None:
    """The table is of the run with that plan on another device: new shapes are on that one."""
    wanted = generate(GRID[text], Roofline(device("h100")))
    write_samples(samples_of(wanted, "h100"), tmp_path / "table.json")
    after = edited(made(START), f"{text} kernel_times={tmp_path / 'table.json'}")
    ran = {}
    for one in made(START).values():
        ran |= dict(zip(alike(one), one.nodes.duration_ns.tolist(), strict=True))
    for rank, one in after.traces.items():
        # What ran before still takes what it took; what did not, what the other device takes.
        told = zip(alike(one), wanted[rank].nodes.duration_ns.tolist(), strict=True)
        assert one.nodes.duration_ns.tolist() == [ran.get(key, new) for key, new in told]
    assert after.changes[0].provenance["recorded by the table"] > 0


def test_a_table_that_says_nothing_leaves_new_times_as_they_are_without_it(tmp_path: Path) -> None:
    write_samples(Samples.joined([]), tmp_path / "other.json")
    without_table, after = (
        edited(made(START), f"hidden=128{more}")
        for more in ("", f" kernel_times={tmp_path / 'other.json'}")
    )
    assert same(after.traces, without_table.traces)


def alike(trace: Trace) -> list[tuple[Any, ...]]:
    """What each node works on: nodes that are alike take as long."""
    nodes, table = trace.nodes, trace.nodes.attributes
    told = [table.dense(name, -1, np.int64).tolist() for name in ("num_ops", "tensor_size")]
    shapes = [nodes.io(code) for code in nodes.input_code.tolist()]
    return list(zip(nodes.name.tolist(), shapes, *told, strict=True))


def test_waiting_for_other_ranks_is_no_time_of_a_transfer() -> None:
    """In a replayed run transfers last as long as members wait; what is edited does not."""
    replayed = replay(made(START)).traces
    assert max(int(t.nodes.duration_ns[t.nodes.type == 7].max()) for t in replayed.values()) > 0
    after = edited(replayed, "layers=6")
    assert spans(after.traces) == spans(made(GRID["layers=6"]))
    waits = [int(t.nodes.duration_ns[t.nodes.type == 7].max()) for t in after.traces.values()]
    assert waits == [0] * 8


# ---------------------------------------------------------------------------------------------
# Refusals


def without(name: str) -> TraceSet:
    traces = made(START)
    for trace in traces.values():
        table = trace.nodes.attributes
        for column in table.named(name):
            table.remove(column, column.rows)
    return traces


@pytest.mark.parametrize("name", ["op_type", "phase", "layer", "micro_batch"])
def test_a_run_that_does_not_tell_its_steps_is_refused(name: str) -> None:
    with pytest.raises(MissedError, match=f"nodes with {name}"):
        edited(without(name), "pp=4")


def test_a_graph_that_differs_in_one_node_is_refused_by_name() -> None:
    traces = made(START)
    row = int(np.flatnonzero(traces[3].nodes.name == "mlp.up")[1])
    size = next(c for c in traces[3].nodes.attributes.columns if c.key.name == "num_ops")
    size.values[np.searchsorted(size.rows, row)] += 2
    with pytest.raises(MissedError, match=r"node \d+ of rank 3, 'mlp.up', has another num_ops"):
        edited(traces, "tp=4")


def test_an_edge_that_is_missing_is_noticed() -> None:
    traces = made(START)
    edges = traces[0].edges
    keep = np.ones(len(edges), np.bool_)
    keep[len(edges) // 2] = False
    traces = TraceSet({**traces, 0: Trace(traces[0].nodes, edges.select(keep), traces[0].metadata)})
    with pytest.raises(MissedError, match="has another edges"):
        edited(traces, "layers=6")


def test_ranks_that_are_missing_are_named() -> None:
    traces = made(START)
    with pytest.raises(MissedError, match="all ranks from 0 on"):
        edited(TraceSet({rank: traces[rank] for rank in (0, 1, 5)}), "dp=4")
    with pytest.raises(MissedError, match=r"layers=6 misses .*all ranks: groups have rank 7"):
        edited(TraceSet({rank: traces[rank] for rank in range(7)}), "layers=6")


@pytest.mark.parametrize(
    ("text", "why"),
    [("tp=3", "tp 3 does not divide"), ("layers=1", "2 stages for 1 layers"),
     ("hidden=100", "not a multiple"), ("global_batch=7", "does not divide"),
     ("schedule=interleaved:8", "16 stages for 4 layers")],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(text: str, why: str) -> None:
    with pytest.raises(MissedError, match=why):
        edited(made(START), text)


@pytest.mark.parametrize(
    "text",
    ["layers=0", "layers=two", "dp=-1", "schedule=interleaved", "schedule=lifo", "recompute=some",
     "precision=int64", "sequence_parallel=1", "bucket=", "bucket=5XB", "layers:x=3", "zero=9x"],
)  # fmt: skip
def test_values_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ChakraError):
        parse_edit(text)
