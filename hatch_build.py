"""Builds the compiled kernel with the package, where that is possible; it is never needed.

It takes CMake, a C++17 compiler and simdjson. CHAKRA_ET_KERNEL says what happens: `auto` (the
default) goes on in pure Python where something is missing, `off` builds none, `require` fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "CHAKRA_ET_KERNEL"
WISHES = ("auto", "off", "require")
SOURCES = Path("chakra_et/kernel/cpp")
HOME = Path("chakra_et/kernel")
COMPILERS = ("c++", "g++", "clang++", "cl")
NANOBIND = "nanobind>=2.4"
SHOWN = 12
"""Lines of a failed program that a message repeats."""


class KernelError(Exception):
    """The kernel cannot be built."""


class KernelBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the kernel to wheels; for an editable install it is put beside the sources."""

    def dependencies(self) -> list[str]:
        """What a build needs beyond the system's tools."""
        return [] if _obstacle() else [NANOBIND]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the kernel. Goes on without one, or fails where one is required."""
        if self.target_name != "wheel" or _wish() == "off":
            return
        home = Path(self.root) / HOME
        if version == "editable":
            if _is_current(home):
                return
            for old in _modules(home):
                old.unlink()
        try:
            module = self._build()
        except KernelError as error:
            if _wish() == "require":
                raise
            self.app.display_warning(f"chakra-et is installed in pure Python: {error}")
            return
        if version == "editable":
            shutil.copy2(module, home / module.name)
            return
        build_data["force_include"][str(module)] = f"{HOME.as_posix()}/{module.name}"
        build_data["pure_python"] = False
        build_data["tag"] = _tag(module, self.build_config.builder.get_best_matching_tag())

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the build left behind."""
        if folder := getattr(self, "_folder", None):
            folder.cleanup()

    def _build(self) -> Path:
        """The module, in a directory that lasts as long as the build. Raises KernelError."""
        if problem := _obstacle():
            raise KernelError(problem)
        import nanobind

        self._folder = tempfile.TemporaryDirectory(prefix="chakra-et-kernel-")
        build, target = Path(self._folder.name) / "build", Path(self._folder.name) / "out"
        _run("cmake", "-S", Path(self.root) / SOURCES, "-B", build,
             f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}",
             "-DCMAKE_BUILD_TYPE=Release")  # fmt: skip
        _run("cmake", "--build", build, "--config", "Release")
        _run("cmake", "--install", build, "--config", "Release", "--prefix", target)
        (module,) = target.glob("_native.*")
        return module


def _wish() -> str:
    """What the environment asks for."""
    wish = os.environ.get(VARIABLE, "auto") or "auto"
    if wish not in WISHES:
        raise ValueError(f"{VARIABLE} is {wish!r}, and not one of {', '.join(WISHES)}")
    return wish


def _obstacle() -> str:
    """Why no kernel can be built, as far as that is plain; "" where it may work."""
    if _wish() == "off":
        return f"{VARIABLE} is off"
    if shutil.which("cmake") is None:
        return "there is no cmake"
    if not os.environ.get("CXX") and not any(map(shutil.which, COMPILERS)):
        return "there is no C++ compiler"
    return ""


def _modules(home: Path) -> list[Path]:
    """The modules for this Python that were built before."""
    paths = [home / f"_native{suffix}" for suffix in EXTENSION_SUFFIXES]
    return [path for path in paths if path.is_file()]


def _is_current(home: Path) -> bool:
    """Whether this Python's module is younger than all that it is made of."""
    sources = [home / "__init__.py", *(home / "cpp").iterdir()]
    sources += (home.parent / "feeder" / "cpp" / "include").rglob("*.hpp")
    latest = max(path.stat().st_mtime for path in sources)
    return any(module.stat().st_mtime > latest for module in _modules(home))


def _run(*command: object) -> None:
    """Run a program. Raises KernelError, with the first error that it told, where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise KernelError(f"`{' '.join(words[:2])}` failed: {_first_error(done.stdout)}")


def _first_error(told: str) -> str:
    """The lines from the first error on, or the last ones where none calls itself so."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    first = (place for place, line in enumerate(lines) if re.search(r"\berror\b", line, re.I))
    start = next(first, max(len(lines) - SHOWN, 0))
    return " ".join(lines[start : start + SHOWN])


def _tag(module: Path, best: str) -> str:
    """The tag of a wheel: of one for all Pythons from 3.12 on, or of one for this Python alone."""
    if ".abi3." not in module.name:
        return best
    return f"cp312-abi3-{best.rsplit('-', 1)[1]}"
