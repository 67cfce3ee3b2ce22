"""Counting the steps of a process, recording some of them, and saying what came of it."""

from __future__ import annotations

import os
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from chakra_et.collection.manifest import manifest_of, name_of
from chakra_et.collection.others import OtherProfilers
from chakra_et.collection.release import is_restarted, knows_its_rank, place
from chakra_et.collection.settings import Settings
from chakra_et.collection.stage import Stage
from chakra_et.collection.step_times import StepTimes
from chakra_et.collection.window import Window
from chakra_et.errors import ChakraError

COMPLETE: Final = "complete"


class State(Enum):
    """How far a recording is."""

    WAITING = auto()
    READY = auto()
    OPEN = auto()
    OVER = auto()


class Collector:
    """Records a window of this process, as told by calls of `step`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State.WAITING
        self.done = 0
        """Steps that have ended."""
        self.problems: list[str] = []
        self.window: Window | None = None
        self.manifest: dict[str, Any] | None = None
        """What was recorded; None until it was."""
        self.is_last = False
        """Whether all ranks of the run have ended, with this one."""
        self._others = OtherProfilers(self._give_way)
        self._times = StepTimes()
        self._stage = Stage(Path(settings.directory), settings.force or is_restarted())
        self._first = self._closed = 0
        self._gave_way = False
        self._process = os.getpid()

    @property
    def is_used(self) -> bool:
        """Whether PyTorch's profiler was made ready: it does not work in forks of this process."""
        return self.window is not None

    def begin(self) -> None:
        """Make room for the files. Raises OutputError where that cannot be."""
        self._stage.open()
        try:
            if knows_its_rank():
                self._stage.expect_free(place().rank)
        except ChakraError:
            self._stage.close()
            raise
        self._others.watch()
        self._prepare_in_time()

    def step(self) -> None:
        """A step of the program has ended. Raises ChakraError where recording cannot begin."""
        if os.getpid() != self._process:
            return
        self.done += 1
        if self.state is State.WAITING:
            if 1 < self.done == self.settings.warmup and not self._others.busy:
                self._times.end("plain", self.done - 1)
            self._prepare_in_time()
            if self.done == 1:
                self._times.begin()
        elif self.state is State.READY:
            self._open()
        elif self.state is State.OPEN:
            self._next()
        elif self.done == self._closed + self.settings.steps and self.manifest is not None:
            self._times.end("plain", self.settings.steps)
            self._tell()

    def finish(self) -> None:
        """The program ends, in whatever way: write what there is, and leave nothing else."""
        if os.getpid() != self._process:
            return
        try:
            self._end()
            if self.manifest is not None:
                self.is_last = self._stage.end(self.manifest)
        finally:
            self._others.forget()
            self._stage.close()

    def _end(self) -> None:
        if self.state is State.OPEN:
            recorded = self.done - self._first
            if recorded:
                self.problems.append(
                    f"the program ended after {recorded} of {self.settings.steps} steps; the "
                    "recording also holds what ran after the last of them"
                )
                self._close("the program ended")
            else:
                self._abandon()
        elif self.state is State.READY:
            self._abandon()
        if self.manifest is None and not self.problems:
            self.problems.append(self._nothing())

    def _nothing(self) -> str:
        """Why nothing was recorded."""
        if self._gave_way:
            return (
                "nothing was recorded: the program uses a profiler or an observer of its own, and "
                "PyTorch supports one at a time; switch it off"
            )
        return (
            f"nothing was recorded: the program ran {self.done} steps, and recording takes "
            f"{self.settings.needed} (warmup {self.settings.warmup}, 1 to warm up the profiler, "
            f"{self.settings.steps} to record); run more, or ask for fewer"
        )

    def _prepare_in_time(self) -> None:
        if self.done < self.settings.warmup:
            return
        if self._others.busy:
            self._gave_way = True
            return
        with self._others:
            self.window = Window(self.settings, self._stage.path)
            self.window.prepare()
        self.state = State.READY

    def _open(self) -> None:
        assert self.window is not None
        try:
            with self._others:
                self._stage.expect_free(place().rank)
                self.window.open(self.done)
        except ChakraError as error:
            self.problems.append(f"nothing was recorded: {error}")
            self._abandon()
            self.state = State.OVER
            raise
        self.state, self._first = State.OPEN, self.done
        self._times.begin()

    def _next(self) -> None:
        assert self.window is not None
        recorded = self.done - self._first
        if recorded < self.settings.steps:
            self.window.mark(self.done)
            return
        self._times.end("recorded", recorded)
        self._close(COMPLETE)
        self._times.begin()

    def _close(self, ended: str) -> None:
        """Write the files of the window."""
        assert self.window is not None
        self.state, self._closed = State.OVER, self.done
        try:
            with self._others:
                self.window.close()
            self.manifest = manifest_of(self.window, self.settings, range(self._first, self.done))
            self.manifest["ended"] = ended
            self.manifest["files"] = self._stage.publish(self.window)
            self._tell()
        except (ChakraError, OSError, RuntimeError) as error:
            self._lose(error)
        except BaseException:
            self._lose("the program was interrupted meanwhile")
            raise

    def _lose(self, why: object) -> None:
        self.manifest = None
        self.problems.append(f"the recording could not be written: {why}")

    def _tell(self) -> None:
        """Write the manifest; once more when more is known."""
        assert self.manifest is not None
        self.manifest["times"] = self._times.told()
        self.manifest["problems"] = self.problems
        self._stage.write(name_of(self.manifest["rank"]), self.manifest)

    def _give_way(self) -> None:
        """Another profiler is about to start."""
        if self.state in (State.READY, State.OPEN) and os.getpid() == self._process:
            self._gave_way = True
            self._abandon()

    def _abandon(self) -> None:
        assert self.window is not None
        self.state = State.WAITING
        with self._others:
            self.window.abandon()
