"""Files by URL (`s3://`, `gs://`, `memory://` and others), through fsspec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from chakra_et.errors import ChakraError, OutputError
from chakra_et.extras import needing

_HEAD_BYTES: Final = 1 << 20


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it.

    Raises ChakraError where fsspec or what it needs for the scheme is not installed.
    """
    with needing("a file by URL", "url", "fsspec", ", and s3fs for s3://"):
        from fsspec.core import url_to_fs
    try:
        found: tuple[Any, str] = url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise ChakraError(f"no such kind of URL: {error}", path=url) from error
    return found


@contextmanager
def remote_errors(url: str, kind: type[ChakraError] = ChakraError) -> Iterator[None]:
    """Within it, errors of a store name the URL."""
    try:
        yield
    except ChakraError:
        raise
    except FileNotFoundError as error:
        raise kind("no such file", path=url, remedy="Check the URL.") from error
    except Exception as error:  # each store has kinds of its own
        raise kind(
            f"the store says: {type(error).__name__}: {error}",
            path=url,
            remedy="Check the URL, and that you may read and write there.",
        ) from error


def open_remote(url: str) -> BinaryIO:
    """A remote file to read and to seek in; it is read in pieces, as far as is asked for."""
    system, path = file_system(url)
    with remote_errors(url):
        file: BinaryIO = system.open(path, "rb", block_size=_HEAD_BYTES)
        return file


def names_below(url: str, skip: str | None = None) -> list[str] | None:
    """The names of all files below a URL; None if it is a file. `skip` is a URL to leave out."""
    system, path = file_system(url)
    with remote_errors(url):
        if system.isfile(path):
            return None
        found = system.find(path)
    top, left_out = path.rstrip("/"), None if skip is None else file_system(skip)[1].rstrip("/")
    names = [
        name[len(top) + 1 :]
        for name in sorted(found)
        if left_out is None or not name.startswith(left_out + "/")
    ]
    names = [n for n in names if not any(part.startswith(".") for part in n.split("/")[:-1])]
    if not names:
        raise ChakraError("no files are here", path=url, remedy="Check the URL.")
    return names


def remote_state(url: str) -> tuple[int, str]:
    """The size of a remote file, and what its store tells it from other contents by."""
    system, path = file_system(url)
    with remote_errors(url):
        return int(system.info(path)["size"]), str(system.ukey(path))


def fetch(url: str, target: Path) -> None:
    """Copy a remote file to this machine."""
    system, path = file_system(url)
    with remote_errors(url):
        system.get_file(path, str(target))


def upload(source: Path, url: str) -> None:
    """Copy a file of this machine to a store. Raises OutputError."""
    system, path = file_system(url)
    with remote_errors(url, OutputError):
        system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        system.put_file(str(source), path)
