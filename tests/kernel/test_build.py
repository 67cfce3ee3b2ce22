"""A build of the kernel that fails says why."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """hatch_build.py, which is not part of the package."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("told", "repeated"),
    [
        # As CMake tells it: the cause stands first, and advice and a summary follow.
        (
            [
                "-- Found Python",
                "CMake Error in CMakeLists.txt:",
                "",
                '  no "/tmp/simdjson/include"',
            ]
            + ["  advice"] * 12,
            'CMake Error in CMakeLists.txt: no "/tmp/simdjson/include" advice',
        ),
        (
            ["module.cpp:3: error: no such file", "1 error generated."],
            "module.cpp:3: error: no such",
        ),
        (["some words", "which call nothing that"], "failed: some words which call nothing that"),
    ],
    ids=["cmake", "compiler", "none"],
)
def test_the_message_has_the_first_error(hook: ModuleType, told: list[str], repeated: str) -> None:
    words = ("sh", "-c", 'printf "%s\\n" "$@"; exit 3', "sh", *told)
    with pytest.raises(hook.KernelError) as found:
        hook._run(*words)
    assert repeated in str(found.value)
    assert str(found.value).startswith("`sh -c` failed: ")
    assert "-- Found" not in str(found.value)
