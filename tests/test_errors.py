"""Bad input and bad targets: a clear error, nothing half-written."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import chakra_process as chakra
from places import EXAMPLES

import chakra_et
from chakra_et import ChakraError

HOST = EXAMPLES / "simple_add" / "host.json.gz"
DEVICE = EXAMPLES / "simple_add" / "device.json.gz"
INFO = (sys.executable, "-m", "chakra_et.cli", "info", str(HOST))


def empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def truncated_gzip(path: Path) -> Path:
    path.write_bytes(HOST.read_bytes()[:-400])
    return path


def truncated_json(path: Path) -> Path:
    path.write_bytes(gzip.decompress(HOST.read_bytes())[:9000])
    return path


def damaged_gzip(path: Path) -> Path:
    content = bytearray(HOST.read_bytes())
    content[300:320] = bytes(20)
    path.write_bytes(content)
    return path


def other_json(path: Path) -> Path:
    path.write_text('{"name": "package", "version": 3}')
    return path


def other_list(path: Path) -> Path:
    path.write_text("[1, 2, 3]")
    return path


def binary(path: Path) -> Path:
    path.write_bytes(b"\x7fELF" + bytes(range(256)))
    return path


def missing(path: Path) -> Path:
    return path


def directory(path: Path) -> Path:
    path.mkdir()
    return path


def a_profile(path: Path) -> Path:
    path.write_bytes(DEVICE.read_bytes())
    return path


DAMAGED_HOSTS: dict[Callable[[Path], Path], str] = {
    truncated_gzip: "the gzip data ends too early",
    truncated_json: "not valid JSON",
    damaged_gzip: "damaged gzip data",
}


@pytest.mark.parametrize("make", DAMAGED_HOSTS, ids=lambda make: make.__name__)
def test_a_damaged_host_trace_is_mended_unless_strict(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path / "input.json")
    report = chakra_et.convert(host=path).report
    assert report.repairs
    with pytest.raises(ChakraError, match=DAMAGED_HOSTS[make]) as raised:
        chakra_et.convert(host=path, output=tmp_path / "trace.et", strict=True)
    assert str(raised.value).startswith(str(path))
    done = chakra("convert", "--host", path, "-o", tmp_path / "trace.et", "--strict")
    assert done.returncode == 2
    assert DAMAGED_HOSTS[make] in done.stderr
    assert not (tmp_path / "trace.et").exists()


BAD_HOSTS: dict[Callable[[Path], Path], str] = {
    empty: "the file is empty",
    other_json: "JSON of an unknown kind",
    other_list: "a JSON list, but not of profiler events",
    binary: "this is a program",
    missing: "no such file",
    directory: "expected a file, got a directory",
    a_profile: "expected a PyTorch host trace, got a Kineto profile",
}


@pytest.mark.parametrize("make", BAD_HOSTS, ids=lambda make: make.__name__)
def test_a_bad_host_trace_is_a_clear_error(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / "input.json")
    output = tmp_path / "out" / "trace.et"
    with pytest.raises(ChakraError) as raised:
        chakra_et.convert(host=path, device=DEVICE, output=output)
    assert BAD_HOSTS[make] in str(raised.value)
    assert str(raised.value).startswith(str(path))
    assert not output.exists()


@pytest.mark.parametrize("make", BAD_HOSTS, ids=lambda make: make.__name__)
def test_the_command_says_so_and_ends_with_2(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / "input.json")
    done = chakra("convert", "--host", path, "-o", tmp_path / "trace.et")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert BAD_HOSTS[make] in done.stderr
    assert not (tmp_path / "trace.et").exists()


def test_a_directory_without_traces(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.txt").write_text("nothing")
    done = chakra("convert", tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "no trace in this directory" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_unknown_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "other.pb"
    path.write_bytes(b"\x0a\x05hello\x10\x01")
    done = chakra("info", path)
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unwritable_target(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    done = chakra("convert", "--host", HOST, "-o", blocked / "trace.et")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_is_a_directory(tmp_path: Path) -> None:
    done = chakra("convert", "--host", HOST, "-o", tmp_path)
    assert done.returncode == 2
    assert "this is a directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    limited = (
        "import resource, signal; from chakra_et.cli import main; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); main()"
    )
    words = ["convert", "--host", str(HOST), "-o", str(tmp_path / "trace.et")]
    done = subprocess.run(
        [sys.executable, "-B", "-c", limited, *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "cannot be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_convert() -> None:
    done = chakra("convert", "-o", "out.et")
    assert done.returncode == 2
    assert "Give a host trace, a profile, or both" in done.stderr


def test_no_output() -> None:
    done = chakra("convert", "--host", HOST)
    assert done.returncode == 2
    assert "-o OUT" in done.stderr


def test_a_directory_and_single_files() -> None:
    done = chakra("convert", EXAMPLES, "--host", HOST, "-o", "out")
    assert done.returncode == 2
    assert "both FILE and --host or --device" in done.stderr


def test_the_name_of_a_file_where_a_directory_is_wanted(tmp_path: Path) -> None:
    output = tmp_path / "trace.0.et"
    target = ("--for", "astra-sim")
    done = chakra("convert", HOST, "-o", output, *target)
    assert done.returncode == 2
    assert f"{output}: expected a directory" in done.stderr
    assert not list(tmp_path.iterdir())
    output.mkdir()
    assert chakra("convert", HOST, "-o", output, *target).returncode == 0


def test_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)  # else opening it would wait
    try:
        done = chakra("convert", "--host", pipe, "-o", tmp_path / "trace.0.et")
    finally:
        os.close(held)
    assert done.returncode == 2
    assert f"{pipe}: expected a file, got a pipe" in done.stderr
    assert "to a file." in done.stderr
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_text_that_cannot_be_written_is_an_error_without_a_traceback(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(INFO, stdout=full, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONUNBUFFERED": unbuffered})  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: standard output: cannot be written: No space left on device.\n"


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_text_that_nobody_reads_ends_a_command_without_a_word(unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(INFO, stdout=write, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONUNBUFFERED": unbuffered})  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_place_of_any_length_is_shown_in_short() -> None:
    key = "k" * 100_000
    said = str(ChakraError("unknown field", path="trace.json", place=f"nodes[5].attr[0].{key}"))
    assert said.startswith("trace.json: nodes[5].attr[0].kkk")
    assert said.endswith("k…: unknown field.")
    assert len(said) < 500
