"""Every block of commands or Python in README.md and docs/ runs, in a reader's folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_blocks import PROGRAMS, SHELL, Block, blocks, pages, program, run, run_python
from doc_desk import SMALLER, names, smaller, stock

NOT_RUN = {
    "make ": "sets up an environment and runs the tests: CI does",
    "pip install": "needs a package index",
    "chakra collect": "needs PyTorch: tests/torch/test_script_to_page.py runs it",
    "chakra run ": "needs PyTorch: tests/torch runs it",
    "chakra synth fit DIR --learner neural": "needs PyTorch: tests/torch/test_synth.py learns so",
    "python benchmark.py": "needs PyTorch: tests/torch/test_run.py runs it",
    "torchrun ": "needs PyTorch: tests/torch/test_comms_run.py starts ranks so",
    "chakra VERB": "stands for any verb: tests/cli/test_verbs.py asks each for help",
    "chakra convert DIR -o OUT --executor": "needs a cluster: tests/cluster/test_clusters.py",
    "chakra convert s3:": "needs a store: tests/cluster/test_urls.py",
    "chakra merge OUT --jobs 2": "needs shards: docs/ranks.md makes them",
    "nsys ": "needs Nsight Systems and a GPU",
    "cmake ": "belongs to the reader's project: tests/feeder/test_cpp.py builds one so",
    "cd astra-sim": "builds ASTRA-sim",
    "AstraSim_": "needs ASTRA-sim",
    "chakra feed DIR --grpc": "serves until it is stopped: tests/feeder/test_service.py",
}
"""Beginnings of command lines that do not run here, and why."""
NOT_RUN_PYTHON = {
    'with chakra_et.collect("run", steps=3)': "needs PyTorch: tests/torch/test_recording_guide.py",
    "import torch": "needs PyTorch: tests/torch/test_recording_guide.py",
    "def part_0(t):": "a piece of a program: tests/benchmark/test_program.py runs it",
    "from torch._C": "an option of PyTorch's profiler",
    "rank = torch.distributed": "a piece of the reader's program",
    "from chakra_et.feeder import Next\n": "asks a server: tests/feeder/test_service.py runs it",
}
"""Beginnings of blocks of Python that do not run here, and why."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What readers have at hand."""
    folder = tmp_path_factory.mktemp("shelf")
    stock(folder)
    return folder


@pytest.fixture
def folder(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A reader's folder, in which the page is run."""
    with tempfile.TemporaryDirectory() as place:
        own = Path(place) / "reader"
        shutil.copytree(shelf, own, symlinks=True)
        monkeypatch.chdir(own)
        yield own
        monkeypatch.undo()


def skipped(block: Block) -> str | None:
    """Where in the list a block of Python is."""
    return next((start for start in NOT_RUN_PYTHON if block.text.startswith(start)), None)


def left_out(line: str) -> str | None:
    """Where in the list a command line is."""
    return next((start for start in NOT_RUN if line.startswith(start)), None)


def is_usage(line: str) -> bool:
    """Whether a line says how a verb is called, in general."""
    return "[OPTIONS]" in line


PAGES = [
    page for page in pages() if any(b.commands or b.language == "python" for b in blocks(page))
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("folder")
def test_the_blocks_of_a_page_run(page: str) -> None:
    for extra in ("bokeh", "pandas", "polars", "duckdb"):
        pytest.importorskip(extra)
    if shutil.which("dot") is None:
        pytest.importorskip("pygraphviz")
    known = names()
    for block in blocks(page):
        if block.language == "python" and skipped(block) is None:
            run_python(block, known)
        for line in block.commands:
            if left_out(line) is None and not is_usage(line):
                run(smaller(line, set()))


def test_nothing_is_left_out_for_a_reason_that_is_gone() -> None:
    found = [block for page in pages() for block in blocks(page)]
    lines = [line for block in found for line in block.commands]
    assert {left_out(line) for line in lines} - {None} == set(NOT_RUN)
    assert {skipped(b) for b in found if b.language == "python"} - {None} == set(NOT_RUN_PYTHON)
    used: set[str] = set()
    for line in lines:
        smaller(line, used)
    assert used == set(SMALLER)


def test_commands_stand_in_blocks_that_say_so() -> None:
    for page in pages():
        for block in blocks(page):
            if block.language not in SHELL:
                first = block.text.split(maxsplit=1)[0]
                assert first not in ("$", "chakra", "cmake", "pip"), f"{page}: {block.text}"
            for line in block.commands:
                assert left_out(line) or program(line) in PROGRAMS, line
