"""The end of a command: its exit status and its output, without taking its objects apart."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from unittest import mock

import pytest

from chakra_et.cli import ending

PROGRAM = """
import atexit, sys
from chakra_et.cli.ending import ended_at_once
class Object:
    def __del__(self):
        print("taken apart")
kept = Object()
with ended_at_once():
    atexit.register(print, "a handler of the command")
    print("output")
    {end}
"""


@pytest.mark.parametrize(
    ("end", "status", "taken_apart"),
    [
        ("pass", 0, False),
        ("sys.exit(3)", 3, False),
        ("raise ValueError", 1, True),
    ],
)
def test_a_process_ends_with_its_status_after_its_handlers(
    end: str, status: int, taken_apart: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(end=end)], capture_output=True, text=True, check=False
    )
    told = done.stdout.splitlines()
    assert (done.returncode, told[:2]) == (status, ["output", "a handler of the command"])
    assert (told[2:] == ["taken apart"]) is taken_apart


@pytest.mark.parametrize(
    ("watcher", "error", "left"),
    [(None, None, True), (print, None, False), (None, BrokenPipeError, False)],
)
def test_python_ends_a_process_that_is_watched_or_has_a_broken_stream(
    watcher: object, error: type[Exception] | None, left: bool
) -> None:
    handlers: list[Callable[[], object]] = []

    def keep(run: Callable[..., object], *arguments: object) -> None:
        handlers.append(partial(run, *arguments))

    stream = mock.Mock(flush=mock.Mock(side_effect=error))
    with (
        mock.patch.object(atexit, "register", keep),
        ending.ended_at_once(),
    ):
        pass
    with (
        mock.patch.object(sys, "stdout", stream),
        mock.patch.object(sys, "gettrace", return_value=watcher),
        mock.patch.object(os, "_exit") as leave,
    ):
        handlers[0]()
    assert leave.call_args_list == ([mock.call(0)] if left else [])


def test_a_command_about_an_et_loads_neither_rich_nor_threads() -> None:
    code = (
        "import os, sys; from chakra_et.cli.app import command_line; command_line(['info']); "
        "tasks = '/proc/self/task'; told = os.listdir(tasks) if os.path.isdir(tasks) else [0]; "
        "print('numpy' in sys.modules, 'rich.console' in sys.modules, len(told), "
        "'OPENBLAS_NUM_THREADS' in os.environ)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "False", "1", "False"]


@pytest.mark.parametrize(
    ("closed", "words", "code", "told"),
    [
        (">&-", "formats", 2, "error: standard output: cannot be written: Bad file descriptor"),
        (">&-", "convert", 2, "error: "),
        ("2>&-", "formats", 0, ""),
        ("<&-", "formats", 0, ""),
    ],
)
def test_a_stream_that_is_closed_is_no_traceback(
    closed: str, words: str, code: int, told: str
) -> None:
    line = f'"{sys.executable}" -m chakra_et.cli {words} {closed}'
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert told in done.stderr
