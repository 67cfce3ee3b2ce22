"""Files: told by content, written whole or not at all, and errors that help."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints
from unittest import mock

import numpy as np
import pytest
import zstandard

import chakra_et
from chakra_et.converters.et import encode_et
from chakra_et.converters.et.wire import field_bytes, varint
from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError, FormatError, OutputError
from chakra_et.feeder import Feeder, FeederNode, FeederSet, Next
from chakra_et.files import read, write
from chakra_et.model import Edges, Metadata, Node, Nodes, Trace, TraceSet

NAMES = ["t.et", "t.et.gz", "t.et.zst", "t.json", "t.json.gz", "t.json.zst", "t", "t.eg.gz"]
MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}


def some_trace(count: int = 50, version: str = "1.0.0") -> Trace:
    nodes = Nodes(
        id=np.arange(count, dtype=np.uint64),
        type=np.full(count, 4, np.int32),
        name_code=np.arange(count, dtype=np.int32) % 2,
        names=["aten::mm", "aten::relu"],
        start_ns=np.arange(count) * 1234,
        duration_ns=np.full(count, 777),
    )
    nodes.attributes.add("host_id", Kind.UINT64, np.arange(count, dtype=np.uint64) ** 2)
    return Trace(nodes, Edges.empty(count), Metadata(version))


@pytest.fixture
def trace() -> Trace:
    return some_trace()


def no_leftovers(directory: Path, *expected: str) -> bool:
    return sorted(path.name for path in directory.iterdir()) == sorted(expected)


# --- Names and content ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_again(tmp_path: Path, trace: Trace, name: str) -> None:
    write(trace, tmp_path / name)
    assert read(tmp_path / name) == trace
    assert no_leftovers(tmp_path, name)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_says_how_to_write(tmp_path: Path, trace: Trace, name: str) -> None:
    path = tmp_path / name
    write(trace, path)
    start = path.read_bytes()
    assert start[:4].startswith(MAGIC.get(path.suffix, start[:1]))
    if ".json" not in name and path.suffix not in MAGIC:
        assert start == b"".join(encode_et(trace))
    if name == "t.json":
        assert start.startswith(b'{"format": "chakra-et"')


@pytest.mark.parametrize("name", NAMES)
def test_the_content_says_how_to_read(tmp_path: Path, trace: Trace, name: str) -> None:
    write(trace, tmp_path / name)
    misnamed = tmp_path / "other.json.et"
    (tmp_path / name).rename(misnamed)
    assert read(misnamed) == trace


@pytest.mark.parametrize("name", ["t.et.gz", "t.json.gz", "t.et.zst"])
def test_equal_traces_give_equal_files(tmp_path: Path, trace: Trace, name: str) -> None:
    (tmp_path / "a").mkdir()
    write(trace, tmp_path / name)
    write(some_trace(), tmp_path / "a" / name)
    assert (tmp_path / name).read_bytes() == (tmp_path / "a" / name).read_bytes()


def test_real_files_are_read(data: Path) -> None:
    assert len(read(data / "et" / "broken_graph.0.et.gz").nodes) == 3664
    assert len(read(data / "et" / "ring8" / "ring.0.et").nodes) == 35
    assert len(read(str(data / "et" / "small.0.json")).nodes) == 7


@pytest.mark.parametrize("length", [9, 10, 13, 32, ord("["), ord("{")])
def test_a_first_length_that_looks_like_text_is_no_json(tmp_path: Path, length: int) -> None:
    metadata = field_bytes(1, b"1.0.0")
    if length > len(metadata):
        rest = length - len(metadata) - 2
        metadata += field_bytes(2, field_bytes(1, b"n" * (rest - 2)))
    path = tmp_path / "t.et"
    path.write_bytes(varint(len(metadata)) + metadata + b"\x02\x08\x05")
    assert [node.id for node in read(path).nodes] == [5]


def test_the_package_offers_both() -> None:
    assert chakra_et.read is read
    assert chakra_et.write is write


# --- Inputs that cannot be read ------------------------------------------------------------------


def failure(path: Path) -> ChakraError:
    with pytest.raises(ChakraError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    return caught.value


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert failure(tmp_path / "none.et").problem == "no such file"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert "directory" in failure(tmp_path).problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, trace: Trace) -> None:
    write(trace, tmp_path / "t.et")
    (tmp_path / "t.et").chmod(0)
    assert "cannot be read" in failure(tmp_path / "t.et").problem


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_called_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.et").write_bytes(content)
    assert failure(tmp_path / "t.et").problem == "the file is empty"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"schema": "1.1.1-chakra.0.0.4", "nodes": []}', "this is a PyTorch host trace"),
        (b'{"traceEvents": []}', "this is a Kineto profile"),
    ],
)
def test_other_traces_are_to_be_converted(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    error = failure(tmp_path / "t.json")
    assert error.problem.startswith(what)
    assert "chakra convert" in str(error)


def test_a_cut_file_is_an_error_with_its_place(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.et"
    write(trace, path)
    path.write_bytes(path.read_bytes()[:-3])
    error = failure(path)
    assert isinstance(error, FormatError)
    assert "is cut off: 3 of its" in error.problem
    assert error.place is not None
    assert error.place.startswith("byte ")


def test_bytes_after_the_last_record_are_an_error(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.et"
    write(trace, path)
    path.write_bytes(path.read_bytes() + b"\x05abc")
    assert "2 of its 5 bytes are missing" in failure(path).problem


@pytest.mark.parametrize("name", ["t.et.gz", "t.json.gz", "t.et.zst"])
def test_a_compressed_file_cut_anywhere_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(some_trace(300), path)
    content = path.read_bytes()
    for length in {4, 5, 9, 10, 11, 18, len(content) // 2, *range(len(content) - 9, len(content))}:
        path.write_bytes(content[:length])
        assert "ends too early" in failure(path).problem


@pytest.mark.parametrize("name", ["t.et.gz", "t.et.zst"])
def test_something_else_after_compressed_data_is_an_error(
    tmp_path: Path, trace: Trace, name: str
) -> None:
    path = tmp_path / name
    write(trace, path)
    content = path.read_bytes()
    path.write_bytes(content + b"garbage")
    error = failure(path)
    assert "unexpected data after" in error.problem
    assert error.place == f"byte {len(content)}"


def test_several_compressed_members_are_one_file(tmp_path: Path, trace: Trace) -> None:
    data = b"".join(encode_et(trace))
    for name, compress in (("t.gz", gzip.compress), ("t.zst", zstandard.compress)):
        (tmp_path / name).write_bytes(compress(data[:100]) + compress(data[100:]))
        assert read(tmp_path / name) == trace


def test_zeros_after_gzip_data_are_padding(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.et.gz"
    write(trace, path)
    path.write_bytes(path.read_bytes() + b"\0" * 512)
    assert read(path) == trace


def test_damaged_compressed_data_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.et.gz"
    write(some_trace(300), path)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    assert "damaged gzip data" in failure(path).problem


def test_an_old_schema_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.eg"
    node = b"\x08\x00\x12\x05plain\x18\x03"
    path.write_bytes((varint(len(node)) + node) * 2)
    error = failure(path)
    assert "schema 0.0.1 to 0.0.3" in error.problem
    assert error.remedy == "Make the trace again with a tool that writes schema 0.0.4 or 1.0.0."


def test_json_that_is_wrong_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"format": "chakra-et", "metadata": {}, "nodes": [{}, {"attr": [{}, 3]}]}')
    error = failure(path)
    assert isinstance(error, FormatError)
    assert error.place == "nodes[1].attr[1]"


def test_a_recording_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.et").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    assert "neither JSON nor an ET" in failure(tmp_path / "t.et").problem


# --- Outputs that cannot be written --------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"as it was")
    # The limit on the size of a file stands in for a full disk: each write beyond it fails.
    script = (
        "import resource, signal, sys\n"
        "from chakra_et.errors import OutputError\n"
        "from chakra_et.files import write\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_files import some_trace\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "trace = some_trace(20_000)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write(trace, sys.argv[1])\n"
        "except OutputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == (
        f"{path}: cannot be written: File too large. "
        "Choose a directory that exists, is writable and has room.\n"
    )
    assert path.read_bytes() == b"as it was"
    assert no_leftovers(tmp_path, name)


def test_a_directory_is_no_output(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(OutputError, match="this is a directory"):
        write(trace, tmp_path / "d")
    assert no_leftovers(tmp_path / "d")
    assert no_leftovers(tmp_path, "d")


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path, trace: Trace) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        write(trace, tmp_path / "none" / "t.et")


def test_a_file_as_directory_is_an_error(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot be written: Not a directory"):
        write(trace, tmp_path / "f" / "t.et")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_an_error(tmp_path: Path, trace: Trace) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="Permission denied"):
            write(trace, tmp_path / "t.et")
    finally:
        tmp_path.chmod(0o700)
    assert no_leftovers(tmp_path)


def test_a_trace_that_no_file_can_tell_leaves_nothing(tmp_path: Path, trace: Trace) -> None:
    trace.nodes.start_ns[3] = -5000
    for name in ("t.et", "t.json.gz"):
        with pytest.raises(
            ChakraError, match="the trace cannot be written: node 3: a negative start"
        ):
            write(trace, tmp_path / name)
    assert no_leftovers(tmp_path)


def test_a_new_file_gets_the_usual_permissions_and_an_old_one_keeps_its_own(
    tmp_path: Path, trace: Trace
) -> None:
    path = tmp_path / "t.et"
    old = os.umask(0o027)
    try:
        write(trace, path)
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o600)
        write(trace, path)
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


# --- Directories ---------------------------------------------------------------------------------


def test_a_directory_gives_the_traces_of_all_ranks(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for rank, name in enumerate(("t.0.et", "t.1.json.gz")):
        write(some_trace(rank + 1), tmp_path / "run" / name)
    (tmp_path / "run" / "notes.txt").write_text("no trace")
    for read_it in (read, chakra_et.read_set):
        traces = read_it(tmp_path / "run")
        assert isinstance(traces, TraceSet)
        assert {rank: len(trace.nodes) for rank, trace in traces.items()} == {0: 1, 1: 2}
    assert list(chakra_et.read_set(tmp_path / "run" / "t.1.json.gz")) == [1]


def test_two_traces_of_one_rank_are_no_run(tmp_path: Path, trace: Trace) -> None:
    trace.metadata.set("rank", Kind.UINT64, 3)
    for name in ("a.0.et", "a.1.et"):
        write(trace, tmp_path / name)
    with pytest.raises(ChakraError, match="two files are of rank 3"):
        read(tmp_path)


# --- Types ---------------------------------------------------------------------------------------


def test_views_of_nodes_have_a_type() -> None:
    """So that an editor knows what `nodes[5].` and `for node in Feeder(...)` can be followed by."""
    handed = FeederNode | Node
    assert get_type_hints(Feeder.next)["return"] == tuple[Next, handed | None]
    assert get_type_hints(Feeder.__iter__)["return"] == Iterator[handed]
    assert get_type_hints(FeederSet.__iter__)["return"] == Iterator[tuple[int, handed]]
    assert get_type_hints(Nodes.__getitem__)["return"] == Node | list[Node]


def test_a_feeder_tells_json_by_content(tmp_path: Path, trace: Trace) -> None:
    write(trace, tmp_path / "t.json.gz")
    (tmp_path / "t.json.gz").rename(tmp_path / "t")
    write(trace, tmp_path / "t.et")
    (tmp_path / "t.et").rename(tmp_path / "t.json")
    for name in ("t", "t.json"):
        assert len(list(Feeder(tmp_path / name))) == len(trace.nodes)


@pytest.mark.parametrize("name", ["t.et", "t.json", "t.et.gz"])
def test_a_trace_is_opened_to_look_at_it_and_to_read_it(tmp_path: Path, name: str) -> None:
    write(some_trace(), tmp_path / name)
    with mock.patch.object(Path, "open", autospec=True, side_effect=Path.open) as opened:
        read(tmp_path / name)
    assert [call.args[0] for call in opened.mock_calls].count(tmp_path / name) == 2
