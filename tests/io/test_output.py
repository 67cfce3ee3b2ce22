"""Outputs: whole or not there, never in place of an input, and written to what is no file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from places import EXAMPLES

import chakra_et
from chakra_et.errors import OutputError
from chakra_et.io.output import atomic_output, make_directory, move_output, staging_directory
from chakra_et.io.protected import inputs_protected

CONTENT = b"content"


def write(path: Path, content: bytes = CONTENT) -> None:
    with atomic_output(path) as stream:
        stream.write(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def chakra(*words: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "chakra_et.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, **options)  # type: ignore[call-overload,no-any-return]


# --- Inputs are kept ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a pair, an ET of it, and other names of the host trace."""
    shutil.copytree(EXAMPLES / "simple_add", tmp_path, dirs_exist_ok=True)
    chakra_et.convert(tmp_path / "host.json.gz", output=tmp_path / "trace.0.et")
    (tmp_path / "symbolic").symlink_to("host.json.gz")
    (tmp_path / "twice").symlink_to(tmp_path / "symbolic")
    os.link(tmp_path / "host.json.gz", tmp_path / "hard")
    (tmp_path / "sub").mkdir()
    return tmp_path


SPELLINGS = ("host.json.gz", "sub/../host.json.gz", "symbolic", "twice", "hard")


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_recording_is_not_replaced_by_what_is_made_of_it(folder: Path, name: str) -> None:
    before = (folder / "host.json.gz").read_bytes()
    with pytest.raises(OutputError, match="the output would overwrite this input"):
        chakra_et.convert(folder / "host.json.gz", output=folder / name)
    assert (folder / "host.json.gz").read_bytes() == before
    assert (folder / "symbolic").is_symlink()


VERBS: dict[str, tuple[str, ...]] = {
    "convert": ("--host", "host.json.gz", "-o"),
    "convert a pair": ("--host", "host.json.gz", "--device", "device.json.gz", "-o"),
    "convert for": ("--host", "host.json.gz", "-o", "x.et", "--report"),
    "fix": ("trace.0.et", "-o"),
    "fix report": ("trace.0.et", "-o", "x.et", "--report"),
    "replay": ("trace.0.et", "-o"),
    "validate": ("trace.0.et", "-f", "json", "-o"),
    "validate baseline": ("trace.0.et", "--write-baseline"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_replaces_its_input(
    folder: Path, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from chakra_et.cli import app

    words = VERBS[verb]
    target = next(word for word in words if not word.startswith("-"))
    before = (folder / target).read_bytes()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["chakra", verb.split()[0], *words, f"./sub/../{target}"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 2
    assert "would overwrite this input" in capsys.readouterr().err
    assert (folder / target).read_bytes() == before


SECOND: dict[str, tuple[str, ...]] = {
    "convert": ("--host", "host.json.gz", "-o", "x.et", "--report"),
    "fix": ("trace.0.et", "-o", "x.et", "--report"),
    "validate": ("trace.0.et", "-o", "x.et", "--write-baseline"),
}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("sub/../x.et", "are one file"),
        ("sub", "this is a directory"),
        ("no/such.json", "there is no directory no"),
        ("{input}", "would overwrite this input"),
    ],
)
@pytest.mark.parametrize("verb", SECOND)
def test_a_second_output_that_cannot_be_is_refused_before_the_first_is_made(
    folder: Path,
    verb: str,
    name: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from chakra_et.cli import app

    monkeypatch.chdir(folder)
    given = next(word for word in SECOND[verb] if not word.startswith("-"))
    second = name.format(input=given)
    monkeypatch.setattr(sys, "argv", ["chakra", verb, *SECOND[verb], second])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
    assert not Path("x.et").exists()


def test_a_second_output_in_a_directory_that_is_not_writable_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chakra_et.cli.outputs import expect_apart

    # Root may write everywhere.
    monkeypatch.setattr(os, "access", lambda place, mode: (place, mode) != (folder, os.W_OK))
    with pytest.raises(OutputError, match="is not writable"):
        expect_apart("--report", folder / "r.json", folder / "sub" / "x.et", [])
    expect_apart("--report", folder / "host.json.gz", folder / "sub" / "x.et", [])


def test_a_link_that_leads_to_itself_is_an_output_like_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chakra_et.cli.outputs import expect_apart

    monkeypatch.chdir(folder)
    Path("around").symlink_to("around")
    expect_apart("--report", Path("around"), Path("x.et"), [])
    expect_apart("--report", Path("r.json"), Path("around"), [])


@pytest.mark.parametrize("output", ["new/x.et", "new"])
def test_a_report_may_lie_in_the_directory_that_is_made_for_the_output(
    folder: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chakra_et.cli import app

    monkeypatch.chdir(folder)
    words = ["chakra", "convert", "host.json.gz", "-o", output, "--report", "new/report.json"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert not ended.value.code
    assert Path("new/report.json").is_file()


def test_a_directory_converted_into_itself_replaces_no_input(tmp_path: Path) -> None:
    host = tmp_path / "trace.0.et"
    shutil.copy(EXAMPLES / "simple_add" / "host.json.gz", host)
    before = host.read_bytes()
    with pytest.raises(OutputError, match="would overwrite this input"):
        chakra_et.convert_directory(tmp_path, tmp_path)
    assert host.read_bytes() == before
    assert names(tmp_path) == ["trace.0.et"]


def test_a_trace_may_be_written_over_itself_where_that_is_asked_for(folder: Path) -> None:
    trace = chakra_et.read(folder / "trace.0.et")
    chakra_et.write(trace, folder / "trace.0.et")
    assert len(chakra_et.read(folder / "trace.0.et").nodes) == len(trace.nodes)


def test_an_archive_is_an_input_as_a_whole(folder: Path) -> None:
    archive = shutil.make_archive(str(folder / "run"), "zip", EXAMPLES / "simple_add")
    before = Path(archive).read_bytes()
    with pytest.raises(OutputError, match=r"would overwrite this input.*run\.zip/host\.json\.gz"):
        chakra_et.convert(f"{archive}/host.json.gz", output=archive)
    assert Path(archive).read_bytes() == before


# --- What is no regular file --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["write", "move"])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path, how: str) -> None:
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / "file", tmp_path / "link"
    file.write_bytes(b"old")
    link.symlink_to(Path("there", "file"))
    if how == "write":
        write(link)
    else:
        (tmp_path / "made").write_bytes(CONTENT)
        move_output(tmp_path / "made", link)
    assert link.is_symlink()
    assert file.read_bytes() == CONTENT
    assert names(tmp_path / "there") == ["file"]


def test_a_link_to_nothing_makes_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("how", ["write", "move"])
def test_a_fifo_is_written_to(tmp_path: Path, how: str) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    taken: list[bytes] = []
    reader = threading.Thread(target=lambda: taken.append(fifo.read_bytes()), daemon=True)
    reader.start()
    if how == "write":
        write(fifo)
    else:
        (tmp_path / "made").write_bytes(CONTENT)
        move_output(tmp_path / "made", fifo)
    reader.join(30)
    assert taken == [CONTENT]
    assert fifo.is_fifo()
    assert names(tmp_path) == ["fifo"]


def test_nothing_is_written_to_a_fifo_after_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(TypeError), atomic_output(tmp_path / "fifo") as stream:
        stream.writelines([b"half", None])  # type: ignore[list-item]
    # Opening it would have waited for a reader.
    assert (tmp_path / "fifo").is_fifo()


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_gets_the_trace_and_nothing_else(tmp_path: Path, name: str) -> None:
    host = EXAMPLES / "simple_add" / "host.json.gz"
    chakra_et.convert(host, output=tmp_path / "wanted.et")
    done = chakra("convert", "--host", host, "-o", name)
    assert done.stdout == (tmp_path / "wanted.et").read_bytes()
    assert b"host nodes" in done.stderr


def test_a_reader_of_standard_output_may_have_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `| head` has: no error is told of that, but the program ends by it."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as out:
        monkeypatch.setattr("sys.stdout", mock.Mock(buffer=out))
        with pytest.raises(BrokenPipeError), atomic_output("-") as stream:
            stream.write(b"x" * 10)


def test_standard_input_is_read_like_a_file(tmp_path: Path) -> None:
    host = (EXAMPLES / "simple_add" / "host.json.gz").read_bytes()
    done = chakra("convert", "--host", "-", "-o", "-", input=host)
    chakra_et.convert(EXAMPLES / "simple_add" / "host.json.gz", output=tmp_path / "wanted.et")
    assert done.stdout == (tmp_path / "wanted.et").read_bytes()


def test_standard_output_is_no_directory() -> None:
    with pytest.raises(OutputError, match="expected a directory"):
        make_directory(Path("-"))


# --- Directories --------------------------------------------------------------------------------


def test_one_directory_is_made_and_not_two(tmp_path: Path) -> None:
    host = EXAMPLES / "simple_add" / "host.json.gz"
    chakra_et.convert(host, output=tmp_path / "new" / "trace.et")
    assert (tmp_path / "new" / "trace.et").exists()
    calls: list[Callable[[], object]] = [
        lambda: chakra_et.convert(host, output=tmp_path / "nope" / "dir" / "trace.et"),
        lambda: chakra_et.convert_directory(EXAMPLES / "simple_add", tmp_path / "nope" / "dir"),
    ]
    for call in calls:
        with pytest.raises(OutputError, match=r"there is no directory .*nope"):
            call()
    assert not (tmp_path / "nope").exists()


# --- Names and leftovers ------------------------------------------------------------------------


def test_the_longest_name_that_a_directory_can_hold_is_written(tmp_path: Path) -> None:
    name = "n" * 252 + ".et"
    write(tmp_path / name)
    assert names(tmp_path) == [name]


KILLED = """
import os, sys
from pathlib import Path
from chakra_et.io.output import atomic_output, staging_directory
folder = Path(sys.argv[1])
with staging_directory(folder) as staging, atomic_output(folder / "t.et") as stream:
    (staging / "half").write_bytes(b"half")
    stream.write(b"half")
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_run_left_is_cleaned_up_by_the_next_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        left = {path.name for path in tmp_path.iterdir()}
        assert len(left) == 2
        write(tmp_path / "other.et")
        assert left < {path.name for path in tmp_path.iterdir()}, "its owner is alive"
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert left < {path.name for path in tmp_path.iterdir()}
    write(tmp_path / "t.et")
    assert names(tmp_path) == ["other.et", "t.et"]


def test_a_directory_is_not_looked_through_for_each_of_its_files(tmp_path: Path) -> None:
    looked_at = []
    list_files = Path.iterdir

    def counted(folder: Path) -> Iterator[Path]:
        for path in list_files(folder):
            looked_at.append(path)
            yield path

    with mock.patch.object(Path, "iterdir", counted), staging_directory(tmp_path) as staging:
        for number in range(9):
            write(staging / f"trace.{number}.et")
    assert looked_at == []


def test_what_is_not_ours_or_in_use_stays(tmp_path: Path) -> None:
    others = [".chakra-", ".chakra-notes", f".chakra-{os.getpid()}-x", ".chakra-1-x"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    with staging_directory(tmp_path) as staging:
        held = staging.rename(tmp_path / ".chakra-999999999-held")
        write(tmp_path / "t.et")
        assert held.exists()
        held.rename(staging)
    assert names(tmp_path) == sorted([*others, "t.et"])


def test_inputs_are_kept_only_within_the_block(tmp_path: Path) -> None:
    write(tmp_path / "a")
    with inputs_protected(tmp_path / "a"), pytest.raises(OutputError):
        write(tmp_path / "a")
    write(tmp_path / "a")


def test_permissions_are_found_without_changing_those_of_the_process(tmp_path: Path) -> None:
    """The umask belongs to all threads: a file that another one makes meanwhile must have it."""
    with mock.patch("os.umask", side_effect=AssertionError):
        for _ in range(2):
            with atomic_output(tmp_path / "t.et") as stream:
                stream.write(b"x")
    (tmp_path / "plain").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
