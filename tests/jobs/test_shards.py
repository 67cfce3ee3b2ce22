"""A run in shards is the run of one machine, however often and in whatever order they run."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from command import chakra
from many_ranks import FIRST_PID, run_of, traces
from places import EXAMPLES

import chakra_et
from chakra_et import ChakraError


@pytest.mark.parametrize("source", ["gloo", "nccl"])
def test_merged_shards_equal_the_run_of_one_machine(tmp_path: Path, source: str) -> None:
    """Over gloo, ranks tell each other groups: a shard alone cannot know them."""
    run = EXAMPLES / "ddp_2rank" if source == "gloo" else run_of(tmp_path / "run", 5)
    alone = chakra_et.convert_files(run, tmp_path / "alone")
    for shard in ("2/2", "1/2"):
        done = chakra("convert", run, "-o", tmp_path / "out", "--shard", shard)
        assert done.code == 0, done.errors
        assert f"chakra merge {tmp_path / 'out'}" in done.output
    assert traces(tmp_path / "out") == {}
    merged = chakra_et.merge_shards(tmp_path / "out", jobs=1)
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")
    for mine, theirs in zip(merged, alone, strict=True):
        one, other = mine.report.as_dict(), theirs.report.as_dict()
        assert one.pop("output") != other.pop("output")
        assert one == other


def test_shards_that_race_give_the_same_bytes(tmp_path: Path) -> None:
    """The same shards twice at the same time, as where a scheduler starts a job again."""
    run = run_of(tmp_path / "run", 8)
    errors: list[BaseException] = []

    def convert(shard: str) -> None:
        try:
            chakra_et.convert_files(run, tmp_path / "out", shard=shard, jobs=1)
        except BaseException as error:
            errors.append(error)

    racing = [threading.Thread(target=convert, args=(s,)) for s in ("1/2", "2/2", "1/2", "2/2")]
    for thread in racing:
        thread.start()
    for thread in racing:
        thread.join()
    assert errors == []
    assert chakra("merge", tmp_path / "out", "-q").code == 0
    chakra_et.convert_files(run, tmp_path / "alone")
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")


@pytest.mark.parametrize("question", ["exists", "is_dir"])
def test_a_directory_that_another_shard_makes_meanwhile_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """Right after a shard has asked whether it is there."""
    run, out = run_of(tmp_path / "run", 2), tmp_path / "out"
    asked = getattr(Path, question)

    def ask(path: Path) -> bool:
        there: bool = asked(path)
        if path == out:
            out.mkdir(exist_ok=True)
        return there

    monkeypatch.setattr(Path, question, ask)
    assert len(chakra_et.convert_files(run, out, shard="1/2", jobs=1)) == 1


def test_missing_shards_are_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 3)
    with pytest.raises(ChakraError, match="no shards of a run are here"):
        chakra_et.merge_shards(tmp_path)
    chakra_et.convert_files(run, tmp_path / "out", shard="2/3")
    done = chakra("merge", tmp_path / "out")
    assert done.code == 2
    assert "2 of 3 shards are missing (1/3, 3/3)" in done.errors


def test_a_damaged_rank_of_a_shard_is_named_when_all_are_merged(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 4)
    bad = run / f"node_{FIRST_PID + 1}.1700000000000000001.pt.trace.json"
    bad.write_bytes(b'{"schemaVersion": 1, "traceEvents": 5}')
    codes = [
        chakra("convert", run, "-o", tmp_path / "out", "--shard", f"{i}/2").code for i in (1, 2)
    ]
    assert codes == [0, 1]
    done = chakra("merge", tmp_path / "out")
    assert done.code == 1
    assert bad.name in done.errors
    assert sorted(traces(tmp_path / "out")) == ["trace.0.et", "trace.2.et", "trace.3.et"]


def test_a_conversion_that_is_gone_is_made_when_shards_are_merged(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 3)
    chakra_et.convert_files(run, tmp_path / "alone")
    for number in (1, 2):
        chakra_et.convert_files(run, tmp_path / "out", shard=f"{number}/2")
    traces_of_parts = sorted(tmp_path.glob("out/.chakra-et/trace/*/0.et"))
    traces_of_parts[0].write_bytes(b"damaged")
    (traces_of_parts[1].parent / "record").unlink()
    chakra_et.merge_shards(tmp_path / "out", jobs=1)
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_shards_that_are_none_are_refused(tmp_path: Path, shard: str) -> None:
    done = chakra("convert", EXAMPLES / "ddp_2rank", "-o", tmp_path / "out", "--shard", shard)
    assert done.code == 2
    assert f"--shard {shard}" in done.errors


@pytest.mark.parametrize("duration", ["55.25", "7.0"], ids=["other sizes", "equal sizes"])
def test_shards_of_other_files_are_of_another_run(tmp_path: Path, duration: str) -> None:
    """Also where all names and sizes are equal, as those of the same script on another day."""
    runs = [run_of(tmp_path / name / "run", 2) for name in ("first", "second")]
    for path in runs[1].glob("*.pt.trace.json"):
        told = path.read_text().replace('"dur": 5.0', f'"dur": {duration}')
        path.write_text(told)
    for number, run in enumerate(runs, 1):
        chakra_et.convert_files(run, tmp_path / "out", shard=f"{number}/2")
    with pytest.raises(ChakraError, match="1 of 2 shards are missing"):
        chakra_et.merge_shards(tmp_path / "out", jobs=1)


def test_files_that_changed_since_a_shard_are_converted_when_all_are_merged(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 4)
    for number in (1, 2):
        chakra_et.convert_files(run, tmp_path / "out", shard=f"{number}/2")
    changed, copied = sorted(run.glob("*.pt.trace.json"))[:2]
    changed.write_text(changed.read_text().replace('"dur": 5.0', '"dur": 7.0'))
    os.utime(copied, ns=(0, 0))
    merged = chakra_et.merge_shards(tmp_path / "out", jobs=1)
    chakra_et.convert_files(run, tmp_path / "alone")
    assert len(merged) == 4
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")


def test_shards_are_merged_where_their_files_are_gone(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 2)
    chakra_et.convert_files(run, tmp_path / "alone")
    for number in (1, 2):
        chakra_et.convert_files(run, tmp_path / "out", shard=f"{number}/2")
    shutil.rmtree(run)
    chakra_et.merge_shards(tmp_path / "out", jobs=1)
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")
