"""Packed files: what the C++ feeder hands out of them, and copies with other members."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from native import NativeFeeder

from chakra_et.feeder import FeederError, Next


def handed_out(native: Any, path: Path, **options: Any) -> Any:
    """All nodes of a trace in order, as their bytes; or the error, without the file's name."""
    try:
        feeder, nodes = NativeFeeder(native, path, **options), []
        while (item := feeder.next())[0] is Next.NODE:
            assert item[1] is not None
            nodes.append((item[1].id, item[1].record()))
            feeder.done(item[1].id)
        return item[0], nodes, feeder.blocked()
    except FeederError as error:
        place = error.node, error.other, error.offset
        return error.code, place, str(error).replace(str(path), "FILE")


def changed(packed: Path, copy: Path, members: dict[str, bytes]) -> Path:
    """A copy of a packed file with other members, whose checksums are right."""
    with zipfile.ZipFile(packed) as archive, zipfile.ZipFile(copy, "w") as out:
        for name in archive.namelist():
            out.writestr(name, members.get(name, archive.read(name)))
    return copy
