"""What the feeder's tests share: the C++ library, if there is a compiler."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from native import load
from places import CPP


@pytest.fixture(scope="session")
def compiler() -> str:
    """A C++ compiler."""
    found = os.environ.get("CXX") or shutil.which("c++")
    if not found:
        pytest.skip("no C++ compiler")
    return found


@pytest.fixture(scope="session")
def zstd(compiler: str) -> list[str]:
    """What the compiler is told to read packed and compressed ETs; nothing without the library."""
    return ["-DCHAKRA_ET_WITH_ZSTD", "-lzstd"] if has_header(compiler, "zstd.h") else []


@pytest.fixture(scope="session")
def zlib(compiler: str) -> list[str]:
    """The same for what is deflated: ETs, and descriptions of packed sets."""
    return ["-DCHAKRA_ET_WITH_ZLIB", "-lz"] if has_header(compiler, "zlib.h") else []


def has_header(compiler: str, name: str) -> bool:
    """Whether a library can be compiled against."""
    command = [compiler, "-x", "c++", "-E", "-"]
    text = f"#include <{name}>".encode()
    return subprocess.run(command, input=text, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def native(
    compiler: str, zstd: list[str], zlib: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The C interface as a library, which the first worker of a run builds for all."""
    library = shared_folder(tmp_path_factory) / "libchakra_et_feeder.so"
    with library.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            build(compiler, [*zstd, *zlib], library)
    return load(str(library))


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of this run, which all its workers see."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def build(compiler: str, more: list[str], target: Path) -> None:
    """Compile the library; what stands at the target is whole."""
    options = ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    source, partial = CPP / "src" / "feeder_c.cpp", target.with_suffix(".partial")
    command = [
        compiler,
        *options,
        "-I",
        str(CPP / "include"),
        str(source),
        "-o",
        str(partial),
        *more,
    ]
    subprocess.run(command, check=True)
    partial.rename(target)
