"""Every rule speaks of the trace that breaks it, as often as it should, and not of its twin."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from rule_cases import CASES, Given
from traces import coll, node, trace

from chakra_et.files import write
from chakra_et.model import EdgeKind, Edges
from chakra_et.validators import PROFILES, RULES, Severity, Subject, Validation, run_rules, validate
from chakra_et.validators.inputs import Inputs, from_paths, from_traces
from chakra_et.validators.profiles import Profile

ELSEWHERE = {
    *(["ET001", "ET002", "ET003", "ET004", "ET005", "ET006", "ET007", "ET008", "ET009"]),
    *(["ET051", "ET052", "ET053", "ET109", "ET509", "ET721", "ET722"]),
}
"""Rules whose cases are files, or too large to be told in words: the tests below."""


def only(rule: str) -> Profile:
    return Profile("one", "", "", {rule: Severity.ERROR})


def spoken(given: Given, rule: str) -> int:
    outcomes = run_rules(from_traces(given), only(rule)).outcomes
    return outcomes[0].count if outcomes else 0


def on_files(rule: str, *paths: Path) -> Validation:
    return run_rules(from_paths(paths), only(rule))


def test_every_rule_has_a_case() -> None:
    assert set(CASES) | ELSEWHERE == set(RULES)
    assert not set(CASES) & ELSEWHERE


@pytest.mark.parametrize("rule", CASES)
def test_speaks_of_the_broken_one(rule: str) -> None:
    case = CASES[rule]
    assert spoken(case.broken(), rule) == case.count


@pytest.mark.parametrize("rule", CASES)
def test_is_silent_of_the_sound_twin(rule: str) -> None:
    assert spoken(CASES[rule].sound(), rule) == 0


@pytest.mark.parametrize("rule", CASES)
def test_sound_twins_are_sound_in_all_that_core_asks(rule: str) -> None:
    if rule in PROFILES["core"] and rule not in ("ET107", "ET206", "ET219"):
        assert validate(CASES[rule].sound()).rules - {"ET213"} == set()


@pytest.mark.parametrize("rule", CASES)
def test_every_finding_can_be_told(rule: str) -> None:
    for outcome in run_rules(from_traces(CASES[rule].broken()), only(rule)).outcomes:
        for finding in outcome.findings:
            assert finding.evidence
            assert len(finding.fingerprint(rule)) == 16
            assert finding.place or outcome.rule.subject is Subject.RUN or finding.rank is None


def test_every_rule_is_in_a_profile_and_explains_itself() -> None:
    used = {rule for profile in PROFILES.values() for rule in profile.severities}
    assert used == set(RULES)
    for rule in RULES.values():
        assert rule.title.endswith(".")
        assert rule.why.endswith(".")
        assert rule.cure.endswith(".")
        assert rule.check.__doc__
        assert rule.kin <= set(RULES)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound" / "trace.0.et"
    path.parent.mkdir()
    write(trace(node(1, took=5000), coll(2, deps=(1,)), rank=0), path)
    return path


FILE_FAULTS = {
    "ET001": lambda data: data[:30] + b"\xff" * 12 + data[30:],
    "ET002": lambda data: data[:-7],
    "ET003": lambda data: data[data[0] + 1 :],
    "ET004": lambda data: b"\0" + data[data[0] + 1 :],
    "ET005": lambda data: data.replace(b"1.0.0", b"9.9.9", 1),
    "ET008": lambda data: data + b"\0" * 5,
}


@pytest.mark.parametrize("rule", FILE_FAULTS)
def test_damaged_bytes(sound: Path, tmp_path: Path, rule: str) -> None:
    path = tmp_path / "trace.0.et"
    path.write_bytes(FILE_FAULTS[rule](sound.read_bytes()))
    assert on_files(rule, path).rules == {rule}
    assert on_files(rule, sound).rules == set()


def test_an_empty_file_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "trace.0.et"
    path.touch()
    result = validate(path)
    assert result.rules == {"ET004"}
    assert result.exit_code() == 2


def test_what_is_whole_of_a_cut_file_is_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.0.et"
    write(trace(node(1, deps=(7,)), node(2), node(3)), path)
    path.write_bytes(path.read_bytes()[:-3])
    result = validate(path)
    assert result.rules == {"ET002", "ET102"}
    assert result.nodes == 2
    assert result.exit_code() == 1


def test_compressed_and_oddly_named_files(sound: Path, tmp_path: Path) -> None:
    packed = tmp_path / "trace.0.et.gz"
    write(trace(node(1)), packed)
    assert on_files("ET006", packed).rules == {"ET006"}
    assert on_files("ET007", packed).rules == {"ET007"}
    assert on_files("ET006", sound).rules | on_files("ET007", sound).rules == set()


def test_read_only_file(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_files("ET009", sound).rules == set()
    # Permissions do not bind the superuser, as whom tests may run.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert on_files("ET009", sound).rules == {"ET009"}


def test_two_files_of_one_rank(tmp_path: Path) -> None:
    for name in ("a.0.et", "a.1.et"):
        write(trace(node(1), rank=0), tmp_path / name)
    assert on_files("ET509", tmp_path).rules == {"ET509"}
    write(trace(node(1), rank=1), tmp_path / "a.1.et")
    assert on_files("ET509", tmp_path).rules == set()


def test_window_of_the_older_feeder() -> None:
    count = (1 << 20) + 2
    many = trace(node(1))
    source = np.array([1], np.uint64)
    many.nodes = many.nodes.take(np.zeros(count, np.int64))
    many.nodes.id = np.arange(1, count + 1, dtype=np.uint64)
    for back, wanted in ((count - 1, {"ET109"}), (1, set())):
        offsets = np.zeros(count + 1, np.int64)
        offsets[-1] = 1
        source = np.array([count - back], np.uint64)
        many.edges = Edges(offsets, source, np.array([EdgeKind.DATA]), np.array([False]))
        assert run_rules(from_traces(many), only("ET109")).rules == wanted


GROUP_FILES = {
    "no JSON": "not a JSON object",
    "[]": "not a JSON object",
    '{"0": [0, 1]}': "not a number above 0",
    '{"tp": [0, 1]}': "not a number above 0",
    '{"5": []}': "not a list of ranks",
    '{"5": [0, 1, 2]}': "without a trace",
    '{"6": [0, 1]}': "no group '5'",
    '{"5": [1]}': "has no rank 0",
}


@pytest.mark.parametrize("content", GROUP_FILES)
def test_file_of_groups(tmp_path: Path, content: str) -> None:
    for rank in (0, 1):
        write(trace(coll(1, pg_name="5"), rank=rank), tmp_path / f"a.{rank}.et")
    assert on_files("ET722", tmp_path).rules == {"ET722"}
    groups = tmp_path / "comm_groups.json"
    groups.write_text('{"5": [0, 1]}')
    assert on_files("ET722", tmp_path).rules | on_files("ET721", tmp_path).rules == set()
    groups.write_text(content)
    found = on_files("ET721", tmp_path)
    assert any(GROUP_FILES[content] in f.evidence for f in found["ET721"].findings)


HOST_TRACE = {
    "schema": "1.1.1-chakra.0.0.4",
    "pid": 7,
    "time": "2024-01-01 00:00:00",
    "start_ts": 1,
    "nodes": [],
}


def test_json_files_against_their_schemas(data: Path, tmp_path: Path) -> None:
    sound = {
        "ET051": data / "torch213/mlp_1step/host.0.json.gz",
        "ET052": data / "torch213/mlp_1step/device.0.json.gz",
        "ET053": data / "et/small.0.json",
    }
    broken = {
        "ET051": {**HOST_TRACE, "nodes": [{"id": "one", "name": "a"}]},
        "ET052": {"traceEvents": [{"ph": 7, "name": 3}]},
        "ET053": {"workload_graph": [{"Id": "x"}]},
    }
    for rule, path in sound.items():
        assert on_files(rule, path).rules == set()
        bad = tmp_path / f"{rule}.json"
        bad.write_text(json.dumps(broken[rule]))
        result = on_files(rule, bad)
        assert result.rules == {rule}
        assert result[rule].findings[0].evidence.startswith("/")


def test_a_finding_points_into_the_json_file(data: Path, tmp_path: Path) -> None:
    import gzip

    document = json.loads(
        gzip.decompress((data / "torch213/mlp_1step/host.0.json.gz").read_bytes())
    )
    document["nodes"][123]["id"] = "wrong"
    document["nodes"][100]["attrs"][1]["value"] = {}
    path = tmp_path / "host.0.json"
    path.write_text(json.dumps(document))
    told = [finding.evidence for finding in on_files("ET051", path)["ET051"].findings]
    assert any(text.startswith("/nodes/123/id") for text in told)
    assert any(text.startswith("/nodes/100/attrs/1/value") for text in told)


def test_files_of_several_runs_in_one_directory_stay_apart(data: Path) -> None:
    inputs: Inputs = from_paths([data / "et/micro4"])
    assert len(inputs.runs) == 4
    assert all(len(run.views) == 4 for run in inputs.runs)


def test_unreadable_paths_are_told_and_the_rest_is_checked(sound: Path, tmp_path: Path) -> None:
    shutil.copy(sound, tmp_path / "trace.0.et")
    (tmp_path / "readme.txt").write_text("hello")
    result = validate([tmp_path / "trace.0.et", tmp_path / "readme.txt", tmp_path / "gone.0.et"])
    assert result.exit_code() == 2
    assert len(result.unreadable) == 2
    assert result.traces == 1


def test_one_rank_of_many_can_be_checked_alone(data: Path) -> None:
    assert validate(data / "et/ring8/ring.3.et").rules == set()
