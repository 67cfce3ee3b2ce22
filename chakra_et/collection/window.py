"""One window of a run: an observer and a profiler that open and close together."""

from __future__ import annotations

import json
import os
import time
import weakref
from pathlib import Path
from typing import Any, Final

from chakra_et.collection.release import Place, place, switches, synchronize
from chakra_et.collection.settings import Settings
from chakra_et.collection.threads import KEY, thread_counts
from chakra_et.errors import ChakraError

PAUSE_S: Final = 0.05
"""Gloo's threads close the range of a collective a moment after its result is there. One that is
still open when the window closes is missing in the host trace."""

_open: weakref.WeakSet[Window] = weakref.WeakSet()
_at_fork: list[bool] = []


class Window:
    """Records what runs between `open` and `close`, as `host.json` and `device.json` in `stage`."""

    def __init__(self, settings: Settings, stage: Path) -> None:
        from torch.profiler import ExecutionTraceObserver, _KinetoProfile

        self.host, self.device = stage / "host.json", stage / "device.json"
        self.switches = switches()
        self.place = Place()
        self.threads: dict[str, int] = {}
        self.observer: Any = ExecutionTraceObserver()
        self.profiler: Any = _KinetoProfile(
            record_shapes=True,
            profile_memory=settings.memory,
            with_stack=settings.stack,
            experimental_config=_config(self.switches),
            execution_trace_observer=self.observer,
        )
        self._step: Any = None
        self._started = False

    def prepare(self) -> None:
        """Let the profiler get ready, which may take longer than a step."""
        self.profiler.prepare_trace()

    def open(self, step: int) -> None:
        """Begin with a step. Raises ChakraError where another observer records already."""
        self.place = place()
        self.host.unlink(missing_ok=True)
        self.observer.register_callback(str(self.host))
        if not self.host.exists():
            # Another observer has the only place, and would be removed with this one.
            self.observer._registered = False
            raise ChakraError(
                "another ExecutionTraceObserver is registered",
                remedy="Let the program register none of its own.",
            )
        _stay_out_of_forks(self)
        synchronize()
        self._started = True
        self.profiler.start_trace()
        self.threads = thread_counts()
        self.profiler.add_metadata_json(KEY, json.dumps(self.threads))
        self._begin(step)

    def mark(self, step: int) -> None:
        """End a step, and begin the next one."""
        self._end()
        self._begin(step)

    def close(self) -> None:
        """End the last step, and write both files."""
        try:
            self._end()
            if self.place.uses_gloo:
                time.sleep(PAUSE_S)
        finally:
            self._stop()
        self.profiler.export_chrome_trace(str(self.device))

    def abandon(self) -> None:
        """Stop, and write nothing."""
        if not self._started:
            # Kineto goes back from being ready by starting, and no other way.
            self._started = True
            self.profiler.start_trace()
        self._end()
        self._stop()

    def _begin(self, step: int) -> None:
        from torch.autograd.profiler import record_function

        self._step = record_function(f"ProfilerStep#{step}")
        self._step.__enter__()

    def _end(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _stop(self) -> None:
        _open.discard(self)
        try:
            if self._started:
                self._started = False
                self.profiler.stop_trace()
        finally:
            # This, and nothing else, writes the end of the host trace.
            self.observer.unregister_callback()


def _config(wanted: dict[str, bool]) -> Any:
    from torch._C._profiler import _ExperimentalConfig

    return _ExperimentalConfig(**wanted)


def _stay_out_of_forks(window: Window) -> None:
    """Let processes that are forked off, such as those of a data loader, not write to the file."""
    _open.add(window)
    if not _at_fork:
        _at_fork.append(True)
        os.register_at_fork(after_in_child=_stop_observers)


def _stop_observers() -> None:
    for window in list(_open):
        window.observer.stop()
