"""An environment of its own for mlc-chakra, the converter that we compare with.

    python tools/mlc_env.py        make `.venv-mlc` if it is not there, and print its Python

mlc-chakra wants other versions of its dependencies than we do, so it never enters ours.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ("mlc-chakra==1.0.0", "HolisticTraceAnalysis==0.5.0", "pandas<3")
VERSIONS = ((3, 12), (3, 11), (3, 10))  # of Python, best first


class MlcError(Exception):
    """The environment cannot be made."""


def environment() -> Path:
    return Path(os.environ.get("CHAKRA_ET_MLC_VENV", ROOT / ".venv-mlc"))


def command(name: str) -> Path:
    """One of its programs, such as `chakra_jsonizer`."""
    return environment() / "bin" / name


def mlc_python() -> Path:
    """The environment's Python. The first call makes the environment: a minute or two."""
    home = environment()
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home / ".installed"
        wanted = "\n".join(REQUIREMENTS)
        if not done.exists() or done.read_text() != wanted:
            _install(home)
            done.write_text(wanted)
    return home / "bin" / "python"


def _install(home: Path) -> None:
    python = home / "bin" / "python"
    _run(_base_python(), "-m", "venv", "--clear" if python.exists() else "--upgrade-deps", home)
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS)
    # The link step imports a top-level `et_replay`, which no index has. The trace-analysis package
    # brings one along inside `param_bench`; this puts it where the import looks.
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True)
    (Path(packages.stdout.strip()) / "et_replay_of_param_bench.pth").write_text("param_bench\n")
    _run(python, "-c", "import chakra.src.trace_link.trace_link, chakra.schema.protobuf.et_def_pb2")


def _base_python() -> Path:
    if sys.version_info[:2] in VERSIONS:
        return Path(sys.executable)
    for major, minor in VERSIONS:
        found = shutil.which(f"python{major}.{minor}")
        if found and subprocess.run([found, "-V"], capture_output=True).returncode == 0:
            return Path(found)
    raise MlcError("mlc-chakra 1.0.0 needs Python 3.10, 3.11 or 3.12, and none was found")


def _run(*arguments: str | Path) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        shown = " ".join(map(str, arguments))
        raise MlcError(f"{shown}\nended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    try:
        print(mlc_python())
    except MlcError as error:
        sys.exit(str(error))
