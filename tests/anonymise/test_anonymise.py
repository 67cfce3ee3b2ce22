"""What is given away holds nothing but what the policy allows, and replays within its bound."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import chakra
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from traces import coll, node, trace
from truth.linked import linked
from truth.machine import play
from truth.program import Program
from truth.programs import programs

from chakra_et import ChakraError, write
from chakra_et.anonymise import READY, anonymise, load_policy
from chakra_et.anonymise import policy as policy_module
from chakra_et.anonymise.merging import merged
from chakra_et.anonymise.pseudonyms import PUBLIC
from chakra_et.anonymise.rules import RULES
from chakra_et.anonymise.values import on_grid, shapes_text, sizes, types_text
from chakra_et.audit.strings import texts
from chakra_et.conversion import convert
from chakra_et.definitions import ATTRIBUTES, Kind
from chakra_et.model import UNKNOWN_NS, ProcessGroup, Trace, TraceSet, time_parts
from chakra_et.replay import replay
from chakra_et.validators import Severity, validate

SECRET = b"a secret of enough bytes"
RUNS = {"dlrm8": 8, "torch213/tp_2rank": 2}


@cache
def recorded(folder: Path, ranks: int) -> TraceSet:
    files = {r: (folder / f"host.{r}.json.gz", folder / f"device.{r}.json.gz")
             for r in range(ranks)}  # fmt: skip
    return TraceSet({rank: convert(*pair).trace for rank, pair in files.items()})


@pytest.fixture
def pair(data: Path) -> TraceSet:
    return recorded(data / "torch213/tp_2rank", 2)


def spans(traces: TraceSet) -> list[int]:
    return sorted(f.span_ns for f in replay(traces).figures.values())


def told(traces: TraceSet) -> set[str]:
    """Every text with a letter, of four characters or more, that no list makes public.

    The texts of `time_parts` and `sync_on` are numbers and the schema's own words.
    """
    numbers = ("attribute time_parts", "attribute sync_on")
    found = {text.text for trace in traces.values() for text in texts(trace)
             if text.what not in numbers}  # fmt: skip
    return {t for t in found if len(t) >= 4 and re.search("[A-Za-z]", t) and t not in PUBLIC}


@pytest.mark.parametrize(
    ("run_name", "name"), [("dlrm8", "publish"), *(("torch213/tp_2rank", name) for name in READY)]
)
def test_real_runs(data: Path, run_name: str, name: str, tmp_path: Path) -> None:
    run = recorded(data / run_name, RUNS[run_name])
    policy = load_policy(name)
    done = anonymise(run, policy, SECRET).traces
    before, after = spans(run), spans(done)
    for old, new in zip(before, after, strict=True):
        assert abs(new / old - 1) <= policy.span_error
    assert validate(done).count(Severity.ERROR) == 0
    rank, trace = next(iter(done.items()))
    write(trace, tmp_path / "t.et")
    data = (tmp_path / "t.et").read_bytes()
    left = [text for text in told(run) if text.encode() in data]
    # Parts of public names are no secret. What stands in brackets are shapes and types, which the
    # policy for partners keeps.
    public = [*ATTRIBUTES, *(PUBLIC if name == "partner" else ())]
    left = [text for text in left if not any(text in known for known in public)]
    assert [t for t in left if not (name == "partner" and t.startswith("["))] == []
    known = trace.nodes.start_ns[trace.nodes.start_ns != UNKNOWN_NS]
    assert (rank in run, known.min()) == (True, 0)
    assert trace.nodes.id.tolist() == list(range(len(trace.nodes)))


@pytest.mark.parametrize("name", READY)
def test_pseudonyms_follow_from_the_secret_alone(data: Path, name: str) -> None:
    folder = data / "torch213/tp_2rank"
    one, two = (
        convert(folder / f"host.{r}.json.gz", folder / f"device.{r}.json.gz").trace for r in (0, 1)
    )
    policy = load_policy(name)

    def names(*traces: Trace, secret: bytes = SECRET) -> list[set[str]]:
        sets = [anonymise(TraceSet({t.rank or 0: t}), policy, secret).traces for t in traces]
        made = [next(iter(done.values())) for done in sets]
        return [{group.name for group in t.groups} | set(t.nodes.names) for t in made]

    here, there = names(one, two)
    assert len(here & there) / len(here) > 0.9
    (other,) = names(one, secret=b"another secret of enough bytes")
    assert not {n for n in here & other if re.search(r"_[0-9a-f]{8}$", n)}


def test_what_no_policy_names_is_gone(pair: TraceSet) -> None:
    rank, trace = next(iter(pair.items()))
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    rows = np.arange(3)
    nodes.attributes.add("customer", Kind.STRING, ["Secret Inc"] * 3, rows)
    nodes.extra[0] = b"\xfa\x3e\x06hidden"
    marked = Trace(nodes, trace.edges, trace.metadata)
    done = anonymise(TraceSet({rank: marked}), load_policy("partner"), SECRET)
    made = next(iter(done.traces.values()))
    assert made.nodes.attributes.named("customer") == []
    assert made.nodes.extra == {}
    assert done.account["records with unknown fields, which were dropped"] == 1
    assert done.account["attribute dropped"] > 3


@given(programs())
def test_merging_keeps_the_span(program: Program) -> None:
    (done,) = play(program)
    trace = linked(done)
    short = merged(trace)
    assert len(short.nodes) <= len(trace.nodes)
    assert replay(short).figures[0].span_ns == replay(trace).figures[0].span_ns


@given(st.lists(st.integers(0, 2**53), min_size=1), st.just(0.0) | st.floats(0.001, 0.5))
def test_sizes_stay_within_the_error(values: list[int], error: float) -> None:
    given_values = np.array(values, np.int64)
    changed = sizes(given_values, error)
    assert (np.abs(changed - given_values) <= error * given_values).all()
    assert (changed[given_values > 0] > 0).all()


@given(st.lists(st.integers(0, 10**15), min_size=1), st.integers(1, 10_000))
def test_times_lie_on_the_grid(values: list[int], grid: int) -> None:
    given_values = np.array(values, np.int64)
    changed = on_grid(given_values, grid)
    assert (changed % grid == 0).all()
    assert (np.abs(changed - given_values) <= grid).all()


def test_shapes_hold_numbers_and_nothing_else() -> None:
    partner, publish = load_policy("partner"), load_policy("publish")
    text = b'[[1000,4096],"name",[[3],[2,"x"]],true]'
    assert shapes_text(text, partner) == b"[[1000,4096],[],[[3],[2,[]]],[]]"
    assert shapes_text(text, publish) == b""
    assert shapes_text(b"[[", partner) == b"[]"
    kinds = b'["Tensor(float)","acme::Tensor","Int"]'
    assert types_text(kinds, partner) == b'["Tensor(float)","Other","Int"]'


def test_policies_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match="no policy 'nobody'"):
        load_policy("nobody")
    ready = Path(__file__).parents[2] / "chakra_et/anonymise/policies/publish.toml"
    own = tmp_path / "own.toml"
    own.write_text(ready.read_text().replace('"is_cpu_op",', '"is_cpu_op", "device_args",'))
    with pytest.raises(ChakraError, match="no rule is known for device_args"):
        load_policy(str(own))
    own.write_text(ready.read_text() + "\ncolour = 1\n")
    with pytest.raises(ChakraError, match="colour"):
        load_policy(str(own))


def test_the_command(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("0123456789abcdef\n")
    words = ["anonymise", EXAMPLES / "simple_add", "-o", tmp_path / "out"]
    done = chakra(*words, "--policy", "publish", "--key-file", key)
    assert done.code == 0, done.output
    assert "does not protect:" in done.words
    assert chakra("audit", tmp_path / "out", "--against", EXAMPLES / "simple_add").code == 0
    assert "expected one of --key" in chakra(*words, "--policy", "publish").errors
    assert "can be guessed" in chakra(*words, "--policy", "publish", "--key", "short").errors


def jumbled(rank: int, name: str, kind: Kind, values: list[object]) -> Trace:
    """Two nodes and a collective; the former have an attribute of some kind."""
    made = trace(node(1, start=0, took=900), node(2, start=1000, took=900, ctrl=(1,)),
                 coll(3, start=2000, took=900, ctrl=(2,)), rank=rank)  # fmt: skip
    made.nodes.attributes.add(name, kind, values, np.array([0, 1]))
    return made


@pytest.mark.parametrize("policy", READY)
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_value_of_another_kind_than_the_schemas_does_not_stay(policy: str, name: str) -> None:
    kinds: list[tuple[Kind, list[object]]] = [
        (Kind.STRING, ["leaks /home/alice", ""]), (Kind.BYTES, [b"leaks /home/alice", b""]),
        (Kind.DOUBLE, [float("nan"), 1e300]), (Kind.UINT64, [2**64 - 1, 2**63]),
        (Kind.INT64, [-(2**63), 2**63 - 1]), (Kind.INT64_LIST, [(1, 2), ()]),
    ]  # fmt: skip
    for kind, values in kinds:
        given = TraceSet({rank: jumbled(rank, name, kind, values) for rank in (0, 1)})
        done = anonymise(given, load_policy(policy), SECRET).traces
        assert not any("leaks" in text.text for t in done.values() for text in texts(t))


def test_the_order_of_a_groups_ranks_does_not_tell_how_they_were_shuffled() -> None:
    groups = [ProcessGroup(name="world", ranks=tuple(range(8)))]
    given = TraceSet({r: trace(node(1, start=0, took=9), rank=r, groups=groups) for r in range(8)})
    done = anonymise(given, load_policy("publish"), SECRET).traces
    assert {group.ranks for group in done.groups} == {tuple(range(8))}
    kept = anonymise(given, load_policy("partner"), SECRET).traces
    assert kept.groups[0].ranks == tuple(range(8))


def test_the_parts_of_a_duration_change_too(pair: TraceSet) -> None:
    done = anonymise(pair, load_policy("publish"), SECRET).traces
    old, new = (
        np.concatenate([parts.ns[~parts.own] for t in traces.values()
                        for parts in [time_parts(t.nodes)]])
        for traces in (pair, done)
    )  # fmt: skip
    long = new[new > 20_000]
    assert len(long) > 20
    assert np.isin(long, old).mean() < 0.2


def test_two_runs_under_one_secret_are_not_changed_alike() -> None:
    """Else quotients of their durations were exact."""
    runs = [
        TraceSet({0: trace(*(node(i, start=i * k, took=k - 1) for i in range(40)), rank=0)})
        for k in (1_000_001, 2_000_001)
    ]
    took = [anonymise(run, load_policy("publish"), SECRET).traces[0].nodes.duration_ns
            for run in runs]  # fmt: skip
    assert np.ptp(took[1] / took[0]) > 0.01


@pytest.mark.parametrize("facts", [{"world": 2**60}, {"groups": {"g": (0, 2**40)}}])
def test_a_world_too_large_to_number_is_refused(facts: dict[str, Any]) -> None:
    given = TraceSet({0: trace(node(1), rank=0, **facts)})
    with pytest.raises(ChakraError, match="can be numbered anew"):
        anonymise(given, load_policy("publish"), SECRET)


def test_ranks_below_zero_and_waits_for_nothing_known_do_not_stay() -> None:
    waits = ["", "stream ² 3", "device 99999999999999999999", "alice", "stream 0 7", "device 0"]
    given = TraceSet({0: trace(*(node(i, sync_on=text) for i, text in enumerate(waits)), rank=0,
                               groups={"g": (0, -3)})})  # fmt: skip
    done = anonymise(given, load_policy("publish"), SECRET).traces
    assert done.groups[0].ranks == (0,)
    (column,) = done[0].nodes.attributes.named("sync_on")
    assert (column.rows.tolist(), column.values) == ([4, 5], ["stream 0 0", "device 0"])


def test_a_circle_is_not_merged_but_refused_by_the_replay() -> None:
    at = {"thread": 1, "took": 5}
    given = trace(node(1, start=0, deps=(3,), **at), node(2, start=5, deps=(1,), **at),
                  node(3, start=10, deps=(2,), **at), rank=0)  # fmt: skip
    assert len(merged(given).nodes) == 3
    with pytest.raises(ChakraError, match="form a cycle"):
        anonymise(TraceSet({0: given}), load_policy("coarse"), SECRET)


def test_a_long_run_is_one_node() -> None:
    given = trace(*(node(i, start=i, took=1, thread=1, deps=(i - 1,) if i else ())
                    for i in range(3000)), rank=0)  # fmt: skip
    assert merged(given).nodes.duration_ns.tolist() == [3000]


@pytest.mark.parametrize(
    ("text", "said"),
    [("a = " + "[" * 5000, "nested too deep"), ("#" * 70_000, "too much for a policy"),
     ("\xff", "no policy"), ("a = [[", "explains policies")],
)  # fmt: skip
def test_a_policy_that_is_none(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ChakraError, match=said):
        load_policy(str(tmp_path / "p.toml"))


def test_a_grid_that_no_duration_fits(tmp_path: Path) -> None:
    ready = Path(policy_module.__file__).parent / "policies/publish.toml"
    text = ready.read_text().replace("time_grid_ns = 100", f"time_grid_ns = {2**60}")
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ChakraError, match="at most 1 s"):
        load_policy(str(tmp_path / "p.toml"))


def test_secrets_and_outputs_that_give_all_away(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(trace(node(1, start=0, took=5), rank=0), tmp_path / "in/t.0.et")
    key = tmp_path / "key"
    for secret in (b"\0" * 64, b"0123456789abcdef" * 5000):
        key.write_bytes(secret)
        done = chakra("anonymise", tmp_path / "in", "--policy", "publish", "--key-file", key,
                      "-o", tmp_path / "out")  # fmt: skip
        assert (done.code, "no random one" in done.errors) == (2, True)
    key.write_text("0123456789abcdef")
    done = chakra("anonymise", tmp_path / "in", "--policy", "publish", "--key-file", key,
                  "-o", tmp_path / "in/")  # fmt: skip
    assert (done.code, "among the originals" in done.errors) == (2, True)
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["t.0.et"]
