"""Recording a program that does not know of it: the end of `optimizer.step` is that of a step."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from multiprocessing.util import Finalize
from typing import Any, Final

from chakra_et.collection.notes import ENDED, STARTED, STEPS, TORCH, Note, warn, write_note
from chakra_et.collection.settings import Settings

_OPTIMIZERS: Final = "torch.optim.optimizer"
_LAST: Final = -(1 << 10)
"""Priority of what runs when a process ends: behind all else."""


def install(settings: str) -> None:
    """Wait for PyTorch's optimizers to be imported."""
    asked = Settings.decoded(settings)
    write_note(asked.notes, Note(STARTED))
    sys.meta_path.insert(0, _Watch(asked))


class _Watch:
    """Sees the import of one module, and leaves all others alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _OPTIMIZERS:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                write_note(self.settings.notes, Note(TORCH))
                count_steps(module.Optimizer, Steps(self.settings))

            loader.exec_module = exec_module
        return spec


def count_steps(optimizer: Any, steps: Steps) -> None:
    """Let `steps` hear of each call of `step` of any optimizer, when it is over.

    PyTorch's own hooks run inside of the range that the profiler sees of `step`, which would be
    open where a window closes. Optimizers wrap their `step` by this function when they are made.
    """
    hooked = optimizer.profile_hook_step

    def profile_hook_step(step: Callable[..., Any]) -> Callable[..., Any]:
        inner = hooked(step)

        @wraps(inner)
        def outer(self: Any, *args: Any, **options: Any) -> Any:
            result = inner(self, *args, **options)
            steps.ended(self)
            return result

        return outer

    optimizer.profile_hook_step = staticmethod(profile_hook_step)


class Steps:
    """The steps of this process, counted by the optimizer that was the first to step."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock: Callable[[], object] = lambda: None
        self._collector: Any = None
        self._process = -1
        self._over = False

    def ended(self, optimizer: object) -> None:
        """An optimizer has stepped. What goes wrong here is told, and the program goes on."""
        if self._over and self._process == os.getpid():
            return
        try:
            if self._process != os.getpid():
                self._begin()
            self._count(optimizer)
        except Exception as error:
            self._over = True
            self._tell([str(error)])
            warn(f"this process is not recorded: {error}")

    def _begin(self) -> None:
        """The first step of this process, which may have been forked off by one that steps."""
        from chakra_et.collection.collector import Collector
        from chakra_et.collection.release import expect_torch

        parent, self._collector = self._collector, None
        self._process, self._over, self._clock = os.getpid(), False, lambda: None
        if parent is not None and parent.is_used:
            raise RuntimeError(
                "it was forked off by one that is recorded, and PyTorch's profiler "
                "does not work in forks; spawn it instead"
            )
        self._tell([], STEPS)
        expect_torch()
        collector = Collector(self._settings)
        collector.begin()
        self._collector = collector
        # A process of multiprocessing ends without what `atexit` has.
        atexit.register(self.finish)
        Finalize(None, self.finish, exitpriority=_LAST)
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        ):
            from chakra_et.collection.collecting import end_as_after_an_error

            signal.signal(signal.SIGTERM, end_as_after_an_error)

    def _count(self, optimizer: object) -> None:
        from chakra_et.collection.release import in_backward

        if self._clock() is None:
            self._clock = weakref.ref(optimizer)
        if self._clock() is optimizer:
            if in_backward():
                raise RuntimeError(
                    "the optimizer steps within the backward pass, where no step of the training "
                    "ends; use chakra_et.collect in the script (docs/recording.md)"
                )
            self._collector.step()

    def finish(self) -> None:
        """The process ends."""
        if self._process != os.getpid() or self._collector is None or self._over:
            return
        self._over = True
        try:
            self._collector.finish()
            problems = list(self._collector.problems)
        except Exception as error:
            problems = [str(error)]
        self._tell(problems)

    def _tell(self, problems: list[str], reached: str = ENDED) -> None:
        from chakra_et.collection.release import place

        rank = place().rank
        if self._collector is not None and self._collector.manifest is not None:
            rank = self._collector.manifest["rank"]
        write_note(self._settings.notes, Note(reached, os.getpid(), rank, problems))
