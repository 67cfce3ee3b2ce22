"""Profiles that do not parse, or that change names."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from accounts import converted, names, repair_kinds, write
from recordings import HostRecording, Profile

from chakra_et import ChakraError, convert
from chakra_et.converters.format import View
from chakra_et.converters.kineto import read_device
from chakra_et.inputs import open_input
from chakra_et.io import mend, mended_array
from chakra_et.io.salvage import MEMBER


def profile(name: str = "aten::mm") -> Profile:
    found = Profile(info={"rank": 3, "world_size": 8})
    found.op("before", 1, 1).op(name, 3, 5, rf_id=53)
    return found.call("cudaLaunchKernel", 4, 1, 77).kernel("gemm", 5, 2, 77)


@pytest.mark.parametrize(
    ("raw", "kind", "name"),
    [
        ('{"device": "cpu"}(12): run', mend.QUOTE, '{"device": "cpu"}(12): run'),
        ('a"', mend.QUOTE, 'a"'),
        ("torch\\cuda\\__init__.py(219): f", mend.ESCAPE, "torch\\cuda\\__init__.py(219): f"),
        ("config.py(0): \x01", mend.CONTROL, "config.py(0): "),
        ("C:\\temp\\", mend.ESCAPE, "C:\temp\\"),
    ],
    ids=["16", "16b", "17", "18", "17b"],
)
def test_names_that_are_not_escaped(tmp_path: Path, raw: str, kind: str, name: str) -> None:
    path = profile("MARK").write(tmp_path / "device.json")
    place = path.read_text().index("MARK")
    write(path, path.read_text().replace("MARK", raw))
    result = converted(device=path)
    assert name in names(result)
    assert result.report.device_events.kept == 1
    repair = result.report.repairs[0]
    assert (repair["kind"], repair["left_out"]) == (kind, 0)
    assert place <= repair["offset"] <= place + len(raw)
    assert result.report.rank == 3
    with pytest.raises(ChakraError, match=r"device.json: byte \d+: not valid JSON"):
        convert(device=path, strict=True)


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    path = profile("MARK").write(tmp_path / "device.json")
    write(path, path.read_bytes().replace(b"MARK", b"caf\xe9"))
    result = converted(device=path)
    assert "caf\ufffd" in names(result)
    assert repair_kinds(result.report) == {mend.ENCODING: 1}


def test_a_lost_quote_costs_one_record(tmp_path: Path) -> None:
    path = profile().write(tmp_path / "device.json")
    write(path, path.read_text().replace('"tid": 7', 'tid": 7'))
    report = converted(device=path).report
    assert report.records["(unreadable)"].left_out.total() == 1
    assert report.records["cpu_op"].kept == 2


def test_names_that_the_profiler_replaced(tmp_path: Path) -> None:
    host = HostRecording().op(3, "前向 forward", rf_id=53).op(4, "before", rf_id=54)
    device = Profile().op("unknown", 3, 5, rf_id=53).op("before", 1, 1, rf_id=54)
    result = converted(host.write(tmp_path / "h.json"), device.write(tmp_path / "d.json"))
    assert "前向 forward" in names(result)
    assert "unknown" not in names(result)


@pytest.mark.parametrize(
    "member",
    ['"INFO": ["Logging {"event_id": 3}"]', '"INFO": ["a\x01b"]'],
)
def test_log_lines_in_the_metadata(tmp_path: Path, member: str) -> None:
    path = profile().write(tmp_path / "device.json")
    text = path.read_text()
    write(path, text.replace('"displayTimeUnit"', member + ',\n "displayTimeUnit"'))
    device = read_device(path)
    assert len(device) == 4
    assert device.trace_name == "trace.json"
    assert device.metadata["INFO"]
    assert device.base_time_ns == 1_700_000_000_000_000_000


def test_a_member_beyond_repair_costs_no_event(tmp_path: Path) -> None:
    path = profile().write(tmp_path / "device.json")
    text = path.read_text().replace('"displayTimeUnit"', '"INFO": [}{, "displayTimeUnit"')
    device = read_device(write(path, text))
    assert len(device) == 4
    assert MEMBER in device.repairs.kinds
    assert device.metadata["distributedInfo"] == {"rank": 3, "world_size": 8}


def test_a_line_end_within_the_groups(tmp_path: Path) -> None:
    document = Profile(info={"rank": 1, "pg_config": [{"pg_name": "0", "pg_desc": "MARK"}]})
    path = document.op("a", 1, 1).write(tmp_path / "device.json")
    device = read_device(write(path, path.read_text().replace("MARK", "two\nlines")))
    assert len(device) == 1
    assert device.metadata["distributedInfo"]["rank"] == 1


def test_brackets_in_the_name_of_the_trace(tmp_path: Path) -> None:
    path = profile().write(tmp_path / "device.json")
    write(path, path.read_text().replace("trace.json", "fit-[Strategy]Single.pt.trace.json"))
    device = read_device(path)
    assert device.trace_name == "fit-[Strategy]Single.pt.trace.json"
    assert not device.repairs


def test_metadata_behind_the_events(tmp_path: Path) -> None:
    document = {"schemaVersion": 1, "traceEvents": profile().events}
    document |= {"distributedInfo": {"rank": 3}, "traceName": "x"}
    result = converted(device=write(tmp_path / "device.json", json.dumps(document)))
    assert result.report.rank == 3


@pytest.mark.parametrize("damage", ["", "x"])
def test_a_second_array_of_events_is_read_too(tmp_path: Path, damage: str) -> None:
    text = profile().write(tmp_path / "device.json").read_text().rstrip()
    second = json.dumps(Profile().op("late", 50, 1).op("later", 60, 1).events)
    path = write(tmp_path / "device.json", f'{text[:-1]}, "traceEvents": {second}{damage}}}')
    report = converted(device=path).report
    assert report.records["cpu_op"].kept == 4
    assert report.rank == 3
    assert mended_array.SECOND in repair_kinds(report)
    with pytest.raises(ChakraError):
        convert(device=path, strict=True)


@pytest.mark.parametrize("cut", [3, 40, 130, 300])
def test_a_file_of_a_killed_job(tmp_path: Path, cut: int) -> None:
    path = profile().write(tmp_path / "trace.json.tmp")
    write(path, path.read_text()[:-cut])
    report = converted(device=path).report
    assert report.records["cpu_op"].kept == 2
    assert report.repairs


def test_a_cut_gzip_member(tmp_path: Path) -> None:
    found = Profile()
    for number in range(3000):
        found.op(f"op {number * 7919 % 1000}", number, 1)
    path = found.write(tmp_path / "device.json.gz")
    write(path, path.read_bytes()[:-20])
    report = converted(device=path).report
    assert report.records["cpu_op"].kept > 2900
    assert "the gzip data ends too early" in repair_kinds(report)


# 25 and 26 (size and memory) are measured by the benchmark (tools/bench_convert.py).


def packed(form: str, content: bytes) -> bytes:
    if form == "plain":
        return content
    if form == "gzip":
        return gzip.compress(content)
    if form == "zstd":
        return zstandard.compress(content)
    target = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("run/device.json.gz", gzip.compress(content))
        return target.getvalue()
    with tarfile.open(fileobj=target, mode="w:gz" if form == "tgz" else "w") as tar:
        member = tarfile.TarInfo("device.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize("form", ["plain", "gzip", "zstd", "zip", "tar", "tgz"])
@pytest.mark.parametrize("name", ["trace.json", "trace.et", "trace"])
def test_packing_is_told_by_content(tmp_path: Path, form: str, name: str) -> None:
    content = profile().write(tmp_path / "plain").read_bytes()
    path = write(tmp_path / name, packed(form, content))
    assert open_input(path).view is View.DEVICE
    assert converted(device=path).report.records["cpu_op"].kept == 2


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_a_member_of_an_archive(tmp_path: Path, form: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name in ("a.json", "b.json"):
        profile().write(files / name)
    archive = Path(shutil.make_archive(str(tmp_path / "run"), form, files))
    with pytest.raises(ChakraError, match=rf"more than one file.*{archive.name}/a.json"):
        convert(device=archive)
    assert converted(device=archive / "b.json").report.rank == 3
    with pytest.raises(ChakraError, match=r"no such file in the archive.*a.json, b.json"):
        convert(device=archive / "c.json")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<html>login</html>", "XML or a web page"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b'{"a": 1}', "JSON of an unknown kind"),
        (b"[1, 2]", "not of profiler events"),
        (b"BZh91AY", "bzip2"),
        (b"  \n ", "only white space"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(ChakraError, match=what):
        convert(write(tmp_path / "x", content))


def test_a_workload_text_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n")
    with pytest.raises(ChakraError, match="workload text"):
        convert(path)
