"""Files of a recording appear whole, and never in place of another run's."""

from __future__ import annotations

import gzip
import json
import os
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chakra_et.collection.release import Place
from chakra_et.collection.stage import Stage, recorded_in, remove_unchanged
from chakra_et.errors import OutputError


def opened(target: Path, force: bool = False) -> Stage:
    stage = Stage(target, force)
    stage.open()
    return stage


def window(stage: Stage, rank: int = 0) -> Any:
    """A window that has closed, with its files."""
    found = SimpleNamespace(
        host=stage.path / "host.json", device=stage.path / "device.json", place=Place(rank, 2)
    )
    found.host.write_text('{"host": 0}')
    found.device.write_text('{"device": 0}\n')
    return found


def test_both_files_are_compressed_and_named_after_their_rank(tmp_path: Path) -> None:
    stage = opened(tmp_path)
    files = stage.publish(window(stage, 1))
    stage.close()
    assert {path.name for path in tmp_path.iterdir()} == {file["name"] for file in files}
    assert gzip.decompress((tmp_path / "host.1.json.gz").read_bytes()) == b'{"host": 0}'


def test_a_second_process_of_a_rank_does_not_replace_the_first(tmp_path: Path) -> None:
    first, second = opened(tmp_path, force=True), opened(tmp_path, force=True)
    first.publish(window(first))
    with pytest.raises(OutputError, match="another process of this run has recorded as rank 0"):
        second.publish(window(second))
    second.publish(window(second, 1))


def test_what_pytorch_could_not_write_is_refused_with_the_cause(tmp_path: Path) -> None:
    """It says nothing where there is no room: the host trace ends early, the profile is not there.

    A file as large as files may be ends there, whatever its last byte.
    """
    stage = opened(tmp_path)
    cut = window(stage)
    cut.host.write_text('{"nodes": [{"id"')
    with pytest.raises(OutputError, match=r"did not write all of the host trace: .* MB are free"):
        stage.publish(cut)
    missing = window(stage)
    missing.device.unlink()
    with pytest.raises(OutputError, match="did not write all of the profile"):
        stage.publish(missing)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = window(stage)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(
            OutputError, match=r"the host trace: a file of this process .*ulimit -f"
        ):
            stage.publish(full)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not recorded_in(tmp_path)


def test_what_a_killed_process_has_left_is_taken_away(tmp_path: Path) -> None:
    left = tmp_path / ".chakra-999999999-abc"
    left.mkdir()
    (left / "host.json").write_text("half")
    opened(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_the_rank_that_ends_last_knows_it(tmp_path: Path) -> None:
    """A manifest of an earlier run does not count."""
    old = tmp_path / "manifest.1.json"
    old.write_text(json.dumps({"final": True}))
    os.utime(old, ns=(0, 0))
    stages = [opened(tmp_path, force=True) for _ in range(2)]
    assert not stages[0].end({"rank": 0, "world_size": 2})
    assert stages[1].end({"rank": 1, "world_size": 2})


def test_only_recordings_that_were_not_replaced_are_removed(tmp_path: Path) -> None:
    for name in ("host.0.json.gz", "host.1.json.gz", "notes.txt"):
        (tmp_path / name).write_text("old")
        os.utime(tmp_path / name, ns=(0, 0))
    before = recorded_in(tmp_path)
    (tmp_path / "host.0.json.gz").write_text("new")
    remove_unchanged(tmp_path, before)
    assert {path.name for path in tmp_path.iterdir()} == {"host.0.json.gz", "notes.txt"}
