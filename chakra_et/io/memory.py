"""Care for memory: what there is, a bound on what is taken, and no collection of garbage."""

from __future__ import annotations

import ctypes
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from chakra_et.errors import ChakraError
from chakra_et.io.cgroup import cgroup_bytes
from chakra_et.patterns import lazy_pattern

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = lazy_pattern(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_LEAST_BYTES: Final = 1 << 26
"""With less than this left, no file is read on."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h has them
_KEPT_BYTES: Final = 1 << 26
"""So much freed memory at most is kept for what is taken next."""
_SMALL_BYTES: Final = 1 << 28
"""A process that takes less memory keeps what it freed."""
_LARGE_BYTES: Final = 1 << 24
"""What is as large as this goes back to the system when it is freed. Columns of a million nodes are
smaller, and each step of linking makes several of them anew; larger ones are few and take long to
fill, so that memory counts for more."""
_MEMINFO: Final = Path("/proc/meminfo")
_STATUS: Final = Path("/proc/self/status")


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection while a long file is read.

    Each collection walks every object made so far, which costs most of the time of a bulk load;
    nothing that is read holds cycles.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def available_bytes() -> int:
    """Memory that can be had without swapping and within the limits of this process.

    These are the machine's, its control group's, and those that were set for the process; where
    the system tells nothing, it is half of all memory.
    """
    told = [
        _field(_MEMINFO, "MemAvailable"),
        cgroup_bytes(),
        _left("RLIMIT_AS", "VmSize"),
        _left("RLIMIT_DATA", "VmData"),
    ]
    known = [bytes_ for bytes_ in told if bytes_ is not None]
    return max(0, min(known)) if known else _half_of_all()


def resident_bytes() -> int:
    """Memory that this process takes; 0 where the system does not tell."""
    return _field(_STATUS, "VmRSS") or 0


def require(path: str | Path, wanted: int) -> None:
    """Raise ChakraError unless a file may take so much more memory, or the least for any."""
    wanted = max(wanted, _LEAST_BYTES)
    free = available_bytes()
    if free < wanted:
        raise ChakraError(
            f"not enough memory: at least {_in_megabytes(wanted)} more needed, "
            f"{_in_megabytes(free)} free",
            path=path,
            remedy=more_memory(),
        )


def more_memory() -> str:
    """What to do where memory is short, by what bounds it: the machine, or a limit of a process."""
    limited = _left("RLIMIT_AS", "VmSize")
    if limited is not None and limited < (_field(_MEMINFO, "MemAvailable") or 0):
        return "Raise the limit that is set for this process (ulimit -v)."
    return "Free some, or give --max-memory SIZE if the machine has more."


@contextmanager
def memory_limited() -> Iterator[None]:
    """Within it, the process may take what is free at its start; more is an error, no swapping."""
    if resource is None or not hasattr(resource, "RLIMIT_DATA"):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        limit_memory(available_bytes())
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, before)


def limit_memory(more_bytes: int) -> None:
    """Let this process take so much more memory; files that are mapped do not count.

    Where the system has no such limit, nothing happens.
    """
    taken = _field(_STATUS, "VmData")
    if resource is None or taken is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = taken + more_bytes
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    with suppress(OSError, ValueError, OverflowError):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def give_back(small_bytes: int = _SMALL_BYTES) -> None:
    """Give memory that was freed back to the system, which the C library keeps else in part.

    That takes a few milliseconds, and as many again to get the pages back that are needed next. It
    is worth them before much is taken that stays; a process that takes less than `small_bytes` does
    nothing. Where the library has no such call (only glibc does), nothing happens.
    """
    if resident_bytes() < small_bytes:
        return
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_freed() -> None:
    """Let the C library keep some freed memory for what is taken next, until `give_back`.

    Left to itself, glibc gives most arrays back to the system when they are freed, and the pages of
    the next one cost a fault each. That holds for the rest of the process. Other libraries have no
    such call; nothing happens then.
    """
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def size_in_bytes(text: str) -> int:
    """The size that a text like `8G`, `500MB` or `1.5GiB` tells; powers of 1024.

    Raises ValueError.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"expected a size such as 8G or 500M, got {text!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _field(file: Path, name: str) -> int | None:
    """A size in a file of the process filesystem."""
    try:
        match = re.search(rf"^{name}:\s*(\d+) kB", file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if match is None else int(match[1]) * 1024


def _left(limit: str, taken: str) -> int | None:
    """What a limit of the process leaves; None if it has none."""
    if resource is None or not hasattr(resource, limit):
        return None
    soft, _ = resource.getrlimit(getattr(resource, limit))
    used = _field(_STATUS, taken)
    return None if soft == resource.RLIM_INFINITY or used is None else soft - used


def _half_of_all() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 1 << 31


def _in_megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"
