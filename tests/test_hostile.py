"""Hostile and odd inputs end in an answer or a clear error, and what is said of them is plain."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES

import chakra_et
from chakra_et import NodeType
from chakra_et.cli import app
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.guard import reading
from chakra_et.io.json_text import to_json
from chakra_et.shown import shown, shown_lines

HOST = EXAMPLES / "simple_add" / "host.json.gz"
Run = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def chakra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    """The command line in this process: exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["chakra", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        said = capsys.readouterr()
        code = ended.value.code
        return 0 if code is None else int(code), said.out, said.err

    return run


# --- What escapes a reader ----------------------------------------------------------------------

DEEP = "[" * 100_000 + "]" * 100_000
INPUTS = {
    "deep.json": '{"traceEvents":[{"ph":"X","args":' + DEEP + "}]}",
    "deep-metadata.json": '{"deviceProperties":' + DEEP + ',"traceEvents":[]}',
    "deep-host.json": '{"schema":"1.0.2","nodes":[{"id":1,"name":"a","attrs":' + DEEP + "}]}",
    "deep-et.json": '{"version":"1.0.0"}{"id":1,"name":"a","attr":' + DEEP + "}",
    "time.json": '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":DIGITS,"dur":1}]}',
    "pid.json": '{"schema":"1.0.2","pid":DIGITS,"nodes":[]}',
    "id.json": '{"schema":"1.0.2","nodes":[{"id":DIGITS,"name":"a","attrs":[]}]}',
    "et-id.json": '{"version":"1.0.0"}{"id":DIGITS,"name":"a","type":4}',
    "type-list.json": '{"version":"1.0.0"}\n{"id":1,"name":"a","type":[4]}',
    "type-object.json": '{"version":"1.0.0"}\n{"id":1,"name":"a","type":{"a":1}}',
    "name-list.json": '{"version":"1.0.0"}\n{"id":1,"name":["a"],"type":4}',
    "version-list.json": '{"version":["1.0.0"]}\n{"id":1,"name":"a","type":4}',
    "attr-object.json": '{"version":"1.0.0"}\n{"id":1,"name":"a","attr":{"name":[1]}}',
    "metadata-cut.et": b"\x09\n\x051.0.0\x12\x7f\x07\x08\x01\x12\x01n\x18\x04",
}
VERBS = (
    ("info",), ("validate",), ("feed",), ("feed", "--window", "4"), ("replay",),
    ("fix", "-o", "out.et"), ("convert", "-o", "out.et"), ("convert", "-o", "out"),
)  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_every_verb_ends_without_a_traceback(tmp_path: Path, chakra: Run, name: str) -> None:
    content = INPUTS[name]
    if isinstance(content, str):
        content = content.replace("DIGITS", "9" * 5000).encode()
    path = tmp_path / name
    path.write_bytes(content)
    for verb, *options in VERBS:
        code, out, err = chakra(verb, name, *options)
        assert code in (0, 1, 2)
        assert code != 2 or name in out + err


def test_a_type_that_is_a_list_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"version":"1.0.0"}\n{"id":1,"name":"a","type":[4]}')
    with pytest.raises(FormatError, match=r"t\.json: nodes\[0\]\.type: .* got a list"):
        chakra_et.read(path)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("a"), r"cannot be read as a thing: KeyError: 'a'"),
        (RecursionError(), "nested too deep"),
        (MemoryError(), "memory ran out"),
        (OverflowError("big"), "OverflowError: big"),
    ],
)
def test_each_error_of_a_reader_becomes_one_of_ours(error: Exception, told: str) -> None:
    def read() -> None:
        with reading("f.json", "a thing"):
            raise error

    with pytest.raises(ChakraError, match=rf"^f\.json: .*{told}") as caught:
        read()
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("ranks", [DEEP, '[{"a":1}]', "[[0]]", "[null]", "[1e999]", "{}"])
def test_odd_groups_beside_traces_are_told(tmp_path: Path, ranks: str) -> None:
    chakra_et.convert(HOST, output=tmp_path / "t.0.et")
    (tmp_path / "comm_groups.json").write_text('{"1":' + ranks + "}")
    assert "ET721" in chakra_et.validate(tmp_path, "astra-sim").rules


@pytest.mark.parametrize(
    ("content", "told"), [(DEEP, "nested too deep"), ('{"1":', "not JSON"), (b"\xff", "not JSON")]
)
def test_groups_that_cannot_be_read_are_told_whatever_the_rules(
    tmp_path: Path, content: str | bytes, told: str
) -> None:
    chakra_et.convert(HOST, output=tmp_path / "t.0.et")
    chakra_et.convert(HOST, output=tmp_path / "u.0.et")
    groups = tmp_path / "comm_groups.json"
    groups.write_bytes(content if isinstance(content, bytes) else content.encode())
    unreadable = chakra_et.validate(tmp_path).unreadable
    assert [str(error).startswith(f"{groups}: {told}") for error in unreadable] == [True]


@pytest.mark.parametrize("rank", [-1, 1 << 31, (1 << 63) - 1, 1 << 200, "1e9", None, [0]])
def test_a_rank_that_cannot_be_is_no_rank(tmp_path: Path, rank: object) -> None:
    """Ranks are 32-bit integers; neither the rank of the process nor a peer is made of others."""
    place = {"ph": "X", "pid": 7, "tid": 7}
    profile = {
        "distributedInfo": {"rank": rank, "pg_config": [{"pg_name": "0", "ranks": [0, rank]}]},
        "traceEvents": [
            {**place, "cat": "cpu_op", "name": "c10d::send", "ts": 1, "dur": 9},
            {**place, "cat": "user_annotation", "name": "gloo:send", "ts": 2, "dur": 3,
             "args": {"Input type": ["float"], "Input Dims": [[4]]}},
        ],
    }  # fmt: skip
    (tmp_path / "device.json").write_text(json.dumps(profile))
    trace = chakra_et.convert(device=tmp_path / "device.json").trace
    (message,) = trace.nodes.where(type=NodeType.COMM_SEND)
    assert (message.comm_size, message.comm_src, message.comm_dst) == (16, None, None)
    assert trace.rank is None


# --- What is said -------------------------------------------------------------------------------

NAME = "x\n::error::pwn\x1b[31mRED\r\t\x00\x9b\u2028\u202e"
PLAIN = r"x\n::error::pwn\x1b[31mRED\r\t\x00\x9b\u2028\u202e"


def odd_trace(path: Path, name: str = NAME) -> Path:
    """An ET with two nodes that wait for each other and have odd names."""
    nodes = [
        {"id": 1, "name": name, "type": 4, "ctrl_deps": [2]},
        {"id": 2, "name": name + "2", "type": 4, "ctrl_deps": [1]},
    ]
    path.write_text("\n".join(json.dumps(part) for part in [{"version": "1.0.0"}, *nodes]))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("info", "t.json", "--node", "1"),
        ("feed", "t.json"),
        ("validate", "t.json"),
        ("validate", "t.json", "-f", "github"),
        ("replay", "t.json"),
        ("fix", "t.json", "-o", "out.et", "--cut-cycles"),
    ],
    ids=" ".join,
)
def test_names_do_not_steer_the_terminal(
    tmp_path: Path, chakra: Run, words: tuple[str, ...]
) -> None:
    odd_trace(tmp_path / "t.json")
    _, out, err = chakra(*words)
    assert "x\\n" in (out + err).replace("\\\\", "\\") or words[0] == "fix"
    assert (out + err).replace("\n", "").isprintable()
    assert not [line for line in (out + err).splitlines() if line.startswith("::error::")]


@given(st.text())
def test_shown_text_is_one_printable_line_and_printable_text_stays(text: str) -> None:
    assert shown(text).isprintable()
    assert shown(shown(text)) == shown(text)
    assert (shown(text) == text) == text.isprintable()
    assert shown_lines(text).count("\n") == text.count("\n")


def test_escapes_are_those_that_people_know() -> None:
    assert shown(NAME) == PLAIN
    assert shown("a\udcffb") == r"a\xffb"


JSON = st.recursive(
    st.none() | st.integers(-5, 5) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner),
)


@given(JSON)
def test_any_text_can_stand_in_json(content: Any) -> None:
    written = to_json(content)
    assert written == to_json(json.loads(written))
    if "\\u" not in repr(content):
        assert json.loads(written) == content


def file_names_may_be_bytes() -> bool:
    return sys.platform.startswith("linux")


@pytest.mark.skipif(not file_names_may_be_bytes(), reason="file names are text here")
def test_a_file_name_that_is_no_text(tmp_path: Path, chakra: Run) -> None:
    name = os.fsdecode(b"\xff\xfe\n.json.gz")
    shutil.copy(HOST, tmp_path / name)
    code, out, _ = chakra("convert", "--host", name, "-o", "x.et", "--report", "r.json")
    assert code == 0
    assert r"\xff\xfe\n.json.gz" in (tmp_path / "r.json").read_text().replace("\\\\", "\\")
    for form in ("text", "json", "github", "junit", "sarif"):
        code, out, err = chakra("validate", "-f", form, name)
        assert (code, err) == (0, "")
        assert out.isascii()
    shutil.copy(tmp_path / "x.et", tmp_path / os.fsdecode(b"\xff.et"))
    code, out, _ = chakra("info", os.fsdecode(b"\xff.et"))
    assert (code, r"\xff.et" in out) == (0, True)
    code, _, err = chakra("info", os.fsdecode(b"\xfe\x1b.et"))
    assert (code, r"\xfe\x1b.et: no such file" in err) == (2, True)


# --- Ctrl-C -------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys
sys.argv = ["chakra", "info", sys.argv[1]]
# A shell ignores the signal for what it runs in the background, and what it runs inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from chakra_et.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "chakra_et.cli.info", "numpy", "msgspec"])
def test_an_interrupt_while_modules_are_loaded_ends_without_a_word(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module), str(HOST)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert done.stderr == ""
