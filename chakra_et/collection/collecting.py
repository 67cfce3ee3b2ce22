"""Recording from within a script."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from chakra_et.collection.collector import Collector
from chakra_et.collection.converting import convert_recording
from chakra_et.collection.release import expect_torch
from chakra_et.collection.settings import Settings
from chakra_et.collection.summary import lines
from chakra_et.errors import OutputError


def collect(
    output: str | Path,
    *,
    steps: int = 3,
    warmup: int = 2,
    memory: bool = False,
    stack: bool = False,
    convert: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Collection:
    """Record some steps of a training, as a host trace and a profile of the same window.

    >>> with chakra_et.collect("run", steps=3) as recording:
    ...     for batch in loader:
    ...         train(batch)
    ...         recording.step()

    Each rank does this and writes `host.RANK.json.gz`, `device.RANK.json.gz` and
    `manifest.RANK.json` to `output`, as soon as its window is over. The first `warmup` steps run
    without the profiler; it gets ready in one more; the next `steps` are recorded. If the block
    ends before, in whatever way, the steps that were whole are written and the manifest says so.
    `memory` and `stack` let the profiler record allocations and Python frames, too.

    With `convert`, the rank that ends last converts all of them to `output/et`. Recordings of
    another run are refused, unless `force` may replace them. Where devices are used, the times of
    steps in the manifest wait for these. How it went is said on standard error, unless `quiet`.

    Raises ChakraError where PyTorch is missing or older than 2.4, where the output cannot be
    written, where another run's recordings are there, and, when the block has ended without an
    error, where nothing could be recorded.
    """
    expect_torch()
    settings = Settings(
        str(output), steps=steps, warmup=warmup, memory=memory, stack=stack, force=force
    )
    return Collection(settings, convert, quiet)


class Collection:
    """A recording that is being made; `collect` says how."""

    def __init__(self, settings: Settings, convert: bool, quiet: bool) -> None:
        self._collector = Collector(settings)
        self._convert = convert
        self._quiet = quiet
        self._on_term: Any = None

    @property
    def manifest(self) -> dict[str, Any] | None:
        """What was recorded; None as long as nothing was."""
        return self._collector.manifest

    @property
    def profiler(self) -> Any:
        """PyTorch's profiler of the window, as for `key_averages`; None before it is ready."""
        window = self._collector.window
        return None if window is None else window.profiler

    def step(self) -> None:
        """Say that a step has ended. Call it where no `record_function` block is open."""
        self._collector.step()

    def __enter__(self) -> Collection:
        self._collector.begin()
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        ):
            self._on_term = signal.signal(signal.SIGTERM, end_as_after_an_error)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._collector.finish()
        finally:
            if self._on_term is not None:
                signal.signal(signal.SIGTERM, self._on_term)
        manifest, settings = self.manifest, self._collector.settings
        if not self._quiet:
            for text in lines(manifest, self._collector.problems):
                print(f"chakra: {text}", file=sys.stderr)
        if kind is not None:
            return
        if manifest is None:
            raise OutputError(self._collector.problems[-1], path=settings.directory)
        if self._convert and self._collector.is_last:
            convert_recording(Path(settings.directory), settings.force)


def end_as_after_an_error(number: int, _frame: object) -> None:
    """End the program so that all blocks are left; the same signal again ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)
