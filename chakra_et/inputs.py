"""The files of a conversion: each is looked at once, when it becomes an `Input`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from chakra_et.converters.format import Format, View
from chakra_et.converters.formats import by_name, look
from chakra_et.errors import FormatError
from chakra_et.io.cores import usable_cores
from chakra_et.io.guard import reading
from chakra_et.io.source import plain_bytes
from chakra_et.io.spool import is_opened
from chakra_et.kernel import kernel
from chakra_et.patterns import lazy_pattern

if TYPE_CHECKING:
    from chakra_et.recording import DeviceTrace, HostTrace

_INTERPRETER_BYTES: Final = 24 << 20
"""Reading so much takes longer than another interpreter takes to begin."""
_COPY_BYTES: Final = 2 << 20
"""The same for a copy of this process."""
LONG_BYTES: Final = 256 << 20
"""From here on, a window is read without holding the rest, which takes several readings."""
Chosen: TypeAlias = Callable[[str], bool]
"""Tells by their names which annotations a window is of."""
_LABELLED_RANK: Final = lazy_pattern(r"rank[-_.]?(\d{1,9})", re.IGNORECASE)
_RANK_IN_NAME: Final = (
    # The end of a version number, as in `trace_1.0.2.json`, is no rank.
    lazy_pattern(r"(?<!\d\.\d)(?<!\d\.\d\d)\.(\d{1,9})\.(?:json|et)"),
    lazy_pattern(r"[-_](\d{1,9})\.(?:json|et)"),
)
_PID_IN_NAME: Final = lazy_pattern(r"_(\d{1,10})\.(?:[\w-]+\.)?\d{10,}\.pt\.trace\.json")
"""As torch's handler for TensorBoard has it: `HOST_PID.TIME.pt.trace.json`."""
_AXIS_IN_NAME: Final = lazy_pattern(r"-(TP|PP)-(\d{1,9})(?=[-.])")
_RANK_FOLDER: Final = lazy_pattern(r"rank[-_.]?(\d{1,9})", re.IGNORECASE)


_OPTIONS: Final = {
    View.HOST: "Pass it as the host trace (--host).",
    View.DEVICE: "Pass it as the device trace (--device).",
}


class Input(msgspec.Struct, frozen=True):
    """A file, what it is, and which process of a run it comes from.

    `rank` is that of the file's metadata, else of its name, else of the directories in `name`,
    which is the path as people know it: below the directory or archive that they gave.
    """

    path: Path
    name: str
    format: Format
    pid: int | None = None
    rank: int | None = None
    world_size: int | None = None
    detail: str = ""
    """What else is worth telling, where the file is refused."""

    @property
    def view(self) -> View:
        """What the file holds of a run."""
        return self.format.view

    @property
    def holds_trace(self) -> bool:
        """Whether it is an ET, in whatever form."""
        return self.view is View.TRACE

    @property
    def holds_both(self) -> bool:
        """Whether it holds the host's and the device's view."""
        return self.view is View.BOTH

    @property
    def holds_nothing(self) -> bool:
        """Whether it is of a format that is only recognised."""
        return self.view is View.NONE

    @property
    def bytes(self) -> int:
        """About how many bytes of content the file has, without compression."""
        return plain_bytes(self.path)

    @property
    def is_pipe(self) -> bool:
        """Whether only this process can read it: standard input, or another pipe of the shell."""
        return is_opened(self.path)

    def is_large(self, least: int) -> bool:
        """Whether it is a file of at least so many bytes, which another process can read."""
        try:
            return not self.is_pipe and self.path.stat().st_size >= least
        except OSError:
            return False

    def __reduce__(self) -> tuple[Any, ...]:
        # A format is data of this program: another process has its own.
        rest = self.pid, self.rank, self.world_size, self.detail
        return _from_another_process, (self.path, self.name, self.format.name, *rest)

    def read(self, strict: bool = False) -> Any:
        """What `view` names. Raises FormatError, and ChakraError for what is not read here."""
        if self.format.read is None:
            raise self.refused("a trace")
        with reading(self.path, self.format.called):
            return self.format.read(self.path, strict)

    def read_part(self, chosen: Chosen | None, strict: bool, with_host: bool) -> Any:
        """As `read`; of a long file no more is held than a window of annotations needs."""
        read = self.format.read_window
        if chosen is None or read is None or self.is_pipe or self.bytes < LONG_BYTES:
            return self.read(strict)
        with reading(self.path, self.format.called):
            return read(self.path, strict, chosen, with_host)

    def refused(self, wanted: str) -> FormatError:
        """The error for a file that is not what is `wanted`."""
        problem, remedy = f"this is {self.format.called}{self.detail}", self.format.remedy
        if self.view is not View.NONE:
            problem = f"expected {wanted}, got {self.format.called}"
            remedy = _OPTIONS.get(self.view, remedy)
        return FormatError(problem, path=self.path, remedy=remedy)


def _from_another_process(path: Path, name: str, format_name: str, *rest: Any) -> Input:
    return Input(path, name, by_name(format_name), *rest)


def open_input(path: str | Path, name: str | None = None) -> Input:
    """Look at a file. Raises FormatError if no format recognises it."""
    path = Path(path)
    with reading(path, "an input"):
        form, head = look(path)
        identity = form.identify(head)
    rank, pid = identity.rank, identity.pid
    if rank is None:
        rank = rank_in_name(path if name is None else name, pid)
    if pid is None and form.view is View.DEVICE:
        pid = pid_in_name(path)
    return Input(path, name or str(path), form, pid, rank, identity.world_size, identity.detail)


def rank_in_name(path: str | Path, pid: int | None = None) -> int | None:
    """The rank that a file's name tells (`rank3_trace.json`, `host.3.json.gz`), or None.

    Of a relative path, a directory `rank3` tells it, too. A number that is the process id is none.
    """
    path = Path(path)
    if match := _LABELLED_RANK.search(path.name):
        return int(match[1])
    for pattern in _RANK_IN_NAME:
        if (match := pattern.search(path.name)) and int(match[1]) != pid:
            return int(match[1])
    if path.is_absolute():
        return None
    folders = (_RANK_FOLDER.fullmatch(folder.name) for folder in path.parents)
    return next((int(match[1]) for match in folders if match), None)


def pid_in_name(path: str | Path) -> int | None:
    """The process that a profile's name tells, as torch's handler gives it, or None."""
    match = _PID_IN_NAME.search(Path(path).name)
    return None if match is None else int(match[1])


def with_ranks_of_axes(inputs: list[Input]) -> list[Input]:
    """Inputs whose names tell their place on axes (`run-TP-1-PP-0.trace.json.gz`) with ranks.

    That is told only of a set in which no other rank is. Stages of a pipeline are the outer axis,
    tensor-parallel ranks the inner one, which counts all ranks of a stage; if that does not tell
    files apart, none gets a rank.
    """
    places = {
        at: (int(told.get("PP", 0)), int(told["TP"]))
        for at, item in enumerate(inputs)
        if "TP" in (told := dict(_AXIS_IN_NAME.findall(Path(item.name).name)))
    }
    known = any(item.rank is not None for item in inputs)
    if known or len(set(places.values())) < len(places):
        return inputs
    width = 1 + max((inner for _, inner in places.values()), default=0)
    ranks = {at: outer * width + inner for at, (outer, inner) in places.items()}
    return [replace(item, rank=ranks.get(at)) for at, item in enumerate(inputs)]


def read_both(
    host: Input | None, device: Input | None, strict: bool, chosen: Chosen | None = None
) -> tuple[HostTrace | None, DeviceTrace | None]:
    """Both files, as far as they are given; at the same time, where there are cores for it.

    Of long files only what a window of `chosen` annotations needs is held. Raises FormatError for a
    damaged file or one of another kind.
    """
    for given, view, wanted in (
        (host, View.HOST, "a PyTorch host trace"),
        (device, View.DEVICE, "a Kineto profile"),
    ):
        if given is not None and given.view is not view:
            raise given.refused(wanted)
    if host is None or device is None:
        return (
            None if host is None else host.read_part(chosen, strict, False),
            None if device is None else device.read_part(chosen, strict, False),
        )
    with _beside(device, strict, chosen) as profile:
        return host.read_part(chosen, strict, True), profile()


@contextmanager
def _beside(
    device: Input, strict: bool, chosen: Chosen | None
) -> Iterator[Callable[[], DeviceTrace]]:
    """What gives a profile, which is read while this process reads its host trace.

    The kernel leaves the interpreter to others while it reads, so a thread is enough; without it,
    another process reads, or nobody does before the profile is asked for.
    """
    # Most commands read one file, and start sooner without what others bring along.
    from chakra_et.io.fork import Fork, may_fork
    from chakra_et.io.worker import Worker, in_worker

    read = partial(device.read_part, chosen, strict, True)
    if in_worker() or usable_cores() < 2:
        yield read
    elif kernel() is not None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            # The context knows which inputs are protected.
            yield pool.submit(copy_context().run, read).result
    elif device.is_large(_COPY_BYTES) and may_fork():
        with Fork(lambda: [read()]) as copy:
            yield copy.result
    elif device.is_large(_INTERPRETER_BYTES):
        with Worker(__name__, "read_input", device, strict, chosen) as worker:
            yield worker.result
    else:
        yield read


def read_input(given: Input, strict: bool, chosen: Chosen | None) -> Any:
    """What a profile holds that is read beside a host trace; for another process."""
    return given.read_part(chosen, strict, True)
