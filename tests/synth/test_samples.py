"""Samples are sound sets, like what they were learned from, for any number of ranks and steps."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import coll, node, trace
from workloads_to_learn import SIZE, piped, piped_model, trained, trained_model

from chakra_et import ChakraError, read_set
from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.model import Trace, TraceSet
from chakra_et.replay import replay
from chakra_et.synth import (
    Conditions,
    Sampler,
    compare_sets,
    fit,
    load_model,
    parse_conditions,
    parse_scales,
    save_model,
)
from chakra_et.validators import Severity, validate


def calls(trace: Trace) -> list[tuple[object, ...]]:
    """Type, size and group of a rank's collectives in order."""
    return [
        (n.comm_type, n.comm_size, n.pg_name) for n in trace.nodes.where(type=NodeType.COMM_COLL)
    ]


def in_order(traces: TraceSet) -> bool:
    """Whether the ranks of each group run the same collectives in one order."""
    for group in traces.groups:
        told = {tuple(c for c in calls(traces[r]) if c[2] == group.name) for r in group.ranks}
        if len(told) != 1:
            return False
    return True


@settings(max_examples=100)
@given(st.sampled_from([trained_model(), piped_model()]), st.integers(1, 3), st.integers(1, 2),
       st.integers(0, 1 << 32))  # fmt: skip
def test_a_hundred_samples_are_valid(fitted: object, some: int, steps: int, seed: int) -> None:
    model = fitted.model  # type: ignore[attr-defined]
    ranks = some * model.parts[0].world.roles
    sample = Sampler(model, ranks, steps, seed=seed).traces()
    assert sorted(sample) == list(range(ranks))
    found = validate(sample, "astra-sim")
    assert not [o.rule.id for o in found.outcomes if o.severity >= Severity.WARNING
                and o.rule.id != "ET709"]  # fmt: skip
    assert in_order(sample)


def test_samples_replay_with_every_communication_matched() -> None:
    for model in (trained_model().model, piped_model().model):
        done = replay(Sampler(model, 8, 2).traces())
        assert not done.unmatched
        assert done.matched


def test_a_program_without_chance_comes_out_as_it_went_in() -> None:
    for model, given_set in ((trained_model().model, trained()), (piped_model().model, piped())):
        found = compare_sets(given_set, Sampler(model, 4, seed=5).traces())
        # A chain that saw a unit foresees its twin better than one that did not.
        rest = [m for m in found.measures if m.name != "held-out likelihood"]
        assert all(m.value <= (m.spread or 0) + 1e-4 for m in rest)


def test_groups_grow_with_the_world() -> None:
    sample = Sampler(trained_model().model, 12).traces()
    assert {(len(g.ranks), g.description) for g in sample.groups} == {(2, "tp"), (6, "dp")}
    assert Sampler(trained_model().model, 3).workload.grid.axes == {"tp": 1, "dp": 3}


def test_a_rank_alone_has_nothing_to_communicate() -> None:
    alone = Sampler(trained_model().model, 1).traces()[0]
    assert not alone.nodes.where(type=NodeType.COMM_COLL)
    assert len(alone.nodes) == len(trained()[0].nodes)


def test_stages_of_a_pipeline_cannot_grow() -> None:
    with pytest.raises(ChakraError, match=r"3 ranks cannot be sampled.*multiple of 2.*pp"):
        Sampler(piped_model().model, 3)
    assert Sampler(piped_model().model, 6).workload.grid.axes == {"dp": 3, "pp": 2}


def test_equal_seeds_give_equal_files(tmp_path: Path) -> None:
    model = trained_model().model
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        Sampler(spread_times(), 2, 2, seed=seed).write(tmp_path / name)
    files = [(tmp_path / name / "trace.1.et").read_bytes() for name in "abc"]
    assert files[0] == files[1]
    assert files[0] != files[2]
    in_memory = Sampler(spread_times(), 2, 2, seed=1).traces()
    assert read_set(tmp_path / "a")[1].nodes.same(in_memory[1].nodes)
    assert model == fit([trained()]).model


def spread_times() -> object:
    """A model of two ranks whose operations take different times, and wait for each other."""
    sets = {}
    for rank in (0, 1):
        nodes = [
            node(1 + i, name="aten::mm", start=100 * i, took=10 + 7 * i * (rank + 1), stream=0)
            for i in range(6)
        ]
        nodes.append(coll(9, start=900 + 50 * rank, took=200 - 50 * rank, pg_name="0"))
        sets[rank] = trace(*nodes, rank=rank, groups={"0": (0, 1)})
    return fit([TraceSet(sets)]).model


def test_what_members_have_in_common_is_the_transfer_and_the_rest_a_wait() -> None:
    sample = Sampler(spread_times(), 2, seed=3).traces()  # type: ignore[arg-type]
    took = [t.nodes.where(type=NodeType.COMM_COLL)[0].duration_ns for t in sample.values()]
    assert min(took) == 150
    assert max(took) in (150, 200)


def apart(late: int) -> TraceSet:
    """Two ranks with one operation before a collective; the second begins later by so much."""
    sets = {}
    for rank in (0, 1):
        behind = late * rank
        sets[rank] = trace(
            node(1, name="aten::mm", start=behind, took=1000, stream=0),
            coll(2, start=1000 + behind, took=500 + late - behind, pg_name="0", deps=(1,)),
            rank=rank, groups={"0": (0, 1)},
        )  # fmt: skip
    return TraceSet(sets)


def test_ranks_begin_as_far_apart_as_they_did() -> None:
    sample = Sampler(fit([apart(70_000)]).model, 8, seed=1).traces()
    starts = {int(t.nodes.start_ns.min()) for t in replay(sample).traces.values()}
    assert starts == {0, 70_000}
    together = Sampler(fit([apart(0)]).model, 8).traces()
    assert not any(t.nodes.attributes.named("release_ns") for t in together.values())
    # Who knows no starts knows of no difference.
    assert trained_model().model.parts[0].skew.counts == ()


def test_sizes_scale_and_durations_with_them() -> None:
    scaled = Sampler(
        trained_model().model, 4, scale_sizes=parse_scales(["communication=2"])
    ).traces()
    plain = trained()
    assert [c[1] for c in calls(scaled[0])] == [2 * (c[1] or 0) for c in calls(plain[0])]
    for type, factor in ((NodeType.COMM_COLL, 2), (NodeType.COMP, 1)):
        before = sum(n.duration_ns for n in plain[0].nodes.where(type=type))
        assert sum(n.duration_ns for n in scaled[0].nodes.where(type=type)) == factor * before


def test_the_share_of_communication_is_that_which_is_asked_for() -> None:
    sampler = Sampler(trained_model().model, 4, conditions=Conditions(comm_share=0.5))
    nodes = sampler.traces()[0].nodes
    talks = nodes.type == NodeType.COMM_COLL
    assert nodes.duration_ns[talks].sum() / nodes.duration_ns.sum() == pytest.approx(0.5, abs=1e-3)


def test_a_batch_changes_activations_and_no_gradients() -> None:
    model = fit([trained()], batch=8).model
    sample = Sampler(model, 4, conditions=Conditions(batch=16)).traces()[0]
    assert {c[1] for c in calls(sample)} == {2 * SIZE, 4 * SIZE}
    by_name = {n.name: n for n in sample.nodes}
    assert by_name["matmul"].num_ops == 2 << 24
    assert sum(n.duration_ns for n in sample.nodes.where(name="optimizer")) == 20_000
    with pytest.raises(ChakraError, match="does not know of which batch"):
        Sampler(trained_model().model, 4, conditions=Conditions(batch=2))


def test_the_world_that_was_learned_nearest_is_taken() -> None:
    from workloads_to_learn import training

    from chakra_et.build import Workload

    model = fit([trained(), Workload(tp=8, dp=2).traces(training)]).model
    assert [p.world.axes["tp"] for p in model.parts] == [2, 8]
    assert Sampler(model, 16).workload.grid.axes == {"tp": 8, "dp": 2}
    assert Sampler(model, 16, conditions=Conditions(world=4)).workload.grid.axes["tp"] == 2


def test_sizes_that_do_not_repeat_are_drawn_within_their_bounds() -> None:
    sizes = [1000 + 77 * i * i for i in range(30)]
    nodes = [node(1 + i, name="copy", start=10 * i, took=5, stream=0, tensor_size=s)
             for i, s in enumerate(sizes)]  # fmt: skip
    model = fit([TraceSet({0: trace(*nodes, rank=0)})]).model
    drawn = {n.tensor_size for n in Sampler(model, 1, 3).traces()[0].nodes}
    assert len(drawn) > 30
    assert min(sizes) <= min(drawn) <= max(drawn) <= max(sizes)


def test_steps_follow_each_other_on_their_lanes() -> None:
    one, three = (Sampler(trained_model().model, 4, k).traces() for k in (1, 3))
    spans = [replay(s).figures[0].span_ns for s in (one, three)]
    assert len(three[0].nodes) == 3 * len(one[0].nodes)
    assert spans[1] == pytest.approx(3 * spans[0], rel=0.05)


def test_no_name_of_the_input_is_in_the_model(tmp_path: Path) -> None:
    save_model(trained_model().model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_bytes()
    assert b"secret" not in text
    assert b"adam" not in text
    assert b'"optimizer"' in text
    save_model(trained_model().model, tmp_path / "model.json.gz")
    assert load_model(tmp_path / "model.json.gz") == load_model(tmp_path / "model.json")
    again = tmp_path / "again.json.gz"
    save_model(fit([trained()]).model, again)
    assert again.read_bytes() == (tmp_path / "model.json.gz").read_bytes()


def test_what_is_left_out_is_told() -> None:
    nodes = [
        node(1, NodeType.METADATA),
        node(2, start=0, took=5, polling=True, is_cpu_op=True, thread=1),
        node(3, name="aten::mm", start=5, took=5),
    ]
    done = fit([TraceSet({0: trace(*nodes, rank=0)})])
    told = done.as_dict()["left_out"]
    assert told["nodes of metadata or of no known type"] == 1
    assert told["nodes of threads that only poll"] == 1
    assert done.model.parts[0].nodes == 1


@pytest.mark.parametrize(
    "words", [["batch"], ["batch=x"], ["batch=0"], ["speed=3"], ["batch=2", "batch=3"],
              ["comm-share=1"], ["world=nan"]]
)  # fmt: skip
def test_conditions_that_make_no_sense_are_refused(words: list[str]) -> None:
    with pytest.raises(ChakraError, match=r"condition|comm-share"):
        parse_conditions(words)


@pytest.mark.parametrize("word", ["x", "0", "network=2", "memory=", "memory=-1"])
def test_factors_that_make_no_sense_are_refused(word: str) -> None:
    with pytest.raises(ChakraError, match="scale-sizes"):
        parse_scales([word])


def test_too_much_is_refused_before_it_is_tried() -> None:
    with pytest.raises(ChakraError, match="nodes"):
        Sampler(trained_model().model, 1 << 16, 1 << 20)
    with pytest.raises(ChakraError, match="nodes"):
        Sampler(trained_model().model, 1 << 40)


def test_nothing_to_learn_is_an_error() -> None:
    with pytest.raises(ChakraError, match="no node does any work"):
        fit([TraceSet({0: trace(rank=0)})])
    with pytest.raises(ChakraError, match="no learner"):
        fit([trained()], learner="magic")


def test_a_message_without_its_other_side_is_an_error() -> None:
    alone = trace(node(1, NodeType.COMM_SEND, comm_size=8), rank=0)
    with pytest.raises(ChakraError, match="1 message of rank 0 without the rank of the other side"):
        fit([TraceSet({0: alone})])


def test_a_cycle_is_an_error() -> None:
    circle = trace(node(1, deps=(2,)), node(2, deps=(1,)), rank=0)
    with pytest.raises(ChakraError, match="cycle"):
        fit([TraceSet({0: circle})])


# -------------------------------------------------------------------------------------------------
# Model files that nobody should have made


def hostile() -> dict[str, object]:
    """The content of a sound model file, to break."""
    return msgspec.json.decode(msgspec.json.encode(trained_model().model))  # type: ignore[no-any-return]


def broken(change: str) -> bytes:
    """The bytes of a model file with one thing wrong."""
    content = hostile()
    part = content["parts"][0]  # type: ignore[index]
    if change == "format":
        content["format"] = "chakra-et synth model 9"
    elif change == "no parts":
        content["parts"] = []
    elif change == "unknown field":
        part["more"] = 1
    elif change == "token":
        part["fills"]["tokens"][0] = 1 << 40
    elif change == "lane":
        part["tokens"][0]["lane"] = 99
    elif change == "huge length":
        part["fills"]["lengths"][0] = [10**12]
    elif change == "huge axis":
        part["world"]["axes"]["tp"] = 10**12
    elif change == "negative duration":
        part["durations"][0]["means"] = [-5]
    elif change == "distance":
        next(v for v in part["variants"] if v["distances"])["distances"][0]["values"] = [0]
    elif change == "neural":
        content["learner"] = "neural"
    elif change == "family":
        part["families"][0] = "../../etc/passwd"
    elif change == "source":
        part["sources"] = [[0, 99]]
    elif change == "occurrence":
        part["occurrences"] = [{"token": 0, "role": 0, "sketches": [len(part["apart"])]}]
    elif change == "no occurrence":
        part["occurrences"] = [{"token": 0, "role": 0, "sketches": []}]
    elif change == "role":
        part["occurrences"] = [{"token": 0, "role": 7, "sketches": [-1]}]
    elif change == "grain":
        part["grain_ns"] = 0
    elif change == "classes":
        part["classes"] = [[4]]
    elif change == "exact":
        part["exact"] = [{"mark": 0, "tokens": [len(part["tokens"])], "counts": [[1]]}]
    elif change == "exact of another kind":
        other = next(
            n for n, t in enumerate(part["tokens"])
            if t["type"] != part["tokens"][part["marks"][0][1]]["type"]
        )  # fmt: skip
        part["exact"] = [{"mark": 0, "tokens": [other], "counts": [[1]]}]
    elif change == "exact without counts":
        part["exact"] = [{"mark": 0, "tokens": [0], "counts": []}]
    elif change == "group":
        part["tokens"] = [{**t, "kin": 7 if t["type"] == 7 else -1} for t in part["tokens"]]
    return msgspec.json.encode(content)


@pytest.mark.parametrize(
    "change",
    ["format", "no parts", "unknown field", "token", "lane", "huge length", "huge axis",
     "negative duration", "distance", "neural", "family", "group", "source", "occurrence",
     "no occurrence", "role", "grain", "classes", "exact", "exact of another kind",
     "exact without counts"],
)  # fmt: skip
def test_a_model_that_none_would_write_is_refused(change: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_bytes(broken(change))
    with pytest.raises(ChakraError, match=r"model\.json: no model of `chakra synth fit`"):
        load_model(file)


@pytest.mark.parametrize("data", [b"", b"{}", b"\x1f\x8b\x08", b"[" * 100_000, b"\xff\xfe"])
def test_bytes_that_are_no_model_are_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_bytes(data)
    with pytest.raises(ChakraError):
        load_model(file)


def test_types_and_kinds_stay_what_they_were() -> None:
    sample, given_set = Sampler(trained_model().model, 4).traces()[2], trained()[2]
    assert np.array_equal(np.sort(sample.nodes.type), np.sort(given_set.nodes.type))
    assert {c[0] for c in calls(sample)} == {CollectiveType.ALL_REDUCE}
    kinds = {c.key.name: c.key.kind for c in sample.nodes.attributes.columns}
    assert kinds["comm_size"] is Kind.INT64
