"""Work in a copy of this process: the same results, and no copy stays behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pairs import make_pair

from chakra_et import ChakraError, convert
from chakra_et.converters.et import encode_et, encoder
from chakra_et.converters.et.json_form import encode_json
from chakra_et.io import fork
from chakra_et.io.answers import WorkerLostError
from chakra_et.io.fork import Fork, forks_allowed, in_turns, may_fork
from chakra_et.kernel import FORCE_PYTHON

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system copies no process")


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Copies are allowed, and have a core, whatever machine this is."""
    monkeypatch.setattr(fork, "usable_cores", lambda: 2)
    with forks_allowed():
        yield


def is_gone(pid: int) -> bool:
    """Whether there is no such child any more, not even one to be waited for."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def makers(items: range) -> list[tuple[int, int]]:
    """What was made of each item, and the process that made it."""
    return list(in_turns(lambda item: (item * item, os.getpid()), items))


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("count", [2, 7])
def test_two_processes_take_turns_and_results_keep_their_order(count: int) -> None:
    made = makers(range(count))
    assert [square for square, _ in made] == [item * item for item in range(count)]
    assert {pid for _, pid in made[::2]} == {os.getpid()}
    (other,) = {pid for _, pid in made[1::2]}
    assert other != os.getpid()
    assert is_gone(other)


@pytest.mark.usefixtures("two_cores")
def test_no_copy_is_made_for_one_item() -> None:
    assert makers(range(1)) == [(0, os.getpid())]


def test_programs_that_use_the_library_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork, "usable_cores", lambda: 2)
    assert not may_fork()
    assert {pid for _, pid in makers(range(3))} == {os.getpid()}


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("name", ["usable_cores", "available_bytes"])
def test_no_copy_is_made_without_a_core_or_memory_for_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert may_fork()
    monkeypatch.setattr(fork, name, lambda: 1)
    assert not may_fork()


@pytest.mark.usefixtures("two_cores")
def test_an_error_in_the_copy_comes_back() -> None:
    def make(item: int) -> int:
        if item % 2:
            raise ChakraError("not this one", path=Path("there"))
        return item

    with pytest.raises(ChakraError, match="there: not this one"):
        list(in_turns(make, range(4)))


@pytest.mark.usefixtures("two_cores")
def test_a_copy_that_is_killed_is_an_error() -> None:
    def make(item: int) -> int:
        if item % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(WorkerLostError, match="ended without a result"):
        list(in_turns(make, range(4)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_for_all_processes_end_the_copy_without_a_trace(number: signal.Signals) -> None:
    """Ctrl-C reaches both; the copy must not do what this process does at its end."""
    marks: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda *_: marks.append(1))
    try:
        with Fork(lambda: iter(lambda: os.kill(os.getpid(), number) or os.getpid(), None)) as copy:
            if number == signal.SIGINT:
                assert copy.result() == copy.pid
            else:
                with pytest.raises(WorkerLostError):
                    copy.result()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert is_gone(copy.pid)
    assert marks == []


def test_an_interrupted_process_leaves_no_copy() -> None:
    with pytest.raises(KeyboardInterrupt), Fork(lambda: iter(signal.pause, 0)) as copy:
        raise KeyboardInterrupt
    assert is_gone(copy.pid)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pair")
    make_pair(1000, 0, directory, False)
    return directory


@pytest.mark.usefixtures("two_cores")
def test_both_files_and_the_output_are_the_same_whoever_works(
    pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FORCE_PYTHON, "1")
    monkeypatch.setattr(encoder, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr("chakra_et.inputs._COPY_BYTES", 0)
    copies: list[int] = []

    class Counted(Fork[object]):
        def __enter__(self) -> Fork[object]:
            copies.append(self.pid)
            return self

    monkeypatch.setattr(fork, "Fork", Counted)
    together = convert(pair / "host.json", pair / "device.json").trace
    written = [b"".join(encode(together)) for encode in (encode_et, encode_json)]
    assert len(copies) == 3
    monkeypatch.setattr(fork, "usable_cores", lambda: 1)
    alone = convert(pair / "host.json", pair / "device.json").trace
    assert [b"".join(encode(alone)) for encode in (encode_et, encode_json)] == written
    assert np.array_equal(alone.nodes.start_ns, together.nodes.start_ns)
    assert len(copies) == 3
