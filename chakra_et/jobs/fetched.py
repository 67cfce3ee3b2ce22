"""Remote files of a rank, copied to this machine while it is converted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from chakra_et.errors import ChakraError
from chakra_et.inputs import Input
from chakra_et.io.protected import copies_read
from chakra_et.io.remote import fetch
from chakra_et.linker.output.report import Report
from chakra_et.pairing import Pair
from chakra_et.urls import url_of


@contextmanager
def fetched(pair: Pair) -> Iterator[Pair]:
    """The pair with files of this machine; errors within it name the URLs."""
    if all(url_of(file.path) is None for file in pair.files):
        yield pair
        return
    with tempfile.TemporaryDirectory(prefix="chakra-et-") as folder:
        copies: dict[str, Any] = {
            side: _copy(given, Path(folder, side))
            for side in ("host", "device", "whole")
            if (given := getattr(pair, side)) is not None
        }
        try:
            with copies_read():
                yield replace(pair, **copies)
        except ChakraError as error:
            back = {str(copies[side].path): url_of(getattr(pair, side).path) for side in copies}
            path = None if error.path is None else back.get(str(error.path), error.path)
            raise type(error)(
                error.problem, path=path, place=error.place, remedy=error.remedy
            ) from error


def _copy(given: Input, folder: Path) -> Input:
    url = url_of(given.path)
    if url is None:
        return given
    folder.mkdir()
    target = folder / given.path.name
    fetch(url, target)
    return replace(given, path=target)


def tell_urls(report: Report, pair: Pair, copies: Pair) -> None:
    """Let a report name the files that people gave, not copies of them."""
    for side, given, copy in (
        ("host", pair.host, copies.host),
        ("device", pair.device, copies.device),
        ("trace", pair.whole, copies.whole),
    ):
        told: dict[str, Any] | None = getattr(report, side)
        if given is None or copy is None or given.path == copy.path:
            continue
        if told is not None:
            told["path"] = url_of(given.path)
        for repair in report.repairs:
            if repair["file"] == str(copy.path):
                repair["file"] = url_of(given.path)
