"""Process groups of a set of ranks: where they come from, in Python and in C++ alike."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from feeder_traces import N, attribute, bytes_field, trace
from packs import changed
from places import CPP

from chakra_et.build import Rank, Workload, write_packed
from chakra_et.converters.et.wire import varint
from chakra_et.feeder import Code, FeederError, FeederSet

FLAGS = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


@pytest.fixture(scope="session")
def program(
    compiler: str, zstd: list[str], zlib: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """`groups PREFIX GROUP`."""
    target = tmp_path_factory.mktemp("groups") / "groups"
    source, include = CPP / "tests" / "groups.cpp", ["-I", str(CPP / "include")]
    command = [compiler, *FLAGS, *include, str(source), "-o", str(target), *zstd, *zlib]
    subprocess.run(command, check=True)
    return target


def collective(node_id: int, group: str) -> N:
    """A collective without parents."""
    attrs = attribute("comm_type", 9, 0) + attribute("comm_size", 9, 8)
    return N(node_id, type=7, attrs=attrs + attribute("pg_name", 29, group))


def write_ranks(folder: Path, groups: list[list[str]], told: str | None = None) -> Path:
    """A trace for each rank, with collectives of these groups. The prefix."""
    metadata = b"\x0a\x051.0.0"
    if told is not None:
        text = attribute("process_groups", 29, told)[1:]  # as a field of the metadata
        metadata += b"\x12" + text
    for rank, names in enumerate(groups):
        nodes = [collective(node_id, name) for node_id, name in enumerate(names)]
        (folder / f"t.{rank}.et").write_bytes(trace(nodes, metadata))
    return folder / "t"


def in_cpp(program: Path, prefix: Path, group: str) -> str:
    done = subprocess.run([program, prefix, group], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def in_python(prefix: Path, group: str) -> str:
    ranks = FeederSet(prefix)
    members = "".join(f"{rank} " for rank in ranks.members(group))
    found = ranks.next_collective_ready()
    if found is None:
        return f"{members}| none"
    there = "".join(f" {rank}/{node}" for rank, node in found.members.items())
    return f"{members}| {found.group}:{there}"


NAMED = [["a"], ["b"], ["a"]]
ESCAPED, ODD = "\\ud83d\\ude00\\n\\u00e4\\/", "\U0001f600\nä/"
TOLD = json.dumps([{"pg_name": "a", "ranks": [0, 1, 2], "x": {"y": [None, -1.5e3, "\u00e4\n"]}}])


@pytest.mark.parametrize(
    ("text", "told", "groups", "wanted"),
    [
        ('{"a": [2, 0]}', None, NAMED, "0 2 | a: 0/0 2/0"),
        ('{"a": [0, 1, 2]}', None, NAMED, "0 1 2 | b: 1/0"),
        (' { "b" : [ ] , "a" : [ 2 , 0 , 7 ] } \n', None, NAMED, "0 2 7 | none"),
        ('{"a": [0], "\\u0061": [0, 2]}', None, NAMED, "0 2 | a: 0/0 2/0"),
        (f'{{"{ESCAPED}": [2, 0]}}', None, [[ODD]] * 3, f"0 2 | {ODD}: 0/0 2/0"),
        (None, None, NAMED, "0 2 | a: 0/0 2/0"),  # from the nodes
        (None, TOLD, NAMED, "0 1 2 | b: 1/0"),  # from the metadata
        ('{"a": [0, 2]}', TOLD, NAMED, "0 2 | a: 0/0 2/0"),  # the file comes first
        (None, '[{"pg_name": "a", "ranks": [0, 1', NAMED, "0 2 | a: 0/0 2/0"),  # cut: not believed
        (None, "[" * 100_000, NAMED, "0 2 | a: 0/0 2/0"),
        (None, '[{"ranks": [0]}]', NAMED, "0 2 | a: 0/0 2/0"),
        (None, '[{"pg_name": "a", "ranks": []}]', NAMED, "0 2 | a: 0/0 2/0"),
    ],
)  # fmt: skip
def test_where_groups_come_from(
    program: Path,
    tmp_path: Path,
    text: str | None,
    told: str | None,
    groups: list[list[str]],
    wanted: str,
) -> None:
    prefix = write_ranks(tmp_path, groups, told)
    if text is not None:
        (tmp_path / "comm_groups.json").write_text(text)
    assert in_python(prefix, groups[0][0]) == wanted
    assert in_cpp(program, prefix, groups[0][0]) == wanted


def test_a_directory_or_a_prefix(program: Path, tmp_path: Path) -> None:
    """Ranks may have gaps; of two runs in one directory, the prefix says which."""
    prefix = write_ranks(tmp_path, NAMED)
    prefix.with_name("t.1.et").rename(prefix.with_name("t.10.et"))
    for source in (prefix, tmp_path, Path(f"{tmp_path}/")):
        assert in_python(source, "") == in_cpp(program, source, "") == "0 2 10 | a: 0/0 2/0"
    prefix.with_name("t.0.et").rename(prefix.with_name("other.0.et"))
    with pytest.raises(FeederError, match="several runs"):
        FeederSet(tmp_path)
    assert in_cpp(program, tmp_path, "") == (
        f"io: {tmp_path}: cannot read: files of several runs; name a prefix"
    )
    assert in_cpp(program, prefix.with_name("other"), "") == in_python(tmp_path / "other", "")
    nowhere = tmp_path / "nowhere"
    assert in_cpp(program, nowhere, "").startswith(f"io: {nowhere}: cannot read: no files PREFIX")


def test_errors_name_the_file(program: Path, tmp_path: Path) -> None:
    prefix = write_ranks(tmp_path, NAMED)
    bad = prefix.with_name("t.1.et")
    bad.write_bytes(bad.read_bytes()[:-1])
    with pytest.raises(FeederError) as caught:
        FeederSet(prefix)
    assert str(bad) in str(caught.value)
    assert in_cpp(program, prefix, "a").startswith(f"truncated: {bad}: the input ends inside")


def test_everybody_is_everybody(program: Path, tmp_path: Path) -> None:
    prefix = write_ranks(tmp_path, [["0"], [""], ["0"]])
    (tmp_path / "comm_group.json").write_text('{"1": [0, 1]}')
    for group, members in (("", "0 1 2"), ("0", "0 1 2"), ("1", "0 1"), ("9", "")):
        assert in_python(prefix, group).startswith(f"{members} |"[not members :])
        assert in_cpp(program, prefix, group).startswith(f"{members} |"[not members :])


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "7", "{", '{"a"', '{"a":', '{"a": [', '{"a": [0', '{"a": [0,', '{"a": [0, ]}',
        '{"a": [0]', '{"a": [0],}', '{"a": [0]} x', '{"a": 0}', '{"a": {"0": 1}}', '{"a": [-1]}',
        '{"a": [1.5]}', '{"a": [1e3]}', '{"a": [01]}', '{"a": ["0"]}', '{"a": [null]}', '{a: [0]}',
        '{"a\n": [0]}', '{"a\\x": [0]}', '{"a\\u12g4": [0]}', '{"a": [0] "b": [1]}', "[" * 100_000,
        '{"a": [' * 50_000,
    ],
)  # fmt: skip
def test_broken_groups_are_refused(program: Path, tmp_path: Path, text: str) -> None:
    prefix = write_ranks(tmp_path, NAMED)
    path = tmp_path / "comm_groups.json"
    path.write_text(text)
    with pytest.raises(FeederError, match=r"comm_groups\.json: process groups") as caught:
        FeederSet(prefix)
    assert caught.value.code is Code.BAD_GROUPS
    assert in_cpp(program, prefix, "a").startswith(f"bad_groups: {path}: process groups, byte ")


def test_long_metadata_is_framed() -> None:
    """What the tests above write is what a file has."""
    body = bytes_field(1, b"process_groups") + bytes_field(29, b"[]")
    assert attribute("process_groups", 29, "[]") == b"\x52" + varint(len(body)) + body


def test_a_packed_set_has_its_groups_with_it(
    program: Path, zstd: list[str], zlib: list[str], tmp_path: Path
) -> None:
    def some(rank: Rank) -> None:
        rank.all_reduce("tp", 64)
        rank.all_reduce("dp", 64)

    workload = Workload(tp=2, dp=2)
    write_packed(workload, some, tmp_path / "set")
    (name, ranks), *_ = workload.comm_groups().items()
    assert FeederSet(tmp_path / "set").members(name) == ranks
    if zstd and zlib:
        assert in_cpp(program, tmp_path / "set", name) == in_python(tmp_path / "set", name)
        broken = changed(tmp_path / "set", tmp_path / "broken", {"comm_groups.json": b"{"})
        place = f"{broken}/comm_groups.json: process groups"
        assert in_cpp(program, broken, name).startswith(f"bad_groups: {place}, byte ")
        with pytest.raises(FeederError, match=place):
            FeederSet(broken)
