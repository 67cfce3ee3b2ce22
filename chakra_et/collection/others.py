"""Profilers and observers of the program itself: they come first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class OtherProfilers:
    """Sees when the program starts a profiler or an observer of its own.

    PyTorch has room for one of each; of two, it takes the results of one away without a word.
    `give_way` is called before another one starts. What is made while `ours` counts as our own.
    """

    def __init__(self, give_way: Callable[[], None]) -> None:
        self._give_way = give_way
        self._own = 0
        self._running: set[int] = set()
        self._undo: list[tuple[type, str, Any]] = []

    def __enter__(self) -> OtherProfilers:
        """Acts of ours that start or stop profilers happen inside of such a block."""
        self._own += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._own -= 1

    @property
    def busy(self) -> bool:
        """Whether another profiler runs or gets ready."""
        import torch

        enabled = getattr(torch._C._autograd, "_profiler_enabled", bool)
        return bool(self._running) or bool(enabled())

    def watch(self) -> None:
        """Begin to see them."""
        from torch.autograd.profiler import profile
        from torch.profiler import ExecutionTraceObserver

        for method in ("_prepare_trace", "_start_trace"):
            self._wrap(profile, method, self._starts)
        self._wrap(profile, "__exit__", self._ends)
        self._wrap(ExecutionTraceObserver, "register_callback", lambda _: self._give_way())

    def forget(self) -> None:
        """Leave PyTorch as it was."""
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()

    def _starts(self, profiler: Any) -> None:
        self._running.add(id(profiler))
        self._give_way()

    def _ends(self, profiler: Any) -> None:
        self._running.discard(id(profiler))

    def _wrap(self, owner: type, name: str, before: Callable[[Any], None]) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return

        @wraps(original)
        def wrapped(profiler: Any, *args: Any, **options: Any) -> Any:
            if not self._own:
                before(profiler)
            return original(profiler, *args, **options)

        self._undo.append((owner, name, original))
        setattr(owner, name, wrapped)
