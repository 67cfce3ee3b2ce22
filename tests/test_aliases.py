"""The commands of mlc-chakra run our verbs: the same outputs, and errors that name the verb."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from command import Done, chakra, program
from places import EXAMPLES, ROOT

import chakra_et
from chakra_et import aliases
from chakra_et.version import __version__

HOST, DEVICE = (EXAMPLES / "simple_add" / f"{name}.json.gz" for name in ("host", "device"))
TEXT = "DATA\n1\na -1 300 NONE 0 300 NONE 0 300 ALLREDUCE 1024 98\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    done = chakra("convert", HOST, DEVICE, "-o", "ours.et")
    assert done.code == 0
    return tmp_path


def run(name: str, *words: object) -> Done:
    """A command as its console script runs it."""
    return program(aliases.ALIASES[name], name, *words)


def link(output: str, *more: str, host: str = "--chakra-host-trace") -> Done:
    device = "--kineto-file" if host == "--pytorch-et-file" else "--chakra-device-trace"
    return run("chakra_trace_link", host, HOST, device, DEVICE, "--output-file", output, *more)


@pytest.mark.parametrize("host", ["--chakra-host-trace", "--pytorch-et-file"])
def test_linking_then_converting_gives_what_convert_gives(folder: Path, host: str) -> None:
    assert link("linked.json", "--rank", "0", host=host).code == 0
    chakra("convert", "--host", HOST, "--device", DEVICE, "--rank", "0", "-o", "one.json")
    assert (folder / "linked.json").read_bytes() == (folder / "one.json").read_bytes()
    done = run("chakra_converter", "PyTorch", "--input", "linked.json", "--output", "theirs.et")
    assert done.code == 0
    assert chakra_et.read("theirs.et") == chakra_et.read("ours.et")


def test_an_output_is_one_file_whatever_its_name(folder: Path) -> None:
    done = run("chakra_converter", "PyTorch", "--input", "ours.et", "--output", "trace")
    assert done.code == 0
    assert (folder / "trace").read_bytes() == (folder / "ours.et").read_bytes()
    assert run("chakra_converter", "PyTorch", "--input", "no.json", "--output", "none").code == 2
    assert not (folder / "none").exists()


@pytest.mark.usefixtures("folder")
def test_simulate_replays() -> None:
    words = ("PyTorch", "--input", "ours.et", "--output", "t.et", "--simulate")
    assert run("chakra_converter", *words).output.endswith(chakra("replay", "t.et").output)


def test_a_text_becomes_a_set(folder: Path) -> None:
    (folder / "w.txt").write_text(TEXT)
    words = ("--input", "w.txt", "--output", "set", "--num-npus", 2, "--num-passes", 3)
    assert run("chakra_converter", "Text", *words).code == 0
    assert chakra("generate", "text", "w.txt", "--ranks", 2, "--steps", 3, "-o", "ours").code == 0
    for rank in range(2):
        name = f"trace.{rank}.et"
        assert (folder / "set" / name).read_bytes() == (folder / "ours" / name).read_bytes()


@pytest.mark.parametrize("form", ["dot", "graphml"])
def test_a_picture_is_the_export(folder: Path, form: str) -> None:
    words = ("--input_filename", "ours.et", "--output_filename", f"theirs.{form}")
    assert run("chakra_visualizer", *words).code == 0
    chakra("export", "ours.et", "--to", form, "--limit", 0, "-o", f"ours.{form}")
    assert (folder / f"theirs.{form}").read_bytes() == (folder / f"ours.{form}").read_bytes()


def test_json_is_the_et_as_json(folder: Path) -> None:
    words = ("--input_filename", "ours.et", "--output_filename", "theirs.json")
    assert run("chakra_jsonizer", *words).code == 0
    chakra("convert", "ours.et", "-o", "ours.json")
    assert (folder / "theirs.json").read_bytes() == (folder / "ours.json").read_bytes()


def test_generated_traces_are_the_small_ones(folder: Path) -> None:
    words = ("--num_npus", 2, "--default_runtime", 5, "--default_comm_size", 64)
    assert run("chakra_generator", *words).code == 0
    chakra(
        "generate", "micro", "ring", "--ranks", 2, "--duration-ns", 5000, "--size", 64, "-o", "r"
    )
    ours, theirs = (folder / name / "trace.1.et" for name in ("r", "ring"))
    assert ours.read_bytes() == theirs.read_bytes()


FILES = ("--input_filename", "ours.et", "--output_filename")


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("chakra_trace_link", ("--output-file", "x.et"), ("--chakra-host-trace", "chakra convert")),
        ("chakra_converter", ("FlexFlow",), ("FlexFlow", "chakra convert")),
        ("chakra_converter", ("PyTorch", "--input", "a", "--output", "b", "--num_dims", "1"),
         ("--num_dims", "chakra convert -h")),
        ("chakra_converter", ("Text", "--input", "a", "--output", "b"),
         ("--num-npus", "chakra generate text -h")),
        ("chakra_visualizer", (*FILES, "x.pdf"), ("*.pdf", "chakra export -h")),
        ("chakra_visualizer", (*FILES, "x.dot", "--depth", "3"), ("--depth", "chakra export -h")),
        ("chakra_jsonizer", (*FILES, "x.txt"), ("ends in .json", "chakra convert -h")),
        ("chakra_generator", ("--num_dims", "1"), ("--num_dims", "chakra generate micro -h")),
        ("chakra_timeline_visualizer", (*FILES, "x.json"), ("chakra compare-sim TRACES ours.et",)),
    ],
)  # fmt: skip
def test_what_there_is_not_is_an_error_that_names_the_verb(
    folder: Path, name: str, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    done = run(name, *words)
    assert done.code == 2
    assert all(text in done.errors for text in (f"error: {name}: ", *told)), done.errors
    assert [path.name for path in folder.iterdir()] == ["ours.et"]


@pytest.mark.usefixtures("folder")
def test_options_without_an_effect_are_named() -> None:
    done = link("x.et", "--log-level", "DEBUG")
    assert (done.code, "--log-level has no effect" in done.errors) == (0, True)


def test_commands_are_named_by_the_first_word() -> None:
    assert program(aliases.main, "aliases", "chakra_jsonizer", "-h").code == 0
    done = program(aliases.main, "aliases", "chakra_linker")
    assert (done.code, "chakra_trace_link" in done.errors) == (2, True)


def test_the_package_of_scripts_has_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = pytest.importorskip("hatchling.build")
    monkeypatch.chdir(ROOT / "aliases")
    with zipfile.ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as wheel:
        (entries,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        assert all(".dist-info/" in name for name in wheel.namelist())
        scripts = wheel.read(entries).decode().split()
        metadata = wheel.read(entries.replace("entry_points.txt", "METADATA")).decode()
    assert f"Version: {__version__}\n" in metadata
    assert scripts == ["[console_scripts]"] + [
        word
        for name in sorted(aliases.ALIASES)
        for word in (name, "=", f"chakra_et.aliases:{name}")
    ]
