"""Files of a directory are paired by process, else by rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import HostRecording, Profile

from chakra_et.directory import convert_directory
from chakra_et.errors import ChakraError
from chakra_et.inputs import rank_in_name
from chakra_et.pairing import find_pairs


def host(path: Path, pid: int) -> None:
    HostRecording(pid=pid).op(3, "a", rf_id=1).write(path)


def device(path: Path, pid: int, rank: int | None = None) -> None:
    profile = Profile(info={} if rank is None else {"backend": "nccl", "rank": rank})
    profile.op("a", 1, 1, rf_id=1)
    profile.events[0]["pid"] = pid
    profile.write(path)


def names(directory: Path) -> list[tuple[str | None, str | None, int | None]]:
    return [
        (p.host and p.host.name, p.device and p.device.name, p.rank)
        for p in find_pairs([directory])[0]
    ]


def test_by_process_id(tmp_path: Path) -> None:
    for i in range(3):
        host(tmp_path / f"{'abc'[i]}.json", 100 + i)
        device(tmp_path / f"{'zyx'[i]}.json.gz", 100 + i, rank=i)
    assert names(tmp_path) == [
        ("a.json", "z.json.gz", 0), ("b.json", "y.json.gz", 1), ("c.json", "x.json.gz", 2),
    ]  # fmt: skip


def test_by_rank_where_process_ids_repeat(tmp_path: Path) -> None:
    for rank in range(2):
        host(tmp_path / f"host_rank{rank}.json", 7)
        device(tmp_path / f"d{rank}.json", 7, rank=1 - rank)
    assert names(tmp_path) == [
        ("host_rank0.json", "d1.json", 0), ("host_rank1.json", "d0.json", 1),
    ]  # fmt: skip


def test_two_host_traces_of_the_process_of_one_profile_are_refused(tmp_path: Path) -> None:
    """As where somebody unpacked the file and kept the packed one."""
    host(tmp_path / "h.json", 1)
    host(tmp_path / "h.json.gz", 1)
    device(tmp_path / "d.json", 1, rank=0)
    with pytest.raises(ChakraError, match=r"h\.json\.gz: .* h\.json are both of process 1"):
        find_pairs([tmp_path])


def test_one_of_each_kind_is_a_pair(tmp_path: Path) -> None:
    host(tmp_path / "h.json", 1)
    device(tmp_path / "d.json", 2)
    assert names(tmp_path) == [("h.json", "d.json", None)]


def test_what_is_left_over_is_no_pair_where_process_ids_tell_pairs(tmp_path: Path) -> None:
    """Of one rank the profile is missing, of another the host trace."""
    for rank in range(4):
        host(tmp_path / f"h{rank}.json", 10 + rank)
        device(tmp_path / f"d{rank}.json", 10 + rank, rank=rank)
    (tmp_path / "h1.json").unlink()
    (tmp_path / "d2.json").unlink()
    assert names(tmp_path) == [
        ("h0.json", "d0.json", 0), (None, "d1.json", 1), ("h3.json", "d3.json", 3),
    ]  # fmt: skip
    passed_over = find_pairs([tmp_path])[1]
    assert [(other.name, other.reason) for other in passed_over] == [
        ("h2.json", "a host trace without a profile, of unknown rank")
    ]


def test_files_without_a_counterpart_stand_alone(tmp_path: Path) -> None:
    host(tmp_path / "h.json", 1)
    for pid in (1, 2):
        device(tmp_path / f"d{pid}.json", pid)
    (tmp_path / "readme.txt").write_text("not a trace")
    assert sorted(names(tmp_path), key=str) == [
        ("h.json", "d1.json", None), (None, "d2.json", None),
    ]  # fmt: skip


def test_files_that_are_no_traces_are_named(tmp_path: Path) -> None:
    host(tmp_path / "h.json", 1)
    (tmp_path / "device.json").write_bytes(b"\0garbage")
    (tmp_path / "readme.txt").write_text("not a trace")
    (conversion,) = convert_directory(tmp_path, tmp_path / "out")
    assert conversion.report.warnings[-1] == (
        "skipped 2 files: readme.txt (neither JSON nor an ET in protobuf), "
        "device.json (an ET (protobuf), beside recordings)"
    )


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match="no such file"):
        find_pairs([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3_trace.json", 3), ("rank-34.Jul_15.pt.trace.json.gz", 34), ("host.7.json.gz", 7),
        ("trace_12.json", 12), ("node1_4242.1698955063520869240.pt.trace.json", None),
        ("trace.json", None), ("trace_1.0.2.json.gz", None), ("trace_1.10.2.json", None),
    ],
)  # fmt: skip
def test_ranks_in_names(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("allgather_1.0.2.json", None),
        ("host_1.12.3.json.gz", None),
        ("allgather_1.0.2.5.json", None),
        ("allgather_1.0.2_rank5.json", 5),
        ("resnet50.3.json", 3),
    ],
)
def test_the_number_of_a_version_is_no_rank(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank
