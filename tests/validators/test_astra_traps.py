"""Each way in which ASTRA-sim fails, hangs or misleads has a rule, and a cure where there is one.

One row for each trap: what happens in words, the rule that has to speak of a minimal trace with it,
and the pass that removes it. Both are run. What lies in the simulator's own configuration is no
affair of traces: docs/validators.md lists it.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rule_cases import CASES, Given, gpu, two
from traces import RECV, coll, node, recv, run, send, trace

from chakra_et import passes
from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.files import write
from chakra_et.model import Trace, TraceSet
from chakra_et.validators import PROFILES, RULES, validate


@dataclass(frozen=True)
class Trap:
    """What ASTRA-sim makes of a trace, the rule that says so, and the pass that helps."""

    words: str
    rule: str
    given: Callable[[], Given]
    cure: str = ""
    profile: str = "astra-sim"


def pair(*nodes, **more):  # type: ignore[no-untyped-def]
    """A run of two ranks that do the same."""
    return two(nodes, nodes, **more)


def of(rule: str) -> Callable[[], Given]:
    return CASES[rule].broken


AG, BARRIER = CollectiveType.ALL_GATHER, CollectiveType.BARRIER
INTEGERS = (Kind.INT64_LIST, (1, 1))

NODES = [
    Trap("METADATA aborts it in every mode", "ET701", of("ET701"), "drop-metadata-nodes"),
    Trap(
        "a node without type ends in no time, or never",
        "ET702",
        lambda: pair(node(1), node(2, NodeType.INVALID)),
        "drop-metadata-nodes",
    ),
    Trap(
        "a type beyond those it knows aborts it",
        "ET702",
        lambda: pair(node(1), node(2, 99)),
        "drop-metadata-nodes",
    ),
    Trap(
        "memory nodes hold the place of a collective", "ET703", of("ET703"), "drop-metadata-nodes"
    ),
    Trap("a memory node without size stops it", "ET217", of("ET217"), "drop-metadata-nodes"),
    Trap("of ready nodes the least id is first", "ET704", of("ET704"), "renumber"),
    Trap("a host node costs the statistics", "ET705", of("ET705"), "fold-host"),
    Trap("kernels of two streams run one by one", "ET706", of("ET706")),
    Trap(
        "collectives of two streams run one by one",
        "ET706",
        lambda: trace(coll(1, stream=7), coll(2, stream=8)),
    ),
    Trap("devices of one process run one by one", "ET724", of("ET724")),
    Trap("kernels that nothing waits for: collectives begin too early", "ET707", of("ET707")),
    Trap("starts are not looked at", "ET708", of("ET708")),
    Trap("one rank is no network", "ET709", of("ET709")),
    Trap("0 microseconds take 1 ns", "ET309", of("ET309")),
    Trap("a rank without nodes aborts it", "ET107", of("ET107"), "fill-idle-ranks"),
    Trap("thousands of ready nodes take minutes", "ET110", of("ET110")),
    Trap(
        "thousands that wait for one node alone are ready at once",
        "ET110",
        lambda: trace(node(1), *(node(i, deps=(1,)) for i in range(2, 5003))),
    ),
    Trap("more ready nodes than its memory of nodes holds", "ET111", of("ET111")),
]
GRAPH = [
    Trap("a missing parent aborts it at loading", "ET102", of("ET102"), "drop-bad-edges"),
    Trap(
        "a missing parent in ctrl_deps does too",
        "ET102",
        lambda: trace(node(1), node(2, ctrl=(77,))),
        "drop-bad-edges",
    ),
    Trap("a cycle never runs, and all ranks finish", "ET105", of("ET105"), "cut-cycles"),
    Trap(
        "a cycle over both lists never runs either",
        "ET105",
        lambda: trace(node(1, ctrl=(2,)), node(2, deps=(1,)), node(3)),
        "cut-cycles",
    ),
    Trap("what is behind a cycle never runs", "ET106", of("ET106"), "drop-bad-edges"),
    Trap("a node that waits for itself never runs", "ET103", of("ET103"), "drop-bad-edges"),
    Trap("of two nodes of one id the last is kept", "ET101", of("ET101"), "renumber"),
    Trap("a parent named twice holds up the older feeder", "ET104", of("ET104"), "drop-bad-edges"),
]
ATTRIBUTES = [
    Trap("the older feeder reads one kind alone", "ET202", of("ET202"), "normalise-attributes"),
    Trap(
        "text for a number is a bad cast", "ET201", lambda: pair(coll(1, size=(Kind.STRING, "4")))
    ),
    Trap("a number for a group's name is a bad cast", "ET201", of("ET201")),
    Trap("integers for booleans stop it", "ET201", lambda: pair(coll(1, involved_dim=INTEGERS))),
]
COLLECTIVES = [
    Trap("a collective without type throws", "ET205", of("ET205"), "settle-unknown"),
    Trap("a collective without size throws", "ET206", of("ET206"), "settle-unknown"),
    Trap("what no file tells takes its recorded time", "ET725", of("ET725")),
    Trap("a collective on the host throws", "ET212", of("ET212"), "normalise-attributes"),
    Trap(
        "a collective and its call are two collectives, or the call throws",
        "ET219",
        of("ET219"),
        "demote-calls",
    ),
    Trap("a collective's kernel as computation is replayed", "ET215", of("ET215")),
    *(
        Trap(
            f"{kind.name} is not supported",
            "ET710",
            lambda kind=kind: pair(coll(1, kind)),  # type: ignore[misc]
            "lower-collectives",
        )
        for kind in CollectiveType
        if kind in (1, 3, 4, 8, 9)
    ),
    Trap("a broadcast takes its recorded time", "ET711", of("ET711")),
    Trap("an all-gather is taken for its input: an output is far too much", "ET220", of("ET220")),
    *(
        Trap(
            f"an all-gather of {size} bytes never ends",
            "ET712",
            lambda size=size: pair(coll(1, AG, size=size)),  # type: ignore[misc]
            "lower-collectives",
        )
        for size in (0, 1, 3)
    ),
    Trap(
        "a negative size never ends",
        "ET712",
        lambda: pair(coll(1, size=-1)),
        "lower-collectives",
    ),
    Trap("an all-reduce of no bytes takes time", "ET713", of("ET713")),
    Trap("all dimensions false never ends", "ET717", of("ET717"), "lower-collectives"),
    Trap(
        "no dimension at all crashes it",
        "ET717",
        lambda: pair(coll(1, involved_dim=(Kind.BOOL_LIST, ()))),
        "lower-collectives",
    ),
    Trap("fewer dimensions than the network has", "ET723", of("ET723")),
    Trap("another order on one rank hangs", "ET503", of("ET503")),
    Trap(
        "an all-reduce on one rank, an all-gather on another",
        "ET503",
        lambda: two([coll(1)], [coll(1, AG)]),
    ),
    Trap("1 MB on one rank, 2 MB on another", "ET504", of("ET504")),
    Trap(
        "uneven all-gathers, which a machine runs, hang", "ET718", of("ET718"), "lower-collectives"
    ),
    Trap("a collective is missing on one rank", "ET502", of("ET502")),
    Trap("two groups in two orders hold each other up", "ET719", of("ET719"), "order-collectives"),
]
GROUPS = [
    Trap("a name that is no number is an exception", "ET714", of("ET714"), "number-groups"),
    Trap("an unknown group is critical", "ET402", of("ET402"), "number-groups"),
    Trap("a group whose members are not all known", "ET404", of("ET404")),
    Trap("a rank that is no member fails an assertion", "ET403", of("ET403")),
    Trap("a member beyond the world fails an assertion", "ET406", of("ET406")),
    Trap("a group of one rank never ends", "ET716", of("ET716"), "drop-lone-collectives"),
    Trap("the world among other groups deadlocks", "ET715", of("ET715"), "number-groups"),
    Trap("a rank's file is missing", "ET501", of("ET501")),
]
MESSAGES = [
    Trap("a send without comm_dst", "ET209", of("ET209")),
    Trap("a message without tag throws", "ET210", of("ET210"), "number-messages"),
    Trap("a message without size throws", "ET211", lambda: trace(node(1, RECV, comm_src=1))),
    Trap(
        "a message of no bytes fails an assertion",
        "ET211",
        lambda: two([send(1, 1, size=0)], [recv(1, 0, size=0)]),
    ),
    Trap("a send from another rank throws", "ET214", of("ET214")),
    Trap("a tag is taken modulo 500000000", "ET720", of("ET720"), "number-messages"),
    Trap("a receive without send hangs, and nothing says so", "ET505", of("ET505")),
    Trap(
        "another tag is no match",
        "ET505",
        lambda: two([send(1, 1, tag=1)], [recv(1, 0, tag=2)]),
    ),
    Trap("another size is no match", "ET506", of("ET506")),
    Trap("two ranks that receive first hang", "ET510", of("ET510")),
    Trap("a peer beyond the network fails an assertion", "ET508", of("ET508")),
]
MODES = [
    Trap("no operations throw", "ET730", of("ET730"), profile="astra-sim-roofline"),
    Trap(
        "0 operations take 9223372036854775808 cycles",
        "ET730",
        lambda: pair(gpu(1, num_ops=0, tensor_size=1)),
        profile="astra-sim-roofline",
    ),
    Trap("no size throws, a size of 0 hangs", "ET731", of("ET731"), profile="astra-sim-roofline"),
    Trap(
        "a fraction of operations is a bad cast",
        "ET201",
        lambda: pair(gpu(1, num_ops=(Kind.DOUBLE, 1.0), tensor_size=1)),
        profile="astra-sim-roofline",
    ),
    Trap("a node without tensors throws", "ET732", of("ET732"), profile="astra-sim-local-mem"),
    Trap("a tensor written twice aborts", "ET733", of("ET733"), profile="astra-sim-local-mem"),
]
TRAPS = [*NODES, *GRAPH, *ATTRIBUTES, *COLLECTIVES, *GROUPS, *MESSAGES, *MODES]


def as_run(given: Given) -> TraceSet:
    return run(given) if isinstance(given, Trace) else given


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.words)
def test_a_rule_of_the_profile_speaks(trap: Trap) -> None:
    assert trap.rule in validate(trap.given(), trap.profile).rules


@pytest.mark.parametrize("trap", [t for t in TRAPS if t.cure], ids=lambda trap: trap.words)
def test_the_cure_removes_it(trap: Trap) -> None:
    cured = passes.cure(as_run(trap.given()), "astra-sim", cut=trap.cure == "cut-cycles")
    assert trap.cure in cured.changes
    assert trap.rule not in cured.left.rules


SOUND = trace(node(1, took=5000), coll(2, deps=(1,)), rank=0, world=2)
FILES: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "no metadata: the first node is swallowed": ("ET003", "", lambda b: b[b[0] + 1 :]),
    "a file of no bytes aborts it": ("ET004", "", lambda b: b""),
    "a file that ends early has a plausible result": ("ET002", "", lambda b: b[:-7]),
    "garbage becomes an empty node": ("ET001", "", lambda b: b[: b[0] + 1] + b"\xff" * 9),
    "zeros become an empty node": ("ET008", "", lambda b: b + bytes(3)),
    "gzip is read as records": ("ET006", "", gzip.compress),
    "only PREFIX.RANK.et is opened": ("ET007", "trace-0.et", bytes),
}


@pytest.mark.parametrize("words", FILES)
def test_files(tmp_path: Path, words: str) -> None:
    rule, name, change = FILES[words]
    write(SOUND, tmp_path / "sound.0.et")
    path = tmp_path / (name or "trace.0.et")
    path.write_bytes(change((tmp_path / "sound.0.et").read_bytes()))
    assert rule in validate(path, "astra-sim").rules
    assert rule not in validate(tmp_path / "sound.0.et", "astra-sim").rules


def test_a_file_that_may_not_be_written_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(SOUND, tmp_path / "trace.0.et")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "ET009" in validate(tmp_path / "trace.0.et", "astra-sim").rules


GROUP_FILES = {
    "no file: only the world is known": ("ET722", None),
    "group 0 fails an assertion": ("ET721", '{"0": [0, 1], "5": [0, 1]}'),
    "a key that is no number is an exception": ("ET721", '{"tp": [0, 1], "5": [0, 1]}'),
    "a key of thousands of digits is no number": (
        "ET721",
        '{"' + "9" * 5000 + '": [0, 1], "5": [0, 1]}',
    ),
    "an unknown group is critical": ("ET721", '{"6": [0, 1]}'),
    "a rank beyond the network fails an assertion": ("ET721", '{"5": [0, 1, 2]}'),
    "a rank that is no member fails an assertion": ("ET721", '{"5": [0]}'),
}


@pytest.mark.parametrize("words", GROUP_FILES)
def test_files_of_groups(tmp_path: Path, words: str) -> None:
    rule, content = GROUP_FILES[words]
    traces = pair(coll(1, pg_name="5"), groups={"5": (0, 1)})
    for rank, one in traces.items():
        write(one, tmp_path / f"trace.{rank}.et")
    if content is not None:
        (tmp_path / "comm_groups.json").write_text(content)
    assert rule in validate(tmp_path, "astra-sim").rules
    passes.write_for_astra_sim(passes.cure(traces, "astra-sim").traces, tmp_path, "trace")
    assert not {"ET721", "ET722"} & validate(tmp_path, "astra-sim").rules


@pytest.mark.parametrize("name", ["9" * 19, "9" * 5000, "²"])
def test_a_name_that_is_no_number_of_a_group_gets_one(name: str) -> None:
    traces = pair(coll(1, pg_name=name), groups={name: (0, 1)})
    cured = passes.cure(traces, "astra-sim").traces
    assert passes.comm_groups(cured) == {"1": [0, 1]}
    assert "ET714" not in validate(cured, "astra-sim").rules


def test_a_path_with_empty_in_it_is_taken_for_no_file_of_groups(tmp_path: Path) -> None:
    folder = tmp_path / "not-empty"
    traces = passes.cure(pair(coll(1, pg_name="5"), groups={"5": (0, 1)}), "astra-sim").traces
    passes.write_for_astra_sim(traces, folder, "trace")
    assert "ET721" in validate(folder, "astra-sim").rules


def test_every_rule_about_astra_sim_stands_for_a_trap() -> None:
    told = {trap.rule for trap in TRAPS} | {rule for rule, *_ in FILES.values()}
    told |= {rule for rule, _ in GROUP_FILES.values()} | {"ET009"}
    own = {r for r in RULES if RULES[r].group.startswith("astra_sim") or r == "ET719"}
    assert own <= told
    profiles = [p for name, p in PROFILES.items() if name.startswith("astra-sim")]
    assert all(any(rule in p for p in profiles) for rule in told)
