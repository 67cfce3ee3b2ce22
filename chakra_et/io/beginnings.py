"""Whether a file is an archive, by how it begins."""

from __future__ import annotations

from typing import Final

HEADER_BYTES: Final = 512
"""What tells of a tar archive."""
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_COMPRESSED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""Gzip, bzip2, xz and zstd, in which a tar archive may lie."""


def is_zip(start: bytes) -> bool:
    """Whether a file that begins so is a zip archive."""
    return start.startswith(_ZIP)


def is_tar(start: bytes) -> bool:
    """Whether a file that begins so is a tar archive: its first header has the right sum."""
    if len(start) < HEADER_BYTES or not start[0]:
        return False
    try:
        told = int(start[148:156].split(b"\0")[0].strip() or b"x", 8)
    except ValueError:
        return False
    return told == sum(start[:148]) + 8 * 0x20 + sum(start[156:HEADER_BYTES])


def may_be_archive(start: bytes) -> bool:
    """Whether a file that begins so can be an archive, perhaps a compressed one."""
    return start.startswith(_COMPRESSED) or is_zip(start) or is_tar(start)
