"""The command line in this process: `chakra` as it is run, without a new interpreter for each."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

from chakra_et.cli.app import main
from chakra_et.io import spool


@dataclass
class Done:
    """How a command ended and what it printed."""

    code: int
    output: str
    errors: str
    raw: bytes

    @property
    def words(self) -> str:
        """What was printed, without line ends and columns."""
        return " ".join(self.output.split())


def chakra(*words: object, stdin: bytes = b"") -> Done:
    """Run the command with these words."""
    return program(main, "chakra", *words, stdin=stdin)


def program(run: Callable[[], None], *argv: object, stdin: bytes = b"") -> Done:
    """Run the function that a console script runs, as a program with these words."""
    out, err = _Captured(), _Captured()
    with _streams(out, err, stdin), mock.patch.object(sys, "argv", list(map(str, argv))):
        try:
            run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Done(code, out.text, err.text, out.raw)


def chakra_process(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own: for signals, limits and what an exit prints."""
    command = [sys.executable, "-m", "chakra_et.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


class _Captured(io.TextIOWrapper):
    """A stream of text that keeps its bytes."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", write_through=True)

    @property
    def raw(self) -> bytes:
        return self.bytes.getvalue()

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace")


@contextmanager
def _streams(out: _Captured, err: _Captured, stdin: bytes) -> Iterator[None]:
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.object(sys, "stdin", given),
        mock.patch.dict(spool._KEPT, clear=True),
    ):
        yield
        for kept in spool._KEPT.values():
            kept.close()
