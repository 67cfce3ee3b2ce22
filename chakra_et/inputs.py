"""The inputs of a conversion: the host trace and the profile of one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from chakra_et.converters.kineto import DeviceTrace, read_device
from chakra_et.converters.pytorch import HostTrace, read_host
from chakra_et.errors import FormatError
from chakra_et.io.aside import Aside
from chakra_et.io.sniff import WORKLOAD_REMEDY, FileKind, sniff

_LARGE_BYTES: Final = 24 << 20


def read_both(
    host: str | Path | None, device: str | Path | None, strict: bool
) -> tuple[HostTrace | None, DeviceTrace | None]:
    """Both files, as far as they are given; at the same time, by two processes, where that pays.

    Raises FormatError, as the others here, for a damaged file or one of another kind.
    """
    if host is not None and device is not None and _large(device) and (os.cpu_count() or 1) > 1:
        with Aside(__name__, "read_profile", device, strict) as aside:
            return read_host_trace(host, strict), aside.result()
    return (
        None if host is None else read_host_trace(host, strict),
        None if device is None else read_profile(device, strict),
    )


def _large(path: str | Path) -> bool:
    """Whether reading takes longer than the other interpreter takes to begin."""
    try:
        return Path(path).stat().st_size >= _LARGE_BYTES
    except OSError:
        return False


def is_linked(path: str | Path) -> bool:
    """Whether a file holds a host trace and a profile that another tool has linked."""
    return sniff(path) is FileKind.LINKED


def read_host_trace(path: str | Path, strict: bool) -> HostTrace:
    """What is in a PyTorch host trace."""
    _expect(path, FileKind.HOST)
    return read_host(path, strict=strict)


def read_profile(path: str | Path, strict: bool) -> DeviceTrace:
    """What is in a Kineto profile."""
    _expect(path, FileKind.DEVICE)
    return read_device(path, strict=strict)


def _expect(path: str | Path, wanted: FileKind) -> None:
    kind = sniff(path)
    if kind is not wanted:
        remedies = {
            (FileKind.LINKED, FileKind.HOST): "It holds both views; give it alone.",
            (FileKind.LINKED, FileKind.DEVICE): "It holds both views; give it alone (--host).",
            (FileKind.WORKLOAD, FileKind.HOST): WORKLOAD_REMEDY,
            (FileKind.WORKLOAD, FileKind.DEVICE): WORKLOAD_REMEDY,
            (FileKind.DEVICE, FileKind.HOST): "Pass it as the device trace (--device).",
            (FileKind.HOST, FileKind.DEVICE): "Pass it as the host trace (--host).",
        }
        raise FormatError(
            f"this is a file of kind {kind.value}, where a {wanted.value} is wanted",
            path=path,
            remedy=remedies.get((kind, wanted), "It is converted already; read it as it is."),
        )
