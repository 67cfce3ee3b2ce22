"""Layers, buckets and replicas of recordings: what is found in them, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_plans import MOE
from traces import coll, linked, node, run, trace

from chakra_et import ChakraError
from chakra_et.definitions import CollectiveType, EdgeKind, NodeType
from chakra_et.loading import load
from chakra_et.model import Trace, TraceSet, edge_evidence
from chakra_et.replay import replay
from chakra_et.validators import validate
from chakra_et.whatif import Edited, MissedError, ask, edit, parse_edit
from chakra_et.whatif.recorded.buckets import rebucketed
from chakra_et.whatif.recorded.filling import Filling, told_by
from chakra_et.whatif.recorded.layers import find_layers
from chakra_et.whatif.recorded.sums import sums_of
from chakra_et.workloads import Plan, Roofline, device, generate

COLLECTIVE = int(NodeType.COMM_COLL)


@pytest.fixture(scope="module")
def replicas(data: Path) -> TraceSet:
    """Three steps of two data-parallel ranks over gloo: a model of four blocks."""
    return load(data / "torch213/ddp_2rank")


@pytest.fixture(scope="module")
def mlp(data: Path) -> TraceSet:
    """One step of three linear layers, of which names alone tell that they are equal."""
    return load(data / "torch213/mlp_1step")


def edited(traces: TraceSet, text: str) -> Edited:
    return edit(traces, [parse_edit(part) for part in text.split()])


def span(traces: TraceSet) -> int:
    done = replay(traces)
    assert not done.unmatched
    return max(figures.span_ns for figures in done.figures.values())


def sound(traces: TraceSet) -> bool:
    """Whether the run, replayed, breaks no rule: before that, copies begin with what they copy."""
    return not any(validate(trace).outcomes for trace in replay(traces).traces.values())


# ---------------------------------------------------------------------------------------------
# Layers


def test_each_layer_more_takes_what_one_takes(mlp: TraceSet) -> None:
    after = edited(mlp, "layers=4")
    assert after.changes[0].told == (
        "3 equal layers of 2 operators each in a forward pass, over 1 steps",
    )
    spans = [span(edited(mlp, f"layers={n}").traces) for n in (3, 4, 5, 6)]
    assert spans[0] == span(mlp)
    assert len(set(np.diff(spans))) == 1
    assert np.diff(spans)[0] > 0


@pytest.mark.parametrize(("first", "then"), [(6, 3), (8, 4), (4, 6), (5, 2), (7, 7)])
def test_the_last_number_of_layers_counts(data: Path, first: int, then: int) -> None:
    found = load(data / "kineto/bert_h100.json.gz")
    assert span(edited(found, f"layers={first} layers={then}").traces) == span(
        edited(found, f"layers={then}").traces
    )


def test_layers_of_replicas_have_gradients_in_buckets_that_are_as_full(replicas: TraceSet) -> None:
    before = sums_of(replicas[0], 0)
    for count, share in ((6, 2), (2, -2)):
        after = edited(replicas, f"layers={count}")
        assert "4 equal layers of 15 operators" in after.changes[0].told[0]
        assert sound(after.traces)
        now = sums_of(after.traces[0], 0)
        each = (sum(len(one.gradients) for one in before) // 3 - 5) // 4
        assert (
            sum(len(one.gradients) for one in now)
            == sum(len(one.gradients) for one in before) + 3 * share * each
        )
        assert all(sum(one.sizes) >= 2**20 for one in now[:-1][:1])


def test_a_layer_of_a_tensor_parallel_run_has_its_all_reduces(data: Path) -> None:
    found = load(data / "torch213/tp_2rank")
    before, after = found[0], edited(found, "layers=5").traces[0]
    transfers = [int((one.nodes.type == COLLECTIVE).sum()) for one in (before, after)]
    # Two in each layer, over three steps.
    assert transfers == [24, 30]
    assert span(edited(found, "layers=5 layers=4").traces) == span(found)


def steps(number: int, layers: int) -> TraceSet:
    """Steps of so many layers and a loss, on one thread, that no annotation tells apart."""
    made: list[dict[str, Any]] = [node(1, start=0, took=100 * number, name="main")]

    def add(name: str, shapes: bytes) -> None:
        at = len(made) + 1
        ctrl, deps = (1,), (at - 1,) if at > 2 else ()
        made.append(node(at, ctrl=ctrl, deps=deps, kind=EdgeKind.PROGRAM, start=at * 2, took=2,
                         name=name, inputs=(b"[]", shapes, b"[]")))  # fmt: skip

    for _ in range(number):
        for _ in range(layers):
            add("aten::addmm", b"[[8,8]]")
            add("aten::relu", b"[[8,8]]")
        add("aten::sum", b"[[8,8]]")
        for _ in range(layers):
            add("autograd::engine::evaluate_function: AddmmBackward0", b"[[8,8]]")
        for _ in range(9):
            add("aten::add_", b"[[8]]")
            add("aten::mul_", b"[[8]]")
    return run(trace(*made))


def test_steps_that_nothing_tells_apart_are_not_taken_for_layers() -> None:
    """A backward pass ends a forward pass; updates that repeat are none."""
    found = find_layers(steps(4, 3)[0], 0)
    assert (found.count, found.period, found.step.max() + 1) == (3, 2, 4)


class Threads:
    """Nodes of a few threads, each behind the one before on its thread."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[tuple[int, int, EdgeKind]] = []
        self.last: dict[str, int] = {}

    def add(self, name: str, *, thread: str = "main", caller: int = 0, **more: Any) -> int:
        """One more; `reads` and `asked` are waits for data, and for another thread."""
        at, again = len(self.nodes) + 1, dict(more)
        waits = [
            (caller, EdgeKind.CALL),
            (self.last.get(thread, 0), EdgeKind.PROGRAM),
            (again.pop("reads", 0), EdgeKind.DATA),
            (again.pop("asked", 0), EdgeKind.THREAD),
        ]
        self.edges += [(at, of, kind) for of, kind in waits if of]
        shapes = (b"[]", b"[[8,8]]", b"[]")
        told = {"start": at * 10, "took": 5, "name": name, "inputs": shapes, **again}
        self.nodes.append(coll(at, **told) if "gloo" in name else node(at, is_cpu_op=True, **told))
        self.last[thread] = at
        return at

    def exchange(self, caller: int, reads: int) -> int:
        """A worker sums and unpacks, and whoever asked goes on, and waits; the row that waits."""
        ask = self.add("c10d::allreduce_", caller=caller)
        copy = self.add("aten::copy_", caller=ask, reads=reads)
        transfer = self.add("gloo:all_reduce", thread="worker", asked=ask, reads=copy)
        unpacked = self.add("aten::view", thread="worker", caller=transfer)
        self.add("c10d::allreduce_", rest_of=ask)
        return self.add("wait_tensor", caller=caller, asked=unpacked)

    def trace(self) -> Trace:
        made = linked(self.nodes, self.edges)
        names, code = np.unique(made.nodes.names, return_inverse=True)
        made.nodes.names, made.nodes.name_code = names.tolist(), code.astype(np.int32)
        return made


def tensor_parallel(number: int, layers: int) -> TraceSet:
    """Steps of layers that exchange twice, and of updates that exchange each gradient."""
    of, gradients = Threads(), [0]
    for place in range(number):
        step = of.add(f"ProfilerStep#{place}")
        # What a step reads first is of no layer, though one wrote there before.
        of.add("aten::embedding", caller=step, reads=gradients[0])
        for layer in range(layers):
            made = of.add("aten::mm", caller=step, seq_id=place * layers + layer)
            of.exchange(step, made)
            of.exchange(step, made)
        gradients = []
        for layer in reversed(range(layers)):
            undo = of.add("autograd::engine::evaluate_function: MmBackward0", caller=step,
                          seq_id=place * layers + layer)  # fmt: skip
            gradients.append(of.add("aten::mm", caller=undo))
            of.exchange(undo, gradients[-1])
        update = of.add("Optimizer.step", caller=step)
        for gradient in gradients:
            wrapper = of.add("aten::add_", caller=update)
            inside = of.add("PythonSubclass", caller=wrapper)
            of.exchange(inside, gradient)
            of.add("aten::add_", caller=inside, reads=gradient)
        of.nodes[step - 1]["attributes"]["inclusive_ns"] = (len(of.nodes) - step) * 10 + 5
    return TraceSet({rank: of.trace() for rank in range(2)})


def test_workers_and_wrapped_updates_come_and_go_with_their_layer() -> None:
    """Transfers of worker threads call operators, and wait for what comes behind others."""
    two = tensor_parallel(2, 2)
    assert edited(two, "layers=2").traces is two
    for count in (1, 3, 5):
        after, wanted = edited(two, f"layers={count}").traces, tensor_parallel(2, count)
        assert sound(after)
        assert Counter(after[0].nodes.name.tolist()) == Counter(wanted[0].nodes.name.tolist())
    spans = [span(edited(two, f"layers={n}").traces) for n in (2, 3, 4, 5)]
    assert len(set(np.diff(spans))) == 1
    assert np.diff(spans)[0] > 0
    assert span(edited(two, "layers=5 layers=2").traces) == span(two)


def test_steps_that_are_repeated_take_with_them_what_workers_call() -> None:
    two = tensor_parallel(2, 2)
    four = edited(two, "repeat:name~ProfilerStep=4").traces
    assert sound(four)
    parts = [Counter(name.split("#")[0] for name in one[0].nodes.name.tolist())
             for one in (four, tensor_parallel(4, 2))]  # fmt: skip
    assert parts[0] == parts[1]
    assert span(edited(four, "repeat:name~ProfilerStep=2").traces) == span(two)


def test_exchanges_that_repeat_are_no_layers(data: Path) -> None:
    """Ten times an all-gather: `record_param_comms` is no product."""
    with pytest.raises(MissedError, match="nothing with products repeats"):
        edited(load(data / "host_et/allgather_1.0.2.json.gz"), "layers=5")


def test_layers_of_device_work_are_found_by_launches(data: Path) -> None:
    found = load(data / "kineto/bert_h100.json.gz")
    layered = [edited(found, f"layers={n}").traces[0].nodes.attributes for n in (4, 5, 6)]
    device = [int((~table.dense("is_cpu_op", True, bool)).sum()) for table in layered]
    assert np.diff(device).tolist() == [int(np.diff(device)[0])] * 2
    assert np.diff(device)[0] > 0


def test_micro_batches_that_send_messages_are_no_layers() -> None:
    traces = steps(1, 4)
    nodes = traces[0].nodes
    nodes.type[nodes.name == "aten::relu"] = NodeType.COMM_SEND
    with pytest.raises(MissedError, match="its equal parts send or receive messages"):
        edited(traces, "layers=5")


# ---------------------------------------------------------------------------------------------
# Parts of nodes


@pytest.mark.parametrize("text", ["insert:name~aten::=0", "split:name~aten::=3"])
def test_what_callers_do_behind_a_node_they_do_once(mlp: TraceSet, text: str) -> None:
    """Intervals of host nodes hold time of callers and pauses, which no copy has again."""
    after = edited(mlp, text)
    assert after.changes[0].nodes > 100
    assert span(after.traces) == span(mlp)
    took, now = (int(one[0].nodes.duration_ns.sum()) for one in (mlp, after.traces))
    assert now == took


@pytest.mark.parametrize("text", ["overlap=off", "remove:type=COMM_COLL=yes"])
def test_edges_that_are_added_or_gone_leave_others_their_evidence(
    replicas: TraceSet, text: str
) -> None:
    after = edited(replicas, text).traces
    assert not any(edge_evidence.misfits(one).size for one in after.values())


def test_an_edit_that_makes_nodes_wait_for_themselves_is_refused_as_that(mlp: TraceSet) -> None:
    one = mlp[0]
    calls = np.flatnonzero((one.edges.kind == EdgeKind.CALL) & (one.source_rows() >= 0))
    caller, called = int(one.edges.source[calls[5]]), int(one.nodes.id[one.edges.target[calls[5]]])
    with pytest.raises(ChakraError, match="after that the edges of rank 0 form a cycle"):
        ask(mlp, [parse_edit(f"move={caller}:{called}")])


# ---------------------------------------------------------------------------------------------
# Buckets


def test_buckets_as_large_as_they_were_change_nothing(replicas: TraceSet) -> None:
    after = edited(replicas, "bucket=1MiB")
    assert after.changes[0].provenance == {"recorded": 24}
    assert all(after.traces[rank] is replicas[rank] for rank in replicas)


@pytest.mark.parametrize(("size", "sums"), [("all", 1), ("2MiB", 2), ("1", 53)])
def test_other_buckets_carry_the_same_gradients(replicas: TraceSet, size: str, sums: int) -> None:
    after = edited(replicas, f"bucket={size}")
    assert sound(after.traces)
    for rank, now in after.traces.items():
        old, new = sums_of(replicas[rank], rank), sums_of(now, rank)
        assert len(new) == 3 * sums
        assert sum(sum(one.sizes) for one in new) == sum(sum(one.sizes) for one in old)
        ids = [
            [int(t.nodes.id[g]) for one in found for g in one.gradients]
            for t, found in ((replicas[rank], old), (now, new))
        ]
        assert ids[0] == ids[1]
    done = replay(after.traces)
    assert not done.unmatched
    assert set(after.changes[0].provenance) <= {"recorded", "interpolated", "extrapolated"}


def test_one_sum_for_all_cannot_overlap_and_is_exposed(replicas: TraceSet) -> None:
    def exposed(text: str) -> int:
        done = replay(edited(replicas, text).traces)
        return sum(figures.replayed.exposed_comm_ns for figures in done.figures.values())

    assert exposed("bucket=all") > 3 * exposed("bucket=256KiB")


def views_of_buckets(number: int) -> TraceSet:
    """Steps that sum two buckets of two gradients, which an optimizer reads where they lie.

    The gradient that comes last is in the first bucket, and nothing reads it.
    """

    def text(bucket: int, place: int, count: int = 256) -> tuple[bytes, bytes, bytes]:
        lies = f'[[{bucket}{place},{bucket},{place * 256},{count},4,"cpu"]]'
        return lies.encode(), f"[[{count}]]".encode(), b'["Tensor(float)"]'

    of = Threads()
    for turn in range(number):
        step = of.add(f"ProfilerStep#{turn}")
        written = {}
        for bucket, place in ((7, 0), (8, 0), (8, 1), (7, 1)):
            name = "torch::autograd::AccumulateGrad"
            holder = of.add(name, caller=step)
            written[bucket, place] = of.add("aten::mul", caller=holder, inputs=text(bucket, place))
        sums = {}
        for bucket in (7, 8):
            call = of.add("c10d::allreduce_", caller=holder, inputs=text(bucket, 0, 512))
            mine = [at for (of_bucket, _), at in written.items() if of_bucket == bucket]
            sums[bucket] = of.add("gloo:all_reduce", thread="worker", asked=call, reads=mine[0],
                                  size=2048, inputs=text(bucket, 0, 512))  # fmt: skip
            of.edges.append((sums[bucket], mine[1], EdgeKind.DATA))
        update = of.add("Optimizer.step", caller=step)
        for bucket, place in ((8, 1), (8, 0), (7, 0)):
            for name in ("aten::lerp_", "aten::addcmul_"):
                of.add(name, caller=update, reads=sums[bucket], inputs=text(bucket, place))
    return TraceSet({rank: of.trace() for rank in range(2)})


def test_gradients_that_are_views_of_buckets_are_read_where_they_lie() -> None:
    found = views_of_buckets(2)
    name = found[0].nodes.name
    sums = sums_of(found[0], 0)
    assert [one.sizes for one in sums] == [[1024, 1024]] * 4
    assert [one.copied_out for one in sums] == [False] * 4
    # Two rows of the optimizer read each gradient but one.
    assert [[name[rows].tolist() for rows in one.readers] for one in sums] == [
        [["aten::lerp_", "aten::addcmul_"], []],
        [["aten::lerp_", "aten::addcmul_"]] * 2,
    ] * 2
    for size, count in (("1", 4), ("all", 1)):
        after = edited(found, f"bucket={size}").traces
        assert sound(after)
        now = sums_of(after[0], 0)
        assert len(now) == 2 * count
        read = [after[0].nodes.id[row] for one in now for rows in one.readers for row in rows]
        assert sorted(read) == sorted(
            found[0].nodes.id[row] for one in sums for rows in one.readers for row in rows
        )
        assert span(edited(after, "bucket=2048").traces) == span(found)


FILLINGS = st.builds(Filling, st.integers(1, 200), st.integers(1, 200), st.booleans())


@given(st.lists(st.integers(1, 100), min_size=1), FILLINGS)
def test_parts_are_all_gradients_in_order_and_full_but_the_last(
    sizes: list[int], filling: Filling
) -> None:
    parts = filling.parted(sizes)
    assert [place for part in parts for place in part] == list(range(len(sizes)))
    for number, part in enumerate(parts[:-1]):
        cap = filling.cap if number else filling.first
        assert sum(sizes[place] for place in part) >= cap
        assert sum(sizes[place] for place in part[:-1]) < cap


@given(st.lists(st.integers(1, 100), min_size=1), FILLINGS)
def test_buckets_tell_a_way_to_fill_them(sizes: list[int], filling: Filling) -> None:
    parts = filling.parted(sizes)
    summed = filling.turned([[sizes[place] for place in part] for part in parts])
    told = told_by(summed, filling.reverse)
    assert told.reverse == filling.reverse
    assert told.parted(sizes) == parts


def test_gradients_in_the_order_of_parameters_are_summed_from_the_last_on(
    replicas: TraceSet,
) -> None:
    before = sums_of(replicas[0], 0)
    changed, _ = rebucketed(replicas, "bucket", 0, Filling(2**10, 2**10, reverse=True))
    assert sound(changed)
    after = sums_of(changed[0], 0)
    assert sorted(size for one in after for size in one.sizes) == sorted(
        size for one in before for size in one.sizes
    )
    # In each step, whatever is asked for last was filled first, and is full.
    assert sum(after[len(after) // 3 - 1].sizes) >= 2**10


def test_sums_of_what_a_hook_made_of_gradients_are_refused() -> None:
    nodes = [
        node(1, start=0, took=5, name="torch::autograd::AccumulateGrad", is_cpu_op=True),
        node(2, start=5, took=5, name="c10d::allreduce_", is_cpu_op=True),
        coll(3, start=10, took=5),
    ]
    found = linked(nodes, [(2, 1, EdgeKind.CALL), (3, 2, EdgeKind.THREAD)])
    with pytest.raises(MissedError, match="a communication hook changed these"):
        sums_of(found, 0)


def test_what_is_filled_last_need_not_be_full_wherever_it_is_summed() -> None:
    full, left = [2**19, 2**20], [2**12, 2**14]
    assert told_by([full, full, left], against=False) == Filling(2**20, 2**20)
    assert told_by([left, full, full], against=True) == Filling(2**20, 2**20, reverse=True)
    # The first may be full earlier; of the others nobody tells but that they take more.
    assert told_by([full, [2**23, 2**23]], against=False) == Filling(2**20, 25 * 2**20)
    assert Filling(2**20, 25 * 2**20).told == (
        "a bucket is full from 26,214,400 bytes on, the first from 1,048,576"
    )


# ---------------------------------------------------------------------------------------------
# Replicas


def test_more_replicas_send_as_much_more_as_a_ring_does(replicas: TraceSet) -> None:
    after = edited(replicas, "dp=8")
    assert len(after.traces) == 8
    assert [group.ranks for group in after.traces[5].groups] == [tuple(range(8))]
    assert after.changes[0].provenance["extrapolated"] == 8 * 12
    assert "DistributedDataParallel ran" in after.changes[0].told[0]
    assert span(replicas) < span(after.traces) < 1.1 * span(replicas)
    assert edited(replicas, "dp=2").traces is replicas


def test_one_replica_sums_nothing(replicas: TraceSet) -> None:
    after = edited(replicas, "dp=1")
    assert int((after.traces[0].nodes.type == COLLECTIVE).sum()) == 0
    assert after.changes[0].provenance.keys() == {"recorded"}


def test_a_failed_rank_takes_its_replica_with_it(replicas: TraceSet) -> None:
    after = edited(edited(replicas, "dp=4").traces, "failed=2")
    assert len(after.traces) == 3
    kept = edited(replicas, "failed=0").traces[0]
    assert kept.nodes.start_ns[0] == replicas[1].nodes.start_ns[0]
    with pytest.raises(ChakraError, match="there is no rank 9"):
        edited(replicas, "failed=9")


def experts(dp: int, ep: int) -> TraceSet:
    """A step of a mixture of experts whose expert-parallel groups lie within replicas.

    As a recording, it does not say which plan it follows.
    """
    plan = Plan(model=MOE, dp=dp, ep=ep, sequence=16, global_batch=2 * dp, zero=0)
    traces = generate(plan, Roofline(device("a100")))
    for one in traces.values():
        told = one.metadata.attributes
        told[:] = [a for a in told if a.key.name != "workload"]
    return traces


@pytest.mark.parametrize(("old", "new"), [(4, 8), (8, 4), (4, 4)])
def test_replicas_of_experts_are_counted_in_ranks_and_keep_all_experts(old: int, new: int) -> None:
    after, wanted = edited(experts(old, 2), f"dp={new}").traces, experts(new, 2)
    assert list(after) == list(wanted)
    for rank, one in after.items():
        assert one.nodes.same(wanted[rank].nodes)
        assert one.edges == wanted[rank].edges
        assert one.groups == wanted[rank].groups


def test_a_failed_rank_takes_all_expert_parallel_ranks_of_its_replica_with_it() -> None:
    after = edited(experts(4, 2), "failed=1").traces
    assert [group.ranks for group in after[0].groups if group.description == "ep"] == [(0, 1)]
    assert len(after) == 2
    with pytest.raises(MissedError, match="no multiple of the 2 expert-parallel ranks"):
        edited(experts(4, 2), "dp=3")


# ---------------------------------------------------------------------------------------------
# Refusals


def tables() -> TraceSet:
    """Two replicas of a model that has other tables on each rank."""
    wrapper = "DistributedDataParallel.forward"
    return run(*(
        trace(node(1, start=0, took=5, name=wrapper), coll(2, CollectiveType.ALL_TO_ALL, start=9),
              coll(3, start=20), rank=rank, world=2)
        for rank in (0, 1)
    ))  # fmt: skip


def test_recordings_without_the_pattern_are_refused_with_what_was_missed(
    data: Path, mlp: TraceSet, replicas: TraceSet
) -> None:
    parallel = load(data / "torch213/tp_2rank")
    with pytest.raises(MissedError, match="nothing with products repeats in a forward pass"):
        edited(load(data / "kineto/train_mi250.json.gz"), "layers=3")
    with pytest.raises(MissedError, match="none of its all-reduces reads gradients"):
        edited(parallel, "bucket=1MB")
    with pytest.raises(MissedError, match="it has no all-reduce"):
        edited(mlp, "bucket=1MB")
    with pytest.raises(MissedError, match=r"dp=4 misses .*no axis of this set .* to be dp") as no:
        edited(parallel, "dp=4")
    # What an edit has no option for is no remedy.
    assert no.value.remedy is not None
    assert "chakra scale --grid" in no.value.remedy
    with pytest.raises(MissedError, match=r"failed=0 misses a replica .* would wait for it"):
        edited(parallel, "failed=0")
    with pytest.raises(MissedError, match="tp=2 needs a run that follows a plan"):
        edited(replicas, "tp=2")
    with pytest.raises(MissedError, match="a set of one rank"):
        edited(mlp, "dp=2")
    with pytest.raises(MissedError, match="all-to-all"):
        edited(tables(), "failed=0")
    with pytest.raises(MissedError, match="which the ranks that go would take with them"):
        edited(tables(), "dp=1")
    # More ranks bring more tables, and the answer says so.
    assert "2 times as many" in edited(tables(), "dp=4").changes[0].told[1]
