"""Packed ranks come back byte for byte, are small where they are alike, and read by themselves."""

from __future__ import annotations

import io
import json
import resource
import signal
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from command import chakra
from et_bytes import VERSION, encoded, framed
from hypothesis import given, settings
from hypothesis import strategies as st
from many_ranks import run_of, traces
from places import EXAMPLES
from strategies import traces as any_traces

import chakra_et
from chakra_et import ChakraError, Feeder, FeederSet, FormatError, OutputError, Trace
from chakra_et.converters.et.wire import field_bytes
from chakra_et.definitions import Kind
from chakra_et.io.packed import packed_file
from chakra_et.pack import pack, unpack
from chakra_et.pack.columns import Columns
from chakra_et.pack.differences import compress, decode_rank, decompress, encode_rank


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ETs of two ranks, and of five others that are alike but for names and times."""
    folder = tmp_path_factory.mktemp("run")
    chakra_et.convert_files(EXAMPLES / "ddp_2rank", folder / "ets", jobs=1)
    chakra_et.convert_files(run_of(folder / "in", range(2, 7)), folder / "more", jobs=1)
    for file in (folder / "more").glob("*.et"):
        file.rename(folder / "ets" / file.name)
    return folder / "ets"


@pytest.fixture(scope="module")
def packed(run: Path) -> Path:
    path = run.parent / "run.pack"
    pack(run, path)
    return path


def rank_bytes(folder: Path, *files: bytes) -> Path:
    """A directory with these files as ranks."""
    folder.mkdir()
    for rank, data in enumerate(files):
        (folder / f"trace.{rank}.et").write_bytes(data)
    return folder


def test_all_ranks_come_back_byte_for_byte(run: Path, packed: Path, tmp_path: Path) -> None:
    unpack(packed, tmp_path / "back")
    assert traces(tmp_path / "back") == traces(run)


def test_one_rank_is_read_without_the_others(run: Path, packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        entry = json.loads(archive.read("pack.json"))["ranks"][1]
        needed = {"pack.json", f"class.{entry['group']}", "rank.1"}
        others = [name for name in archive.namelist() if name not in needed]
    damaged = packed.with_name("damaged.pack")
    with zipfile.ZipFile(packed) as archive, zipfile.ZipFile(damaged, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, b"" if name in others else archive.read(name))
    assert chakra_et.read(damaged / "trace.1.et") == chakra_et.read(run / "trace.1.et")
    with pytest.raises(FormatError, match="cannot be read as rank 0 of a packed file"):
        chakra_et.read(damaged / "trace.0.et")


def test_a_rank_is_read_from_a_packed_file_that_is_no_file_of_this_machine(
    run: Path, packed: Path
) -> None:
    with zipfile.ZipFile(io.BytesIO(packed.read_bytes())) as archive:
        read = [packed_file("far.pack", archive, f"trace.{rank}.et") for rank in (0, 1)]
    assert read == [(run / f"trace.{rank}.et").read_bytes() for rank in (0, 1)]


def test_every_reader_takes_a_packed_file_for_its_ranks(run: Path, packed: Path) -> None:
    assert dict(chakra_et.read_set(packed)) == dict(chakra_et.read_set(run))
    mine, theirs = ([node.id for node in Feeder(folder / "trace.1.et")] for folder in (packed, run))
    assert mine == theirs
    assert sorted(FeederSet(packed).feeders) == list(range(7))
    done = chakra("info", packed / "trace.1.et")
    assert done.code == 0
    assert chakra("validate", packed).code == chakra("validate", run).code == 0


def test_a_packed_file_of_one_rank_is_read_as_its_only_file(run: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    alone, path = tmp_path / "one" / "trace.3.et", tmp_path / "one.pack"
    alone.write_bytes((run / "trace.3.et").read_bytes())
    pack(alone.parent, path)
    assert chakra_et.read(path) == chakra_et.read(path / "trace.3.et") == chakra_et.read(alone)
    assert [node.id for node in Feeder(path)] == [node.id for node in Feeder(alone)]
    assert "rank 3" in chakra("info", path).words


def test_the_nodes_of_packed_ranks_are_handed_out(run: Path, packed: Path) -> None:
    assert chakra("feed", packed).words == chakra("feed", run).words
    one = chakra("feed", packed, "--rank", 1, "--window", 10).words
    assert one == chakra("feed", run / "trace.1.et", "--window", 10).words


def test_what_has_no_room_is_named_by_the_place_that_it_was_to_get(
    packed: Path, tmp_path: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OutputError, match=r"back.trace\.0\.et: cannot be written"):
            unpack(packed, tmp_path / "back")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not (tmp_path / "back").exists()


def test_ranks_that_differ_in_times_alone_are_one_class(tmp_path: Path) -> None:
    """Each takes little more than its times do: here two bytes for each of 1,474 durations."""
    trace = chakra_et.convert_files(EXAMPLES / "ddp_2rank", None)[0].trace
    files = []
    for rank in range(8):
        random = np.random.default_rng(rank)
        trace.nodes.duration_ns[:] = random.integers(1000, 1200, len(trace.nodes))
        trace.metadata.set("rank", Kind.INT32, rank)
        files.append(encoded(trace))
    result = pack(rank_bytes(tmp_path / "ets", *files), tmp_path / "run.pack")
    assert (result.ranks, result.classes, result.as_bytes) == (8, 1, 0)
    with zipfile.ZipFile(tmp_path / "run.pack") as archive:
        sizes = [archive.getinfo(f"rank.{rank}").file_size for rank in range(8)]
    assert sizes[0] < 50
    assert max(sizes) < 1.5 * len(trace.nodes)


def test_equal_ets_give_equal_files(run: Path, packed: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "again.pack")
    assert (tmp_path / "again.pack").read_bytes() == packed.read_bytes()


def test_a_compressed_et_comes_back_without_its_compression(run: Path, tmp_path: Path) -> None:
    (tmp_path / "ets").mkdir()
    trace = chakra_et.read(run / "trace.0.et")
    chakra_et.write(trace, tmp_path / "ets" / "trace.0.et.gz")
    pack(tmp_path / "ets", tmp_path / "run.pack")
    (file,) = unpack(tmp_path / "run.pack", tmp_path / "back")
    assert file.read_bytes() == (run / "trace.0.et").read_bytes()


UNUSUAL = {
    "unknown fields": framed(VERSION, b"\x08\x07" + field_bytes(99, b"later")),
    "a field twice": framed(VERSION, b"\x08\x01\x08\x02" + field_bytes(2, b"n")),
    "a long number": framed(VERSION, b"\x08\x81\x80\x00" + field_bytes(2, b"n")),
    "no nodes": framed(VERSION),
    "text that is no UTF-8": framed(VERSION, b"\x08\x01" + field_bytes(2, b"\xff\xfe")),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_any_valid_encoding_comes_back(tmp_path: Path, name: str) -> None:
    source = rank_bytes(tmp_path / "ets", UNUSUAL["no nodes"], UNUSUAL[name])
    pack(source, tmp_path / "run.pack")
    unpack(tmp_path / "run.pack", tmp_path / "back")
    assert traces(tmp_path / "back") == traces(source)


@given(any_traces(), any_traces())
@settings(max_examples=25)
def test_any_trace_comes_back_beside_any_other(one: Trace, other: Trace) -> None:
    with tempfile.TemporaryDirectory() as name:
        source = rank_bytes(Path(name, "ets"), encoded(one), encoded(other), encoded(one))
        pack(source, Path(name, "run.pack"))
        unpack(Path(name, "run.pack"), Path(name, "back"))
        assert traces(Path(name, "back")) == traces(source)


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1))
@settings(max_examples=50)
def test_numbers_come_back_from_their_differences(pairs: list[tuple[int, int]]) -> None:
    both = np.array(pairs, np.int64)
    for dtype in (np.int64, np.uint64, np.float64, np.int32, np.bool_):
        as_bits = dtype in (np.uint64, np.float64)
        column, beside = (c.copy().view(dtype) if as_bits else c.astype(dtype) for c in both.T)
        common: Columns = {"x": beside, "gone": [1]}
        found: Any = decode_rank(encode_rank({"x": column}, common), common)
        assert list(found) == ["x"]
        assert found["x"].dtype == column.dtype
        assert found["x"].tobytes() == column.tobytes()


def test_some_ranks_are_unpacked(run: Path, packed: Path, tmp_path: Path) -> None:
    done = chakra("unpack", packed, "-o", tmp_path / "some", "--ranks", "1-2,6")
    assert done.code == 0, done.errors
    assert sorted(traces(tmp_path / "some")) == ["trace.1.et", "trace.2.et", "trace.6.et"]
    assert "no rank 9" in chakra("unpack", packed, "-o", tmp_path / "x", "--ranks", "9").errors
    assert "is not a list" in chakra("unpack", packed, "-o", tmp_path / "x", "--ranks", "b").errors


def test_the_command_says_how_small_it_became(run: Path, tmp_path: Path) -> None:
    done = chakra("pack", run, "-o", tmp_path / "run.pack")
    assert done.code == 0, done.errors
    assert "7 ranks in 3 classes" in done.words
    assert "times smaller" in done.words


def test_what_is_not_packed_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match="not made by chakra pack"):
        unpack(run / "trace.0.et", tmp_path / "out")
    with pytest.raises(ChakraError, match="no such file"):
        unpack(tmp_path / "nowhere", tmp_path / "out")
    chakra_et.write(chakra_et.read(run / "trace.0.et"), tmp_path / "trace.0.json")
    with pytest.raises(ChakraError, match="expected an ET in protobuf"):
        pack(tmp_path / "trace.0.json", tmp_path / "out")


@pytest.mark.parametrize("member", ["class.0", "rank.0", "pack.json"])
def test_damage_is_named(packed: Path, tmp_path: Path, member: str) -> None:
    with zipfile.ZipFile(packed) as archive:
        at = archive.getinfo(member).header_offset + 30 + len(member) + 4
    data = bytearray(packed.read_bytes())
    data[at] ^= 0xFF
    (tmp_path / "damaged.pack").write_bytes(data)
    with pytest.raises(ChakraError, match=r"rank 0|not made by chakra pack"):
        unpack(tmp_path / "damaged.pack", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def changed(packed: Path, folder: Path, **members: bytes) -> Path:
    """A copy of a packed file with other members, whose names have `_` for the dot."""
    copy = folder / "changed.pack"
    with zipfile.ZipFile(packed) as archive, zipfile.ZipFile(copy, "w") as out:
        for name in archive.namelist():
            out.writestr(name, members.get(name.replace(".", "_"), archive.read(name)))
    return copy


def with_prefix(packed: Path, folder: Path, prefix: str) -> Path:
    """A copy of a packed file whose files are called otherwise."""
    with zipfile.ZipFile(packed) as archive:
        table = json.loads(archive.read("pack.json"))
    return changed(packed, folder, pack_json=json.dumps({**table, "prefix": prefix}).encode())


@pytest.mark.parametrize("prefix", ["../../elsewhere", "/elsewhere", "a/b", "", "a\0", "a\nb"])
def test_no_packed_file_is_unpacked_elsewhere(packed: Path, tmp_path: Path, prefix: str) -> None:
    (tmp_path / "in" / "out").mkdir(parents=True)
    source = with_prefix(packed, tmp_path, prefix)
    with pytest.raises(ChakraError, match="not made by chakra pack"):
        unpack(source, tmp_path / "in" / "out")
    assert sorted(tmp_path.rglob("*.et")) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("names", [1]),
        ("nodes.id", ["#", "<f8", b"1"]),
        ("nodes.id", ["#", "O", bytes(16)]),
        ("layout", ["#", "<i8", bytes(8)]),
        ("keys", 7),
        ("head", b"\xff"),
    ],
)
def test_columns_that_are_none_are_named(
    packed: Path, tmp_path: Path, column: str, value: Any
) -> None:
    with zipfile.ZipFile(packed) as archive:
        columns = msgspec.msgpack.decode(decompress(archive.read("class.0")))
    class_0 = msgspec.msgpack.encode({**columns, column: value})
    nothing = compress(msgspec.msgpack.encode([{}, []]), class_0)
    source = changed(packed, tmp_path, class_0=compress(class_0), rank_0=nothing)
    with pytest.raises(FormatError, match="rank 0"):
        unpack(source, tmp_path / "out", ranks=[0])
    assert not (tmp_path / "out").exists()


def test_an_et_that_cannot_be_written_is_named(packed: Path, tmp_path: Path) -> None:
    source = with_prefix(packed, tmp_path, 300 * "n")
    with pytest.raises(OutputError, match=r"nn\.0\.et: cannot be written"):
        unpack(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
