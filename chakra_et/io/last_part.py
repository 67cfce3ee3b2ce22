"""The part of a packed file that was read last, which the next rank most often needs again."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LastPart(Generic[T]):
    """One part of one archive, by number; reading another one lets it go."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[int, ...], T] | None = None

    def get(self, archive: zipfile.ZipFile, number: int, read: Callable[[], T]) -> T:
        """The part of an archive; where it is not the one that was read last, `read` gives it.

        An archive that is no file of this machine has nothing to be known by: it is read each time.
        """
        assert archive.fp is not None
        try:
            stat = os.fstat(archive.fp.fileno())
        except OSError:
            return read()
        key = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size, number)
        kept = self._kept
        if kept is None or kept[0] != key:
            self._kept = kept = key, read()
        return kept[1]
