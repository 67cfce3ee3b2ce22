"""Where the C++ feeder lies in this package, and how it takes another feeder's place."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from chakra_et.errors import ChakraError
from chakra_et.schema_files import schema_file

CPP_DIR: Final = Path(__file__).resolve().parent / "cpp"
INCLUDE_DIR: Final = CPP_DIR / "include"
SOURCE_DIR: Final = CPP_DIR / "src"
CMAKE_DIR: Final = CPP_DIR / "cmake"

_FACADES: Final = {"astra-sim": "feeder_v3", "mlcommons": "feeder"}


def foreign_files(name: str, chakra: Path) -> list[Path]:
    """The files that `install_facade` would take away and does not put there again as they are."""
    folder = _FACADES[name]
    target = chakra / "src" / folder
    ours = {
        path.relative_to(base): path
        for base, root in (
            (CPP_DIR / "facade" / folder, CPP_DIR / "facade" / folder),
            (INCLUDE_DIR, INCLUDE_DIR / "chakra_et"),
        )
        for path in root.rglob("*")
        if path.is_file()
    }
    there = sorted(path for path in target.rglob("*") if path.is_file())
    return [path for path in there if not _same(path, ours.get(path.relative_to(target)))]


def _same(path: Path, ours: Path | None) -> bool:
    return ours is not None and path.read_bytes() == ours.read_bytes()


def install_facade(name: str, chakra: Path) -> list[Path]:
    """Replace a feeder under `chakra`/src by ours, its names kept. The files that were written.

    What lay in the feeder's folder is taken away; the schema and all else stays, except that a
    schema is put where there is none.
    """
    folder = _FACADES[name]
    if not chakra.is_dir():
        raise ChakraError("no such folder", path=chakra)
    target = chakra / "src" / folder
    if target.is_dir():
        shutil.rmtree(target)
    shutil.copytree(CPP_DIR / "facade" / folder, target)
    shutil.copytree(INCLUDE_DIR / "chakra_et", target / "chakra_et")
    written = sorted(path for path in target.rglob("*") if path.is_file())
    schema = chakra / "schema" / "protobuf" / "et_def.proto"
    if not schema.exists():
        schema.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(schema_file("et_def.proto"), schema)
        written.append(schema)
    return written
