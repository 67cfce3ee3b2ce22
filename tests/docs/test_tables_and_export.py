"""Every command and every piece of Python in the pages about tables and exports is run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command import chakra
from places import EXAMPLES, ROOT

import chakra_et
from chakra_et.loading import load

pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("duckdb")
PAGES = ("tables.md", "export.md")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the pages name."""
    folder = tmp_path_factory.mktemp("run")
    traces = load(EXAMPLES / "ddp_2rank")
    for name in ("traces", "before", "after"):
        (folder / name).mkdir()
        for rank, trace in traces.items():
            chakra_et.write(trace, folder / name / f"trace.{rank}.et")
    for name in ("trace.0.et", "a.et", "b.et"):
        shutil.copy(folder / "traces" / "trace.0.et", folder / name)
    for name in ("host", "device"):
        shutil.copy(next((EXAMPLES / "simple_add").glob(f"{name}.*")), folder / f"{name}.json")
    return folder


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for page in PAGES
    for block in blocks(page, "sh")
    for line in block.splitlines()
    if line.startswith("chakra ")
]


def test_the_pages_have_commands() -> None:
    assert {words[0] for words in COMMANDS} == {"stats", "query", "diff", "show", "export"}
    assert len(COMMANDS) > 20


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_does_what_it_says(
    words: list[str], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "svg" in words and shutil.which("dot") is None:
        pytest.importorskip("pygraphviz")
    monkeypatch.chdir(run)
    done = chakra(*words)
    assert (done.code, done.errors.count("error")) == (0, 0), done.errors
    if "-o" in words:
        assert Path(words[words.index("-o") + 1]).stat().st_size > 0
    else:
        assert done.output


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("dot") is None:
        pytest.importorskip("pygraphviz")
    monkeypatch.chdir(run)
    names = {"traces": chakra_et.read_set("traces"), "trace": chakra_et.read("trace.0.et")}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)
