"""Workers that a data loader forks write into the host trace of their parent: told apart."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from accounts import converted
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import HostRecording, Profile

from chakra_et import Conversion, convert
from chakra_et.errors import FormatError

MAIN_OPS = ("aten::linear", "aten::t", "aten::addmm", "aten::set_", "aten::empty")
WORKER_OPS = ("aten::randn", "aten::normal_", "aten::stack", "aten::cat", "aten::empty")


@dataclass
class Process:
    """A process with an observer: what it writes, as it ends, and what it has not flushed yet."""

    next_id: int = 3
    next_rf: int = 1
    time: int = 0
    buffer: list[dict[str, Any]] = field(default_factory=list)
    spans: list[tuple[str, int, int, int]] = field(default_factory=list)

    def run(self, random: Random, names: tuple[str, ...], parent: int = 2, depth: int = 0) -> None:
        """An operation, and those that it calls."""
        own, rf_id, begin = self.next_id, self.next_rf, self.time
        name = random.choice(names)
        self.next_id += random.choice((1, 3))
        self.next_rf += 1
        self.time += 1
        for _ in range(random.choice((0, 0, 1, 2)) if depth < 3 else 0):
            self.run(random, names, own, depth + 1)
        shape = [[[own]], [[4]], ["Tensor(float)"]]
        host = HostRecording().op(own, name, parent=parent, rf_id=rf_id, inputs=tuple(shape))
        self.buffer.append(host.nodes[-1])
        self.time += 1
        self.spans.append((name, rf_id, begin, self.time))


def recording(seed: int, *, workers: int, mixed: bool) -> tuple[HostRecording, Process]:
    """A run whose workers write what they do; `mixed` if they go on while the process does."""
    random = Random(seed)
    main = Process()
    blocks: list[list[dict[str, Any]]] = []
    for _ in range(random.choice((0, 1, 3))):
        main.run(random, MAIN_OPS)
    forked = [deepcopy(main) for _ in range(workers)]
    for worker in forked:
        for _ in range(random.choice((1, 4))):
            worker.run(random, WORKER_OPS)
    for _ in range(8):
        main.run(random, MAIN_OPS)
    for worker in forked:
        blocks += _flushed(worker, random) if mixed else [worker.buffer]
    order = sorted(range(len(blocks)), key=lambda _: random.random()) if mixed else []
    own = list(_flushed(main, random))
    for place in order:
        own.insert(random.randrange(len(own) + 1), blocks[place])
    host = HostRecording()
    host.nodes += [node for block in ([*own] if mixed else [*blocks, *own]) for node in block]
    return host, main


def _flushed(process: Process, random: Random) -> Iterator[list[dict[str, Any]]]:
    """What a process wrote, in pieces of 30 nodes or so, as its buffer takes them."""
    rest = process.buffer
    while rest:
        size = random.choice((20, 30, 40))
        yield rest[:size]
        rest = rest[size:]


def profile_of(main: Process) -> Profile:
    profile = Profile()
    for name, rf_id, begin, end in main.spans:
        profile.op(name, 10 * begin, 10 * (end - begin), rf_id=rf_id)
    return profile


def operations(result: Conversion) -> list[tuple[int | None, str]]:
    """Record-function ids and names of the operations of a trace."""
    found = [(node.rf_id, node.name) for node in result.trace.nodes if node.rf_id]
    return sorted(found, key=lambda item: item[0] or 0)


def expected(main: Process) -> list[tuple[int, str]]:
    return sorted((rf_id, name) for name, rf_id, _, _ in main.spans)


@given(st.integers(0, 1 << 30), st.integers(1, 4), st.booleans())
def test_what_the_profile_has_is_kept(seed: int, workers: int, mixed: bool) -> None:
    host, main = recording(seed, workers=workers, mixed=mixed)
    with tempfile.TemporaryDirectory() as folder:
        device = profile_of(main).write(Path(folder, "d.json"))
        result = converted(host.write(Path(folder, "h.json")), device)
    assert set(operations(result)) >= set(expected(main))
    ids = [node.host_id for node in result.trace.nodes]
    assert len(ids) == len(set(ids))
    join = result.report.joins[0]
    assert (join.matched, join.by) == (len(main.spans), "record-function id")
    if not mixed:
        assert operations(result) == expected(main)


@given(st.integers(0, 1 << 30), st.integers(1, 4))
def test_without_a_profile_the_tree_at_the_end_of_the_file_is_kept(seed: int, workers: int) -> None:
    host, main = recording(seed, workers=workers, mixed=False)
    total = len(host.nodes)
    with tempfile.TemporaryDirectory() as folder:
        result = converted(host.write(Path(folder, "h.json")))
    assert operations(result) == expected(main)
    (warning,) = [w for w in result.report.warnings if "forked processes" in w]
    lost = total - len(main.spans) - 2
    assert warning.startswith(
        f"{lost} node{' was' if lost == 1 else 's were'} left out as far as ids tell"
    )
    reason = {"node that a forked process wrote": lost}
    assert dict(result.report.host_nodes.left_out) == reason


@settings(max_examples=20)
@given(st.integers(0, 1 << 30))
def test_facts_of_a_node_are_those_of_its_own_process(seed: int) -> None:
    host, main = recording(seed, workers=2, mixed=False)
    own = {node["id"]: node for node in main.buffer}
    with tempfile.TemporaryDirectory() as folder:
        device = profile_of(main).write(Path(folder, "d.json"))
        result = converted(host.write(Path(folder, "h.json.gz")), device)
    for node in result.trace.nodes:
        if node.rf_id:
            assert node.host_id is not None
            assert own[node.host_id]["name"] == node.name
            assert node.inputs is not None
            assert str(own[node.host_id]["inputs"]["values"]) == str([[node.host_id]])


def test_a_strict_reading_refuses_what_workers_wrote(tmp_path: Path) -> None:
    host, _ = recording(1, workers=1, mixed=False)
    with pytest.raises(FormatError, match="node that a forked process wrote"):
        converted(host.write(tmp_path / "h.json"), strict=True)


def test_a_file_of_one_process_is_left_alone(tmp_path: Path) -> None:
    host, main = recording(1, workers=0, mixed=False)
    result = converted(host.write(tmp_path / "h.json"))
    assert operations(result) == expected(main)
    assert not any("forked" in warning for warning in result.report.warnings)


def test_documents_of_forked_processes_are_told_from_recordings_of_one_path(tmp_path: Path) -> None:
    """PyTorch 2.4 writes a document for each process, one behind the other."""
    texts = []
    for name in ("aten::worker", "aten::worker", "aten::main"):
        host = HostRecording()
        for number in range(3, 9):
            host.op(number, name, rf_id=number)
        texts.append(host.write(tmp_path / "one.json").read_text())
    file = tmp_path / "host.json"
    file.write_text(texts[0].rstrip()[:-1] + texts[1].rstrip()[:-1] + texts[2])
    profile = Profile()
    for number in range(3, 9):
        profile.op("aten::main", 10 * number, 5, rf_id=number)
    result = convert(file, profile.write(tmp_path / "device.json"))
    assert [node.name for node in result.trace.nodes if node.rf_id] == ["aten::main"] * 6
    assert result.report.host_nodes.left_out.total() == 3 * 8 - 8
