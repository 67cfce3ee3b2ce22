"""The page as a file: whole, safe, small, and honest about what it does not know."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from command import chakra
from places import EXAMPLES
from runs import MS, built, kernels, straggler
from traces import node, trace

from chakra_et.build import Rank
from chakra_et.errors import ChakraError
from chakra_et.files import write
from chakra_et.model import EdgeKind, TraceSet
from chakra_et.pages import write_report

HOSTILE = "</script><img src=x onerror=alert(1)>"
SECTIONS = (
    "overview", "timeline", "path", "steps", "operators", "collectives", "groups", "skew",
    "memory", "account", "findings",
)  # fmt: skip


class Reader(HTMLParser):
    """Elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "img", "link", "br"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.inside[-1] if self.inside else "", []).append(data)

    def all_of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def saved(traces: TraceSet, folder: Path) -> Path:
    for rank, one in traces.items():
        write(one, folder / f"trace.{rank}.et")
    return folder


def page_of(source: Path, tmp_path: Path) -> str:
    write_report(source, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text("utf-8")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page about recordings of two ranks, which are converted at once."""
    return page_of(EXAMPLES / "ddp_2rank", tmp_path_factory.mktemp("page"))


def test_it_has_all_sections_and_a_link_to_each(example: str) -> None:
    page = Reader(example)
    assert [section["id"] for section in page.all_of("section")] == list(SECTIONS)
    links = [link["href"] for link in page.all_of("a")]
    assert [f"#{name}" for name in SECTIONS] == links[1:]


def test_the_same_traces_give_the_same_page(example: str, tmp_path: Path) -> None:
    assert page_of(EXAMPLES / "ddp_2rank", tmp_path) == example


def test_nothing_on_it_asks_a_network(example: str) -> None:
    page = Reader(example)
    for _, attributes in page.elements:
        assert not set(attributes) & {"src", "srcset", "action", "data"}
        assert (attributes.get("href") or "#").startswith("#")
    assert not page.all_of("link")
    assert "@import" not in example.split("</style>")[0]
    assert "url(" not in example.split("</style>")[0]
    policy = page.all_of("meta")[1]["content"] or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy


def test_a_stretch_of_the_path_says_whose_time_it_is(tmp_path: Path) -> None:
    nodes = (
        node(1, start=0, took=100_000, name="addmm", is_cpu_op=True),
        node(2, start=100_000, took=900_000, name="view", is_cpu_op=True, time_parts="1:850000",
             deps=(1,), kind=EdgeKind.PROGRAM),
    )  # fmt: skip
    write(trace(*nodes, rank=0), tmp_path / "trace.0.et")
    write_report(tmp_path / "trace.0.et", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    table = page[page.index('id="path-longest"') :].partition("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(?:<[^>]*>)*([^<]*)", row)[:2] for row in table.split("<tr")[2:]]
    assert rows == [["view", "addmm"], ["addmm", "addmm"]]


def test_tables_have_captions_and_heads_with_a_scope(example: str) -> None:
    page = Reader(example)
    assert len(page.all_of("caption")) == len(page.all_of("table")) > 8
    assert all(head.get("scope") == "col" for head in page.all_of("th"))
    (html,) = page.all_of("html")
    assert html["lang"] == "en"


def test_recordings_are_converted_and_accounted_for(example: str) -> None:
    told = " ".join(Reader(example).text["td"])
    assert "nodes of the host trace" in told
    assert "profile: cpu_op" in told


def test_a_report_beside_the_traces_is_the_account(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = chakra(
        "convert", EXAMPLES / "simple_add", "-o", folder, "--report", folder / "report.json", "-q"
    )
    assert done.code == 0, done.errors
    total = json.loads((folder / "report.json").read_bytes())
    total = total.get("conversions", [total])[0]["host_nodes"]["total"]
    page = Reader(page_of(folder, tmp_path))
    assert "From the report in report.json." in page.text["p"]
    assert f"{total:,}" in page.text["td"]


def test_a_manifest_of_the_recording_is_in_the_account(tmp_path: Path) -> None:
    traces = tmp_path / "et"
    traces.mkdir()
    saved(built(kernels), traces)
    manifest = {"format": "chakra-et collection 1", "rank": 1, "torch": "2.13.0+cpu"}
    steps = {"first": 1, "recorded": 2, "wanted": 3}
    told = json.dumps({**manifest, "backend": "gloo", "devices": [HOSTILE], "steps": steps})
    (tmp_path / "manifest.1.json").write_text(told)
    (tmp_path / "manifest.0.json").write_text("{}")
    page = Reader(page_of(traces, tmp_path))
    assert "How it was recorded." in page.text["caption"]
    assert {"2.13.0+cpu", "gloo", HOSTILE, "2", "3"} <= set(page.text["td"])


@pytest.mark.parametrize(
    "content",
    [
        b'{"producer": "chakra-et 1", "host_nodes": 5}',
        b'{"conversions": [{"producer": "chakra-et 1", "host_nodes": {"left_out": {}}}]}',
        b'{"producer": "chakra-et 1"',
        b'{"producer": "chakra-et 1", "host_nodes": {"total": 1e999}}',
    ],
)
def test_a_damaged_report_is_no_account(content: bytes, tmp_path: Path) -> None:
    (saved(built(kernels), tmp_path) / "report.json").write_bytes(content)
    page = Reader(page_of(tmp_path, tmp_path))
    assert any("There is no report of a conversion" in words for words in page.text["p"])


def test_names_stay_text(tmp_path: Path) -> None:
    names = [
        HOSTILE,
        "{{ page.title }}",
        "'\"><svg onload=alert(1)>",
        "\u2028<!--<script>",
        "\x1b[31m",
    ]
    nodes = [node(i, took=1000, start=1000 * i, name=name) for i, name in enumerate(names)]
    source = saved(TraceSet({0: trace(*nodes, rank=0, groups={HOSTILE: (0, 1)})}), tmp_path)
    text = page_of(source, tmp_path)
    page = Reader(text)
    assert not page.all_of("img") + page.all_of("svg")
    assert len(page.all_of("script")) == 4
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert HOSTILE in page.text["td"]
    assert "{{ page.title }}" in page.text["td"]
    assert "\x1b" not in text
    data = re.search(r'id="timeline-data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert HOSTILE in json.loads(data[1])["names"]


def test_a_name_that_is_no_text_is_escaped(tmp_path: Path) -> None:
    source = saved(
        TraceSet({0: trace(node(1, took=5, start=0, name="a\udcffb"), rank=0)}), tmp_path
    )
    assert "a\\xffb" in page_of(source, tmp_path)


def test_eight_ranks_take_less_than_three_megabytes(dlrm8: Path, tmp_path: Path) -> None:
    assert len(page_of(dlrm8, tmp_path).encode()) < 3_000_000


def test_a_missing_rank_is_told(tmp_path: Path) -> None:
    traces = built(straggler, 4)
    source = saved(TraceSet({rank: traces[rank] for rank in (0, 2, 3)}), tmp_path)
    told = " ".join(Reader(page_of(source, tmp_path)).text["p"])
    assert "1 rank of 4 has no trace here: 1." in told
    assert "ranks [1] have no trace" in told


def test_times_of_a_replay_are_called_so(tmp_path: Path) -> None:
    told = " ".join(Reader(page_of(saved(built(kernels), tmp_path), tmp_path)).text["p"])
    assert "No node has a recorded start. All times are those of a replay by the edges." in told


def untimed(rank: Rank) -> None:
    """A kernel of 1 ms, and an all-reduce whose time nobody knows."""
    done = rank.compute("gemm", duration_ns=MS)
    rank.all_reduce("rank", 100_000_000, after=done)


def test_a_model_of_the_network_gives_transfers_a_time(tmp_path: Path) -> None:
    source = saved(built(untimed), tmp_path)
    done = chakra("report", source, "-o", tmp_path / "page.html")
    assert done.output.startswith("Device work limits this run: 100%")
    assert "2 communications have no duration" in (tmp_path / "page.html").read_text()
    # 100 MB in two halves, there and back, at 100 GB/s and 2 x 5 us: 1.01 ms beside 1 ms.
    done = chakra("report", source, "-o", tmp_path / "page.html", "--network", "5,100")
    assert done.output.startswith("Communication limits this run: 50% of the critical path")


def test_a_recording_takes_no_model_of_the_network(tmp_path: Path) -> None:
    done = chakra(
        "report", EXAMPLES / "ddp_2rank", "-o", tmp_path / "page.html", "--network", "5,100"
    )
    assert done.code == 2
    assert "these traces have recorded times" in done.errors


def test_an_empty_trace_makes_a_page(tmp_path: Path) -> None:
    source = saved(TraceSet({0: trace(rank=0)}), tmp_path)
    told = " ".join(Reader(page_of(source, tmp_path)).text["p"])
    assert "What limits this run is not known: the trace is empty." in told


def test_a_trace_that_cannot_be_replayed_makes_a_page_that_says_why(tmp_path: Path) -> None:
    circle = trace(
        node(1, took=1000, start=0, deps=(2,)), node(2, took=1000, start=1000, deps=(1,)), rank=0
    )
    told = " ".join(Reader(page_of(saved(TraceSet({0: circle}), tmp_path), tmp_path)).text["p"])
    assert "the edges of rank 0 form a cycle" in told


def test_the_command_says_what_limits_the_run(tmp_path: Path) -> None:
    source = saved(built(kernels), tmp_path)
    done = chakra("report", source, "-o", tmp_path / "page.html")
    assert done.code == 0, done.errors
    assert done.output.startswith("Device work limits this run: 90% of the critical path")


def test_a_page_goes_to_standard_output(tmp_path: Path) -> None:
    done = chakra("report", saved(built(kernels), tmp_path), "-o", "-")
    assert done.code == 0
    assert done.output.lstrip().startswith("<!DOCTYPE html>")
    assert "limits this run" in done.errors


@pytest.mark.parametrize("window", ["5", "7,5", "x,y", "-1,5", "inf,inf"])
def test_a_window_that_is_none_is_refused(window: str, tmp_path: Path) -> None:
    source = saved(built(kernels), tmp_path)
    done = chakra("report", source, "-o", tmp_path / "p.html", f"--window={window}")
    assert done.code == 2
    assert "--window takes two times in ms" in done.errors
    assert not (tmp_path / "p.html").exists()


def test_a_window_outside_of_the_run_is_refused(tmp_path: Path) -> None:
    source = saved(built(kernels), tmp_path)
    done = chakra("report", source, "-o", tmp_path / "p.html", "--window=10,20")
    assert done.code == 2
    assert "no time of this run, which lasts 10 ms" in done.errors


def test_a_page_may_lie_beside_the_traces(tmp_path: Path) -> None:
    source = saved(built(kernels), tmp_path)
    for _ in range(2):
        done = chakra("report", source, "-o", source / "report.html")
        assert done.code == 0, done.errors


def test_an_input_is_not_replaced(tmp_path: Path) -> None:
    source = saved(built(kernels), tmp_path)
    before = (source / "trace.0.et").read_bytes()
    done = chakra("report", source, "-o", source / "trace.0.et")
    assert done.code == 2
    assert "would overwrite this input" in done.errors
    assert (source / "trace.0.et").read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = chakra("report", saved(built(kernels), tmp_path), "-o", tmp_path / "no" / "page.html")
    assert done.code == 2
    assert "cannot be written" in done.errors


def test_a_directory_without_traces_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    with pytest.raises(ChakraError, match="no trace in this directory"):
        write_report(tmp_path, tmp_path / "page.html")


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = saved(built(kernels), tmp_path)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    done = chakra("report", source, "-o", tmp_path / "page.html")
    assert done.code == 2
    assert "pip install 'chakra-et[report]'" in done.errors
