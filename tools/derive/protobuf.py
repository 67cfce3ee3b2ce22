"""The protobuf code and its stubs, made by an old compiler in a virtual environment of its own.

Code made by an old compiler runs on every later runtime; code made by a new one does not run on an
older runtime. The compiler is therefore pinned, and kept apart from the project's environment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from derive import registry

COMPILER = "1.63.2"
PROTOS = ("et_def.proto", "feeder.proto")
REQUIREMENTS = (f"grpcio-tools=={COMPILER}", "setuptools<81")
PYTHONS = ("python3.12", "python3.11", "python3.10", "python3.9", "python3.8")
ENVIRONMENT = registry.ROOT / ".venv-protoc"


class ProtocError(Exception):
    """The compiler could not be had, or refused the schema."""


def generate() -> dict[str, str]:
    """The generated files by name."""
    python = _environment()
    with tempfile.TemporaryDirectory() as out:
        arguments = [f"-I{registry.SCHEMA}", f"--python_out={out}", f"--pyi_out={out}"]
        _run([str(python), "-m", "grpc_tools.protoc", *arguments, *PROTOS])
        return {path.name: path.read_text("utf-8") for path in sorted(Path(out).iterdir())}


def _environment() -> Path:
    """The interpreter that has the pinned compiler; its environment is made when it is missing."""
    python = ENVIRONMENT / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if _output([str(python), "-c", _VERSION_OF_COMPILER]) == COMPILER:
        return python
    _run([_interpreter(), "-m", "venv", "--clear", str(ENVIRONMENT)])
    _run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS])
    return python


_VERSION_OF_COMPILER = "import importlib.metadata as m; print(m.version('grpcio-tools'))"
_VERSION_OF_PYTHON = "import sys; print(sys.version_info[:2] in [(3, n) for n in range(8, 13)])"


def _interpreter() -> str:
    for candidate in (sys.executable, *PYTHONS):
        if _output([candidate, "-c", _VERSION_OF_PYTHON]) == "True":
            return candidate
    raise ProtocError(
        f"grpcio-tools {COMPILER} needs Python 3.8 to 3.12; "
        f"tried {sys.executable} and {', '.join(PYTHONS)}"
    )


def _output(command: list[str]) -> str | None:
    """What a command prints, or None when it fails."""
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise ProtocError(f"`{' '.join(command)}` failed:\n{said}")
