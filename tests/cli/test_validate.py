"""`chakra validate`, `explain` and `fix`: exit codes, formats, baselines."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from places import names_in
from traces import coll, node, trace
from typer.testing import CliRunner

from chakra_et.cli.app import command_line
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.files import read, write
from chakra_et.validators import RULES, validate
from chakra_et.validators.output import FORMATS, render


def chakra(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(command_line([]), [str(a) for a in arguments])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "trace.0.et"
    write(
        trace(
            node(1, deps=(8,), name="a: b, c%"),
            *(node(i, deps=(9,)) for i in range(2, 7)),
            coll(7),
            node(10, is_cpu_op=True),
            rank=0,
        ),
        path,
    )
    return path


def test_exit_codes(broken: Path, tmp_path: Path) -> None:
    sound = tmp_path / "sound.0.et"
    write(trace(coll(1)), sound)
    assert chakra("validate", sound).exit_code == 0
    assert chakra("validate", broken).exit_code == 1
    assert chakra("validate", broken, "--fail-on", "never").exit_code == 0
    assert chakra("validate", sound, tmp_path / "gone.et").exit_code == 2
    assert isinstance(chakra("validate", sound, "--profile", "nobody").exception, Exception)


def test_severity_decides(tmp_path: Path) -> None:
    path = tmp_path / "trace.0.et"
    write(trace(node(1, is_cpu_op=True), node(2)), path)
    assert chakra("validate", path).exit_code == 0
    assert chakra("validate", path, "--fail-on", "warning").exit_code == 1


def test_text_is_grouped_counted_and_cut(broken: Path) -> None:
    told = chakra("validate", broken).output
    assert "error ET102 (6) An edge comes from a node that the file does not have." in told
    assert told.count("which is not there") == 3
    assert "and 3 more" in told
    assert f"fix: {RULES['ET102'].cure}" in told
    assert "core: 6 errors, 1 warning, 0 info; 1 file, 1 trace, 8 nodes" in told


def test_json_has_everything(broken: Path) -> None:
    told = json.loads(chakra("validate", broken, "--format", "json").stdout)
    assert told["counts"] == {"info": 0, "warning": 1, "error": 6}
    rule = next(r for r in told["rules"] if r["id"] == "ET102")
    assert len(rule["findings"]) == 6
    assert rule["findings"][0]["node"] == 1
    assert rule["findings"][0]["path"] == str(broken)


def test_sarif(broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.sarif"
    assert chakra("validate", broken, "-f", "sarif", "-o", out).exit_code == 1
    told = json.loads(out.read_text())
    assert told["version"] == "2.1.0"
    run = told["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
    first = run["results"][0]
    uri = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == broken.as_posix()


def test_github_escapes(broken: Path) -> None:
    lines = chakra("validate", broken, "-f", "github").stdout.splitlines()
    first = next(line for line in lines if "ET102" in line)
    assert first.startswith("::error file=")
    assert "'a: b, c%25'" in first
    assert any("(and 3 more)" in line for line in lines)


def test_junit(broken: Path) -> None:
    suite = ElementTree.fromstring(chakra("validate", broken, "-f", "junit").stdout)
    assert suite.get("failures") == "2"
    failed = {case.get("name", "")[:5] for case in suite if case.find("failure") is not None}
    assert failed == {"ET102", "ET213"}


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_odd_names(form: str) -> None:
    odd = trace(node(1, deps=(3,), name="\x00\x1b[31m\udcff<&'\"\n::x"))
    text = render(validate(odd), FORMATS[form])
    if form == "junit":
        ElementTree.fromstring(text)
    if form in ("json", "sarif"):
        json.loads(text)


def test_baseline_accepts_what_is_known_and_no_more(broken: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    assert chakra("validate", broken, "--write-baseline", baseline).exit_code == 0
    known = chakra("validate", broken, "--baseline", baseline)
    assert known.exit_code == 0
    assert "7 accepted" in known.output
    write(trace(node(1, deps=(8,), name="a: b, c%"), node(2, deps=(5,)), rank=0), broken)
    new = chakra("validate", broken, "--baseline", baseline)
    assert new.exit_code == 1
    assert "ET102 (1)" in new.output
    assert "waits (data) for node 5" in new.output


def test_explain() -> None:
    told = chakra("explain", "et102").output
    assert RULES["ET102"].why in told
    assert "astra-sim (error)" in told
    every = chakra("explain").output
    assert all(rule in every for rule in RULES)
    assert "ET701  error" in chakra("explain", "--profile", "astra-sim").output


def test_skip_others(broken: Path, tmp_path: Path) -> None:
    other = tmp_path / "package.json"
    other.write_text('{"name": "x"}')
    assert chakra("validate", other).exit_code == 2
    assert chakra("validate", other, "--skip-others").exit_code == 0


def test_fix_a_file(broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "fixed.0.et"
    result = chakra("fix", broken, "-o", out)
    assert result.exit_code == 0
    assert "drop-bad-edges: 6 edges to missing nodes dropped" in result.output
    assert len(read(out).edges) == 0


def test_fix_for_astra_sim_and_report(broken: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "run", tmp_path / "report.json"
    assert chakra("fix", broken, "--for", "astra-sim", "-o", out, "--report", report).exit_code == 0
    assert names_in(out) == ["comm_groups.json", "trace.0.et"]
    told = json.loads(report.read_text())
    assert told["changes"]["drop-bad-edges"][0]["count"] == 6
    assert chakra("validate", out, "--profile", "astra-sim").exit_code == 0


def test_fix_tells_what_it_cannot_cure(tmp_path: Path) -> None:
    path = tmp_path / "trace.0.et"
    write(trace(node(1, NodeType.COMM_SEND, comm_size=4, is_cpu_op=False)), path)
    result = chakra("fix", path, "--for", "astra-sim", "-o", tmp_path / "run")
    assert result.exit_code == 1
    assert "left: ET209 (error, 1)" in result.output


def test_convert_for_astra_sim(data: Path, tmp_path: Path) -> None:
    folder, report = data / "simple_add", tmp_path / "report.json"
    pair = ("--host", folder / "host.json.gz", "--device", folder / "device.json.gz")
    wanted = ("--for", "astra-sim")
    result = chakra("convert", *pair, *wanted, "-o", tmp_path / "o", "--report", report)
    assert result.exit_code == 0
    assert "fold-host" in json.loads(report.read_text())["cures"]["changes"]
    assert (tmp_path / "o" / "trace.0.et").exists()
    chakra("convert", *pair, *wanted, "-o", tmp_path / "p", "--prefix", "mine")
    assert names_in(tmp_path / "p") == [
        "comm_groups.json",
        "mine.0.et",
    ]
    kept = chakra("convert", *pair, *wanted, "--host-time", "keep", "-o", tmp_path / "k")
    assert "left: ET705" in kept.output


def test_ranks_are_counted_once_also_where_a_pass_runs_twice(tmp_path: Path) -> None:
    linked = Path(__file__).parents[1] / "converters" / "linked" / "waits.json"
    done = chakra("convert", linked, "--for", "astra-sim", "-o", tmp_path / "o")
    assert "renumber: 13 nodes numbered in the order of issue\n" in done.output


def test_a_prefix_names_files_and_nothing_else(data: Path, broken: Path, tmp_path: Path) -> None:
    made = chakra("convert", data / "simple_add", "-o", tmp_path / "o", "--prefix", "mine")
    assert made.exit_code == 0
    assert names_in(tmp_path / "o") == ["mine.0.et"]
    one = ("--device", data / "simple_add" / "device.json.gz", "-o", tmp_path / "a.0.et")
    for refused in (
        ("convert", data / "simple_add", "-o", tmp_path / "n", "--prefix", "a/b"),
        ("convert", data / "simple_add", "-o", tmp_path / "n", "--prefix", ""),
        ("convert", *one, "--prefix", "a"),
        ("fix", broken, "-o", tmp_path / "n.0.et", "--prefix", "a"),
    ):
        error = chakra(*refused).exception
        assert isinstance(error, ChakraError)
        assert "--prefix" in str(error)
    assert not (tmp_path / "n").exists()


def test_of_several_files_each_finding_names_its_own(broken: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.0.et"
    write(trace(node(1, deps=(5,))), other)
    told = chakra("validate", broken, other).output
    assert f"{broken} (rank 0, node 1, 'a: b, c%'): waits" in told
    assert f"{other} (rank 0, node 1, 'node 1'): waits" in chakra("validate", tmp_path).output
    assert str(broken) not in chakra("validate", broken).output.split("ET102")[1].split("fix:")[0]


def test_a_cut_json_file_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "device.0.json"
    path.write_text('{"traceEvents": [{"ph": "X"')
    told = chakra("validate", path)
    assert told.exit_code == 1
    assert f"{path}: not valid JSON: Input data was truncated" in told.output


def test_one_rank_is_checked_against_the_others_beside_it(tmp_path: Path) -> None:
    """As by a hook before a commit, which gets the files that changed."""
    for rank in range(3):
        write(
            trace(coll(1, size=8 if rank < 2 else 16), rank=rank, world=3),
            tmp_path / f"t.{rank}.et",
        )
    assert "ET504" in validate(tmp_path).rules
    for rank in range(3):
        one = validate(tmp_path / f"t.{rank}.et")
        assert one.traces == 1
        assert one.paths == [tmp_path / f"t.{rank}.et"]
        assert "ET501" not in one.rules, "no rank is missing"
        assert {f.rank for o in one.outcomes for f in o.findings} <= {rank, None}
    assert "ET504" in validate(tmp_path / "t.2.et").rules
    (tmp_path / "t.1.et").unlink()
    assert "ET501" in validate(tmp_path / "t.0.et").rules


def test_a_baseline_that_is_written_is_no_failure(broken: Path, tmp_path: Path) -> None:
    words = ("validate", broken, "--write-baseline", tmp_path / "b.json")
    assert chakra("validate", broken).exit_code == 1
    assert chakra(*words).exit_code == 0
    assert chakra(*words, tmp_path / "gone.et").exit_code == 2


def test_a_profile_about_traces_says_that_a_recording_is_none() -> None:
    example = Path(__file__).parents[2] / "examples" / "simple_add"
    told = chakra("validate", example, "--profile", "torch-replay")
    assert "none of these files is an ET" in told.stderr
    assert "none of these files" not in chakra("validate", example).stderr
