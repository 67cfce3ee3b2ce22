"""What files were when they were read, and the key that a conversion is known by."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import asdict

from chakra_et.conversion import Options
from chakra_et.inputs import Input
from chakra_et.io.remote import remote_state
from chakra_et.io.source import blocks, both_ends, located
from chakra_et.pairing import Pair
from chakra_et.run_directory import FileState, sha256_of
from chakra_et.urls import url_of
from chakra_et.version import __version__

_FORMAT: Final = "chakra-et part 1"
_END_BYTES: Final = 1 << 16
"""Recordings differ in their first or last records; compressed files end with a checksum."""


def state_of(given: Input) -> FileState:
    """The state of an input; of what lies in an archive or came through a pipe, of its content.

    Of a remote file it is what the store tells contents apart by, in place of the hash.
    """
    url = url_of(given.path)
    if url is not None:
        return FileState(given.name, *remote_state(url))
    if given.path.is_file():
        return FileState(given.name, given.path.stat().st_size, sha256_of(given.path))
    found, count = hashlib.sha256(), 0
    for block in blocks(given.path):
        found.update(block)
        count += len(block)
    return FileState(given.name, count, found.hexdigest())


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Size and time of a file, or of the archive that it is in; None for what is none."""
    try:
        stat = located(path)[0].stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def mark_of(given: Input) -> tuple[str, int, str]:
    """What tells an input from others of its name and size at first sight: a hash of both ends."""
    ends = both_ends(given.path, _END_BYTES)
    return given.name, given.bytes, hashlib.sha256(ends).hexdigest()


def key_of(pair: Pair, options: Options, states: list[FileState]) -> str:
    """What names a conversion: equal keys have equal traces.

    It covers the version, all options, what other ranks tell, and the content of the files.
    """
    window = None if options.window is None else options.window.described
    told = {
        rank: {key: asdict(value) for key, value in of_rank.items()}
        for rank, of_rank in (options.told or {}).items()
    }
    refuted = {rank: verdict.refuted for rank, verdict in (options.verdicts or {}).items()}
    asked = (options.strict, window, options.align_clocks, pair.asked, pair.rank)
    content = _FORMAT, __version__, asked, states, told, refuted
    return hashlib.sha256(msgspec.msgpack.encode(content, enc_hook=plain)).hexdigest()[:32]


def plain(value: Any) -> Any:
    """Arrays as msgpack can hold them."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    raise TypeError(f"{type(value).__name__} cannot be kept")
