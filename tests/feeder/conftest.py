"""What the feeder's tests share: the C++ library, if there is a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest

from .places import CPP


@pytest.fixture(scope="session")
def compiler() -> str:
    """A C++ compiler."""
    found = os.environ.get("CXX") or shutil.which("c++")
    if not found:
        pytest.skip("no C++ compiler")
    return found


@pytest.fixture(scope="session")
def native(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The C interface as a library."""
    from .native import load

    target = tmp_path_factory.mktemp("lib") / "libchakra_et_feeder.so"
    command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    source = CPP / "src" / "feeder_c.cpp"
    subprocess.run(
        [*command, "-I", str(CPP / "include"), str(source), "-o", str(target)], check=True
    )
    return load(str(target))
