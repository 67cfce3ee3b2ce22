"""What the fuzzer starts from: short pieces of real traces, and small files that were trouble."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import chakra_et
from chakra_et.errors import ChakraError
from chakra_et.io.source import read_all

ROOT: Final = Path(__file__).resolve().parents[1]
OWN: Final = (ROOT / "examples", ROOT / "tests" / "converters" / "linked")
PIECE: Final = 12
"""Records in a piece of a trace."""
ET_BYTES: Final = 1 << 13
KEYS: Final = ("nodes", "traceEvents", "workload_graph")


@dataclass
class Seeds:
    """Texts of any kind, JSON documents, and ETs in protobuf."""

    texts: list[bytes] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    ets: list[bytes] = field(default_factory=list)


def seeds(folders: list[Path]) -> Seeds:
    """Those of this repository and of some folders."""
    found = Seeds()
    for folder in (*OWN, *folders):
        for path in sorted(folder.rglob("*")):
            if (
                path.is_file()
                and path.suffix not in (".md", ".py", ".cpp")
                and path.name != "LICENSE"
            ):
                _take(found, path)
    _take_own(found)
    return found


def _take(found: Seeds, path: Path) -> None:
    try:
        content = read_all(path)
    except ChakraError:
        content = path.read_bytes()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        found.texts.append(content[:ET_BYTES])
        return
    short = _short(document)
    found.documents.append(short)
    found.texts.append(json.dumps(short).encode())


def _short(document: Any) -> Any:
    """The document with the middle and the end of its long array."""
    if isinstance(document, list):
        return document[:PIECE]
    for key in KEYS:
        records = document.get(key)
        if isinstance(records, list):
            middle = max(0, len(records) // 2 - PIECE // 2)
            document = {**document, key: [*records[middle : middle + PIECE], *records[-3:]]}
    return {key: value for key, value in document.items() if len(json.dumps(value)) < 1 << 14}


def _take_own(found: Seeds) -> None:
    """ETs, and JSON of all forms, that are made of what was found."""
    with tempfile.TemporaryDirectory() as folder:
        for document in list(found.documents):
            source, target = Path(folder, "in.json"), Path(folder, "out.et")
            source.write_text(json.dumps(document))
            try:
                chakra_et.convert_directory(source, None)[0].write(target)
                chakra_et.write(chakra_et.read(target), Path(folder, "out.json"))
            except (ChakraError, IndexError):
                continue
            found.ets.append(target.read_bytes())
            found.texts.append(gzip.compress(target.read_bytes()))
            found.documents.append(json.loads(Path(folder, "out.json").read_text()))
