"""What all verbs share, and what each says where it does nothing or would do harm."""

from __future__ import annotations

import importlib
import io
import json
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from command import chakra
from places import EXAMPLES, ROOT, names_in
from rich.console import Console
from rich.progress import Progress, TaskID
from traces import coll, node, trace

import chakra_et
from chakra_et.cli import app, progress
from chakra_et.cli.app import FIRST_STEPS, GROUPS, VERBS, command_line
from chakra_et.cli.terminal import console_for
from chakra_et.definitions import NodeType

sys.path.insert(0, str(ROOT / "tools"))
reference = importlib.import_module("cli_reference")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The ETs of two ranks."""
    folder = tmp_path / "in"
    folder.mkdir()
    for rank in range(2):
        nodes = (node(1, is_cpu_op=True, start=0, took=5), coll(2, deps=(1,)))
        chakra_et.write(trace(*nodes, rank=rank, world=2), folder / f"t.{rank}.et")
    return folder


# --- Help ----------------------------------------------------------------------------------------


def test_the_list_of_verbs_imports_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = typer.main.get_command(command_line([]))
    monkeypatch.setattr(app, "import_module", None)
    listed: Any = typer.main.get_command(app.listing())
    told = {name: command.get_short_help_str() for name, command in listed.commands.items()}
    assert told == {name: command.get_short_help_str() for name, command in whole.commands.items()}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_each_verb_has_help_with_examples(verb: str, option: str) -> None:
    done = chakra(verb, option)
    assert done.code == 0
    module = importlib.import_module(f"chakra_et.cli.{VERBS[verb][0]}")
    for words, what in module.EXAMPLES[verb]:
        assert f"{words} # {what}" in done.words


def test_help_and_messages_keep_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    odd, told = typer.Typer(), "pip install 'it[torch]', [/red] or [A..B]"

    @odd.command(help=f"One: {told}", epilog=f"Two: {told}")
    def verb(_option: str = typer.Option("", help=f"Three: {told}")) -> None:
        """Nothing."""

    with pytest.raises(SystemExit):
        app.with_brackets(typer.main.get_command(odd))(["--help"])
    console_for().print(f"Four: {told}")
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(f"{place}: {told}" in shown for place in ("One", "Two", "Three", "Four"))
    assert "pip install 'chakra-et[query]'" in chakra("query", "--help").words


def test_each_verb_of_generate_has_help_with_examples() -> None:
    examples = importlib.import_module("chakra_et.cli.generate").EXAMPLES["generate"]
    for inner in ("llm", "micro", "collective", "msccl", "unpack"):
        mine = [example for example in examples if example[0].split()[2] == inner]
        words = chakra("generate", inner, "-h").words
        assert mine
        assert all(f"{example} # {what}" in words for example, what in mine)


@pytest.mark.parametrize("verb", VERBS)
def test_examples_use_options_that_there_are(verb: str) -> None:
    commands: Any = typer.main.get_command(command_line([])).commands  # type: ignore[attr-defined]
    inner = list(getattr(commands[verb], "commands", {"": commands[verb]}).values())
    known = {name for each in inner for option in each.params for name in option.opts}
    module = importlib.import_module(f"chakra_et.cli.{VERBS[verb][0]}")
    for words, _ in module.EXAMPLES[verb]:
        own = words.split(" -- ")[0]  # What follows is for the program that is run.
        parts = shlex.split(own.split("|")[-1])
        assert parts[:2] == ["chakra", verb]
        assert {part for part in parts if part.startswith("-") and part != "-"} <= known


def test_the_page_about_the_command_line_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference.page(), (
        "python tools/cli_reference.py"
    )


@pytest.mark.parametrize("words", [(), ("-h",)])
def test_alone_it_lists_verbs_by_group_and_says_where_to_begin(words: tuple[str, ...]) -> None:
    told = chakra(*words).words
    heads = [told.index(f" {group} ──") for group in GROUPS]
    assert heads == sorted(heads)
    assert told.index("First steps:") > heads[-1]
    assert all(f"{step} # {what}" in told for step, what in FIRST_STEPS)


def test_the_first_steps_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").symlink_to(EXAMPLES / "ddp_2rank")
    for step, _ in FIRST_STEPS[1:-1]:
        done = chakra(*shlex.split(step)[1:])
        assert done.code == 0, f"{step}: {done.errors}"
    assert names_in(tmp_path) == ["report.html", "run", "traces"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("chakra comp", {"compare-sim"}),
        ("chakra report --wi", {"--window"}),
        ("chakra export --to ", {"perfetto", "chrome", "dot", "graphml", "svg"}),
        ("chakra generate mi", {"micro"}),
    ],
)
def test_the_shell_completes_verbs_options_and_choices(
    typed: str, offered: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CHAKRA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    assert set(chakra().output.split()) == offered


# --- Reports -------------------------------------------------------------------------------------


def test_the_report_of_many_ranks_fits_a_screen(tmp_path: Path) -> None:
    (tmp_path / "ets").mkdir()
    one = chakra_et.convert(EXAMPLES / "simple_add" / "host.json.gz").trace
    for rank in range(24):
        chakra_et.write(one, tmp_path / "ets" / f"t.{rank}.et")
    done = chakra("convert", tmp_path / "ets", "-o", tmp_path / "out")
    assert done.code == 0, done.errors
    assert len(done.output.splitlines()) <= 24
    assert "24 ranks, 912 nodes" in done.output
    assert "and 14 more ranks (-v shows all)" in done.output
    full = chakra("convert", tmp_path / "ets", "-o", tmp_path / "out", "-v")
    assert full.output.count("38 nodes, 78 edges") == 24
    assert chakra("convert", tmp_path / "ets", "-o", tmp_path / "out", "-q").output == ""


def test_zeros_are_left_out_of_a_report(tmp_path: Path) -> None:
    host = EXAMPLES / "simple_add" / "host.json.gz"
    done = chakra("convert", host, "-o", tmp_path / "x.et")
    assert " 0 " not in done.words
    assert "device" not in done.output
    chakra_et.write(trace(node(1)), tmp_path / "one.et")
    done = chakra("convert", tmp_path / "one.et", "-o", tmp_path / "y.et")
    assert [line.split()[0] for line in done.output.splitlines()[1:]] == ["ET", "nodes"]
    assert "1 node, 0 edges" in done.output


def test_a_report_is_headed_by_the_input_where_the_output_comes_later(tmp_path: Path) -> None:
    host = EXAMPLES / "simple_add" / "host.json.gz"
    done = chakra("convert", host, "--for", "astra-sim", "-o", tmp_path / "out")
    assert done.output.startswith(f"{host}: 38 nodes, ")


def test_nothing_is_wrapped_or_cut_in_a_pipe(tmp_path: Path) -> None:
    long = tmp_path / ("a" * 120)
    long.mkdir()
    done = chakra("convert", EXAMPLES / "simple_add", "-o", long / "x.et")
    assert any(
        line.startswith(f"{long / 'x.et'} (rank 0): 57 nodes") for line in done.output.splitlines()
    )
    assert not any(line != line.rstrip() for line in done.output.splitlines())


# --- Info ----------------------------------------------------------------------------------------


def test_info_lists_several_files_and_directories(run: Path) -> None:
    done = chakra("info", EXAMPLES / "simple_add", run)
    rows = [line.split() for line in done.output.splitlines()]
    assert [Path(row[0]).name for row in rows[1:]] == [
        "device.json.gz", "host.json.gz", "t.0.et", "t.1.et", "skipped",
    ]  # fmt: skip
    assert "2 nodes, 1 edge" in done.output


def test_info_names_what_it_passes_over(run: Path) -> None:
    (run / "notes.txt").write_text("hello")
    done = chakra("info", run)
    assert f"skipped 1 file: {run / 'notes.txt'} (neither JSON nor" in done.words
    done = chakra("info", run, "--json")
    assert [Path(item["path"]).name for item in json.loads(done.output)] == ["t.0.et", "t.1.et"]
    assert "skipped 1 file" in done.errors


def test_info_of_nothing_is_refused(tmp_path: Path) -> None:
    done = chakra("info", tmp_path)
    assert (done.code, done.output) == (2, "")
    assert f"{tmp_path}: no file here" in done.errors


def test_info_takes_the_rank_of_the_name_where_the_content_tells_none(tmp_path: Path) -> None:
    chakra_et.write(trace(node(1)), tmp_path / "t.7.et")
    (told,) = json.loads(chakra("info", tmp_path / "t.7.et", "--json").output)
    assert told["rank"] == 7


def test_info_as_json(run: Path) -> None:
    (one,) = json.loads(chakra("info", run / "t.1.et", "--json").output)
    assert (one["format"], one["rank"], one["world_size"], one["nodes"]) == (
        "ET (protobuf)",
        1,
        2,
        2,
    )
    assert one["edges_by_kind"] == {"data": {"count": 1, "inferred": 0}}
    told = json.loads(chakra("info", EXAMPLES / "simple_add", "--json").output)
    assert {item["format"] for item in told} == {"PyTorch host trace", "Kineto profile"}
    facts = json.loads(chakra("info", run / "t.1.et", "--node", 2, "--json").output)
    assert facts["edges"][0]["from"] == 1
    assert facts["attributes"]["comm_size"] == 1024


def test_info_of_many_files_tells_what_is_wrong_with_one(run: Path) -> None:
    damaged = run / "t.1.et"
    damaged.write_bytes(damaged.read_bytes()[:-3])
    done = chakra("info", run)
    assert done.code == 2
    assert "2 nodes, 1 edge" in done.output
    assert "cannot be read: " in done.output
    assert "t.1.et" in done.output
    (sound, problem) = json.loads(chakra("info", run, "--json").output)
    assert ("problem" in sound, "problem" in problem) == (False, True)


def test_info_of_one_node_of_several_files_is_refused(run: Path) -> None:
    done = chakra("info", run, "--node", 1)
    assert done.code == 2
    assert "--node is about one file" in done.errors


# --- Outputs are what their names say ------------------------------------------------------------


@pytest.mark.parametrize(("verb", "name"), [("fix", "t.0.et"), ("replay", "replayed.0.et")])
def test_one_trace_goes_to_a_file_or_into_a_directory(
    tmp_path: Path, run: Path, verb: str, name: str
) -> None:
    (run / "t.1.et").unlink()
    for source in (run, run / "t.0.et"):
        assert chakra(verb, source, "-o", tmp_path / "x.et").code == 0
        assert chakra_et.read(tmp_path / "x.et").rank == 0
        assert chakra(verb, source, "-o", f"{tmp_path / 'new'}/").code == 0
        assert names_in(tmp_path / "new") == [name]


@pytest.mark.parametrize("verb", ["fix", "replay"])
def test_several_ranks_do_not_fit_one_file(tmp_path: Path, run: Path, verb: str) -> None:
    done = chakra(verb, run, "-o", tmp_path / "x.et")
    assert done.code == 2
    assert "names one file, but the traces have 2 ranks" in done.errors
    assert chakra("fix", run, "--for", "astra-sim", "-o", tmp_path / "x.et").code == 2
    assert names_in(tmp_path) == ["in"]


@pytest.mark.parametrize("verb", ["fix", "replay"])
def test_ranks_of_another_run_are_not_left_beside(tmp_path: Path, run: Path, verb: str) -> None:
    out = tmp_path / "out"
    assert chakra(verb, run, "-o", out).code == 0
    (run / "t.1.et").unlink()
    done = chakra(verb, run, "-o", out)
    assert (done.code, len(names_in(out))) == (2, 2)
    assert "files of another run are here" in done.errors
    assert chakra(verb, run, "-o", out, "--force").code == 0
    assert len(names_in(out)) == 1


def test_replay_with_the_times_of_another_run_says_how_far_off_it_is(run: Path) -> None:
    done = chakra("replay", run / "t.0.et", "--times-of", run / "t.1.et")
    assert done.code == 0, done.output
    assert "the prediction is off by " in done.output
    told = json.loads(
        chakra("replay", run / "t.0.et", "--times-of", run / "t.1.et", "--json").output
    )
    assert set(told["times_of"]) == {"recorded_span_ns", "span_error"}
    refused = chakra("replay", run, "--times-of", run / "t.1.et")
    assert refused.code == 2
    assert "--times-of compares single ranks, and here are " in refused.errors


def test_analyze_prints_a_table_for_each_question(run: Path) -> None:
    done = chakra("analyze", run, "hang")
    assert (done.code, done.output.partition(" ")[0]) == (0, "hang:")
    assert chakra("analyze", run, "path", "--format", "json").output.startswith("[")
    refused = chakra("analyze", run, "mfu", "--peak", "0")
    assert refused.code == 2
    assert "expected a positive rate" in refused.errors


# --- Nothing to do, and harm ---------------------------------------------------------------------


def test_fix_says_when_there_was_nothing_to_cure(tmp_path: Path) -> None:
    chakra_et.convert(EXAMPLES / "simple_add" / "host.json.gz", output=tmp_path / "t.0.et")
    done = chakra("fix", tmp_path / "t.0.et", "-o", tmp_path / "fixed.et")
    assert done.code == 0, done.output
    assert "there was nothing to fix" in done.output
    assert (tmp_path / "fixed.et").read_bytes() == (tmp_path / "t.0.et").read_bytes()


def test_fix_takes_the_rank_that_a_trace_tells_whatever_its_name(tmp_path: Path) -> None:
    """Rank 1 sends to rank 0: were it taken for rank 0, it would send to itself."""
    send = node(1, NodeType.COMM_SEND, comm_dst=0, comm_src=1, comm_tag=0, comm_size=8)
    chakra_et.write(trace(send, rank=1), tmp_path / "other.et")
    done = chakra("fix", tmp_path / "other.et", "-o", tmp_path / "fixed.et")
    assert "ET214" not in done.output


def test_a_network_for_one_rank_does_nothing_and_says_so(run: Path) -> None:
    one = chakra("replay", run / "t.0.et", "--network", "5,100")
    assert one.code == 0
    assert "--network has no effect on a single rank" in one.errors
    assert "--network" not in chakra("replay", run, "--network", "5,100").errors


@pytest.mark.parametrize("network", ["1e300,1", "1,1e-300", "-1,5", "5", "nan,1"])
def test_networks_that_cannot_be_are_refused(run: Path, network: str) -> None:
    refused = chakra("replay", run, "--network", network)
    assert refused.code == 2
    assert "--network: expected a latency in us and a bandwidth in GB/s" in refused.errors


@pytest.mark.parametrize("answer", ["", "--yes"])
def test_a_feeder_is_replaced_only_if_somebody_agrees(tmp_path: Path, answer: str) -> None:
    theirs = tmp_path / "src" / "feeder_v3" / "et_feeder.cpp"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    done = chakra("feeder", "--facade", "astra-sim", "--into", tmp_path, *answer.split())
    assert done.code == (0 if answer else 2)
    assert theirs.exists() is not bool(answer) or theirs.read_text() != "theirs"
    if not answer:
        assert theirs.read_text() == "theirs"
        assert "--yes" in done.errors
    else:
        again = chakra("feeder", "--facade", "astra-sim", "--into", tmp_path)
        assert again.code == 0, "what is ours may be replaced"


# --- Signs of life -------------------------------------------------------------------------------


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    for terminal in (True, False):
        written = io.StringIO()
        monkeypatch.setattr(written, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stderr", written)
        with progress.working("converting") as step:
            step(3, 8)
            deadline = time.monotonic() + 5
            while terminal and "3/8" not in written.getvalue() and time.monotonic() < deadline:
                time.sleep(0.01)
        seen.append(written.getvalue())
    assert "converting" in seen[0]
    assert "3/8" in seen[0]
    assert "?" not in re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", seen[0]), "a count that nobody knows"
    assert seen[1] == ""


STAGES = {
    "validate IN": ["checking"],
    "stats IN": ["reading", "adding up"],
    "stats IN --by name": ["reading", "adding up"],
    "query IN 'SELECT 1'": ["reading", "asking"],
    "diff IN IN": ["reading", "comparing"],
    "analyze IN hang": ["reading", "analyzing"],
    "show IN": ["reading", "replaying"],
    "report IN -o r.html": ["making the page"],
    "export IN --to perfetto -o p": ["reading", "exporting"],
    "export IN --to dot -o p.dot": ["reading", "drawing"],
    "replay IN -o OUT": ["reading", "replaying", "writing"],
    "whatif IN --set straggler=1:2 -o OUT": ["reading", "replaying", "writing"],
    "fix IN -o OUT": ["curing", "writing"],
    "fix IN --for astra-sim -o OUT": ["curing", "writing"],
    "convert IN --for astra-sim -o OUT": ["converting", "curing"],
    "anonymise IN --policy publish --key-file key -o OUT": ["reading", "anonymising", "writing"],
    "audit IN --against IN": ["reading", "auditing"],
    "feed IN/t.0.et": ["reading"],
    "generate collective ring --ranks 2 -o OUT": ["generating"],
}
"""What a terminal shows while a verb works, by the command line."""


@pytest.mark.parametrize("line", STAGES)
def test_every_stage_of_long_work_is_shown(
    line: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if line.startswith(("query", "report")):
        pytest.importorskip({"q": "duckdb", "r": "bokeh"}[line[0]])
    told: list[str] = []
    terminal = Console(file=io.StringIO(), force_terminal=True)
    add = Progress.add_task

    def add_task(bar: Progress, description: str, **more: Any) -> TaskID:
        told.append(description)
        return add(bar, description, **more)

    monkeypatch.setattr(progress, "_terminal", lambda: terminal)
    monkeypatch.setattr(Progress, "add_task", add_task)
    monkeypatch.chdir(tmp_path)
    Path("key").write_text("0123456789abcdef" * 4)
    done = chakra(*shlex.split(line.replace("IN", run.name)))
    assert done.code in (0, 1), done.errors
    assert list(dict.fromkeys(told)) == STAGES[line]


def test_each_rank_that_is_converted_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    chakra_et.convert_files(
        EXAMPLES / "ddp_2rank", None, jobs=1, step=lambda done, of: told.append((done, of))
    )
    assert told[:2] == [(1, 2), (2, 2)]


def test_a_replay_of_many_ranks_shows_those_most_in_error(tmp_path: Path) -> None:
    for rank in range(9):
        slow = node(1, is_cpu_op=True, start=0, took=5000)
        late = node(2, is_cpu_op=True, deps=(1,), start=5000 + 100 * rank, took=5000)
        chakra_et.write(trace(slow, late, rank=rank, world=9), tmp_path / f"t.{rank}.et")
    done = chakra("replay", tmp_path)
    assert [line.split()[0] for line in done.output.splitlines()[1:7]] == list("345678")
    assert "3 more ranks, none with a larger error (-v shows all)" in done.output
    assert len(done.output.splitlines()) <= 24
    assert "more ranks" not in chakra("replay", tmp_path, "-v").output


def test_a_replay_of_what_nobody_recorded_has_no_error(tmp_path: Path) -> None:
    assert chakra("generate", "collective", "ring", "--ranks", "2", "-o", tmp_path / "r").code == 0
    done = chakra("replay", tmp_path / "r")
    assert done.output.splitlines()[1].split()[2:6] == ["-"] * 4
    told = json.loads(chakra("replay", tmp_path / "r", "--json").output)
    assert told["ranks"]["0"]["span_error"] is None
