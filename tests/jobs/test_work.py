"""What a run of many ranks does with each file, counted: it does not grow with the ranks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from many_ranks import run_of

import chakra_et
from chakra_et.jobs import states


class Work:
    """How often each input was opened, and how often its content was hashed, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: Counter[str] = Counter()
        self.hashed: Counter[str] = Counter()
        real_open, real_hash = Path.open, states.sha256_of

        def counting_open(path: Path, *arguments: Any, **options: Any) -> Any:
            self.opened[path.name] += 1
            return real_open(path, *arguments, **options)

        def counting_hash(path: Path) -> str:
            self.hashed[path.name] += 1
            return real_hash(path)

        monkeypatch.setattr(Path, "open", counting_open)
        monkeypatch.setattr(states, "sha256_of", counting_hash)

    def of(self, run: Path, out: Path, **options: Any) -> tuple[set[int], set[int]]:
        """How often a conversion opens the files of a run, and how often it hashes them."""
        self.opened.clear()
        self.hashed.clear()
        chakra_et.convert_directory(run, out, jobs=1, **options)
        names = [path.name for path in run.iterdir()]
        return {self.opened[name] for name in names}, {self.hashed[name] for name in names}


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def test_each_file_is_hashed_once_and_opened_as_often_in_a_larger_run(
    tmp_path: Path, work: Work
) -> None:
    few, many = (run_of(tmp_path / str(ranks), ranks) for ranks in (2, 6))
    opened, hashed = work.of(few, tmp_path / "of few")
    assert hashed == {1}
    assert work.of(many, tmp_path / "of many") == (opened, {1})


def test_a_run_that_is_done_already_hashes_its_files_and_does_not_read_them(
    tmp_path: Path, work: Work
) -> None:
    run = run_of(tmp_path / "run", 3)
    opened, _ = work.of(run, tmp_path / "out", resume=True)
    again, hashed = work.of(run, tmp_path / "out", resume=True)
    assert hashed == {1}
    assert max(again) < min(opened)


def test_a_shard_hashes_its_own_files_alone(tmp_path: Path, work: Work) -> None:
    run = run_of(tmp_path / "run", 4)
    work.of(run, tmp_path / "out", shard="1/4")
    own = {name for name, count in work.hashed.items() if count == 1}
    assert len(own) == 2
    others = {work.opened[path.name] for path in run.iterdir() if path.name not in own}
    assert max(others) < min(work.opened[name] for name in own)


def test_merging_shards_opens_no_input_that_is_as_it_was(tmp_path: Path, work: Work) -> None:
    run = run_of(tmp_path / "run", 4)
    for number in (1, 2):
        chakra_et.convert_files(run, tmp_path / "out", shard=f"{number}/2", jobs=1)
    work.opened.clear()
    chakra_et.merge_shards(tmp_path / "out", jobs=1)
    assert not {path.name for path in run.iterdir()} & set(work.opened)
