"""The registry: a format nobody planned for is known everywhere by one entry."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from command import chakra
from recordings import HostRecording, Profile
from traces import node, trace

import chakra_et
from chakra_et.converters import formats
from chakra_et.converters.format import Format, Head, Identity, View
from chakra_et.converters.kineto import read_device
from chakra_et.inputs import Input, open_input


def _starts(text: bytes) -> Any:
    return lambda head: 0 if head.start.startswith(text) else None


def _read_names(path: Path, _: bool) -> Any:
    _, *names = path.read_text().splitlines()
    return trace(*(node(place, name=name) for place, name in enumerate(names)))


def _read_marked(path: Path, strict: bool) -> Any:
    """A profile behind a line of its own."""
    plain = path.with_suffix(".plain")
    plain.write_bytes(path.read_bytes().partition(b"\n")[2])
    return read_device(plain, strict=strict)


NAMES = Format(
    "list of names", View.TRACE, _starts(b"NAMES\n"), "Use it as it is.", read=_read_names
)
MARKED = Format(
    "marked profile",
    View.DEVICE,
    _starts(b"MARKED"),
    "Convert it.",
    identify=lambda head: Identity(pid=int(head.start.split()[1]), rank=3),
    read=_read_marked,
    describe=lambda device: {"records": len(device)},
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "FORMATS", (NAMES, MARKED, *formats.FORMATS))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.names").write_text("NAMES\nfirst\nsecond\n")
    profile = Profile().op("a", 1, 1, rf_id=1)
    profile.events[0]["pid"] = 77
    plain = profile.write(tmp_path / "plain.json").read_bytes()
    (tmp_path / "in" / "b.marked").write_bytes(b"MARKED 77\n" + plain)
    HostRecording(pid=77).op(3, "a", rf_id=1).write(tmp_path / "in" / "host.json")
    return tmp_path / "in"


@pytest.mark.usefixtures("known")
def test_commands_know_a_new_format(tmp_path: Path, files: Path) -> None:
    names = files / "a.names"
    assert chakra("convert", names, "-o", tmp_path / "x.json").code == 0
    assert [n.name for n in chakra_et.read(tmp_path / "x.json").nodes] == ["first", "second"]
    assert "2 COMP" in chakra("info", names).words
    assert "1 trace, 2 nodes" in chakra("validate", names).words
    assert chakra("replay", names).code == 0
    assert "list of names" in chakra("formats").output


@pytest.mark.usefixtures("known")
def test_a_new_profile_is_paired_and_linked(tmp_path: Path, files: Path) -> None:
    (files / "a.names").unlink()
    done = chakra("convert", files, "-o", tmp_path / "out", "--report", tmp_path / "r.json")
    assert done.code == 0, done.errors
    assert "1 of 1 host operations" in done.words
    assert chakra_et.read(tmp_path / "out" / "trace.3.et").rank == 3
    assert "records 1" in chakra("info", files / "b.marked").words


def test_without_an_entry_the_file_is_refused(files: Path) -> None:
    done = chakra("info", files / "a.names")
    assert (done.code, "neither JSON nor an ET" in done.errors) == (2, True)


def test_the_earliest_evidence_decides_and_then_the_first_of_the_list(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"nodes": [{"dataDeps": [1], "traceEvents": []}]}')
    assert open_input(tmp_path / "t.json").format.name == "PyTorch host trace"


def test_names_are_unique_and_formats_travel_by_name() -> None:
    names = [form.name for form in formats.FORMATS]
    assert len(set(names)) == len(names)
    for form in formats.FORMATS:
        given = Input(Path("a"), "a", form, pid=7)
        assert pickle.loads(pickle.dumps(given)) == given


@pytest.mark.parametrize("form", formats.FORMATS, ids=lambda form: form.name)
def test_no_format_takes_what_is_empty_or_says_nothing(form: Format) -> None:
    assert form.remedy.endswith(".")
    assert form.recognise(Head(b"")) is None
    assert form.recognise(Head(b'{"a": 1}', "a.json")) is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b'{ "changes": {', 0),
        (b'{"a": 1, "producer": "chakra-et 1"', 9),
        (b'{"changes": {"producer": "chakra-et"', 0),
        (b'{"a": {"changes": {', None),
        (b'{"producer": "another", "by": "chakra-et"', None),
    ],
)
def test_evidence_at_the_start_counts_only_there(text: bytes, place: int | None) -> None:
    assert formats.by_name("report of chakra-et").recognise(Head(text)) == place
