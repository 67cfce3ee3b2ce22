"""What a program needs whose operations communicate: ranks, their groups, calls under way.

PyTorch and the standard library alone: the text of this module is part of such a program.
"""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

import atexit
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d


class Ranks:
    """The ranks that run a program, with the process groups of its recording.

    `groups` has the members of each by its recorded name. Groups are made when the first is used:
    by all ranks, in one order. `took` has the time of each operation from when it asked for
    communication to when that was seen to have ended, in ns.
    """

    def __init__(self, groups: Mapping[str, Sequence[int]], timeout_s: float) -> None:
        self.took: dict[int, list[int]] = {}
        self._members = dict(groups)
        self._timeout_s = timeout_s
        self._groups: dict[str, Any] = {}
        self._pending: dict[int, tuple[Callable[[], Any], int]] = {}
        self._asked: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def ask(self, number: int, waits: bool, function: Callable[..., Any], *given: Any) -> Any:
        """Call an operator that returns a work, and wait for it, or let it go on beside."""
        began = time.perf_counter_ns()
        returned = function(*given)
        work = returned[-1] if isinstance(returned, tuple) else returned
        self._names[number] = str(function)
        self._pending[number] = dist.Work.unbox(work).wait, began
        if waits:
            self.finish(number)
        return returned

    def functional(self, number: int, function: Callable[..., Any], *given: Any) -> Any:
        """Call an operator that returns tensors, for which `wait` waits."""
        began = time.perf_counter_ns()
        returned = function(*given)
        tensors = returned if isinstance(returned, (list, tuple)) else [returned]

        def wait() -> None:
            for tensor in tensors:
                torch.ops._c10d_functional.wait_tensor(tensor)

        self._names[number] = str(function)
        self._pending[number] = wait, began
        self._asked |= {tensor.untyped_storage().data_ptr(): number for tensor in tensors}
        return returned

    def wait(self, number: int, function: Callable[..., Any], tensor: Any) -> Any:
        """Wait for what has a tensor for its result."""
        asked = self._asked.pop(tensor.untyped_storage().data_ptr(), number)
        returned = self._guarded(asked, function, tensor)
        if asked in self._pending:
            _, began = self._pending.pop(asked)
            self._note(asked, began)
        return returned

    def finish(self, number: int) -> None:
        """Wait for what an operation asked for, if it is under way."""
        if number in self._pending:
            wait, began = self._pending.pop(number)
            self._guarded(number, wait)
            self._note(number, began)

    def finish_all(self) -> None:
        """Wait for all that is under way."""
        for number in list(self._pending):
            self.finish(number)
        self._asked.clear()

    def delay(self, number: int, ns: int) -> None:
        """Take as long as communication took, for which ranks are missing."""
        began = time.perf_counter_ns()
        time.sleep(ns / 1e9)
        self._note(number, began)

    def group(self, name: str) -> Any:
        """A process group, by its recorded name."""
        if not self._groups:
            self._make_groups()
        return self._groups[name]

    def boxed(self, name: str) -> Any:
        """A process group as operators take it."""
        return self.group(name).boxed()

    def name(self, name: str) -> str:
        """The name that a recorded group has here."""
        return str(self.group(name).group_name)

    def _make_groups(self) -> None:
        if not dist.is_initialized():
            if "RANK" not in os.environ:
                raise SystemExit("This program communicates: start it with torchrun.")
            backend = "nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, timeout=timedelta(seconds=self._timeout_s))
            atexit.register(dist.destroy_process_group)
        every = tuple(range(dist.get_world_size()))
        self._groups[""] = dist.group.WORLD
        for name, members in self._members.items():
            if not name and tuple(members) == every:
                continue
            if name.isdigit() and name not in distributed_c10d._world.pg_names.values():
                # The next group gets the name that it had.
                distributed_c10d._world.group_count = int(name)
            patience = timedelta(seconds=self._timeout_s)
            self._groups[name] = dist.new_group(list(members), timeout=patience)

    def _note(self, number: int, began: int) -> None:
        self.took.setdefault(number, []).append(time.perf_counter_ns() - began)

    def _guarded(self, number: int, wait: Callable[..., Any], *given: Any) -> Any:
        """Wait; ends the program where other ranks do not come: nothing can go on then."""
        try:
            return wait(*given)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            late = "timed out" in reason.lower() or "timeout" in reason.lower()
            what = f"did not end within {self._timeout_s:g} s" if late else f"failed: {reason}"
            name = self._names.get(number, "communication")
            told = f"rank {dist.get_rank()}: {name} (operation {number}) {what}"
            raise SystemExit(told) from None


def few(tensor: Any, ranks: int, of: int) -> Any:
    """The parts of the first ranks, of memory that has one for each of more."""
    return tensor.reshape(-1)[: tensor.numel() // of * ranks]


def rows(tensor: Any, counts: Sequence[int]) -> Any:
    """As many rows of a tensor as some ranks have together."""
    return tensor[: sum(counts)]
