"""Writing packed sets, and reading their ranks: see `chakra_et.io.packed` for the format."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import zstandard

from chakra_et.build.grid import Ranks
from chakra_et.build.output import GROUP_FILE, MANIFEST, Written
from chakra_et.build.template import Columns, Template, head, slot_value, templates
from chakra_et.build.workload import Program, Watch, Workload
from chakra_et.converters.et import decode_et
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.output import atomic_output
from chakra_et.io.packed import (
    TABLE,
    SetTable,
    SlotTable,
    TemplateTable,
    packed_file,
    packed_names,
    read_table,
)
from chakra_et.model import Trace
from chakra_et.run_directory import run_directory


def write_packed(
    workload: Workload, program: Program, path: str | Path, *, watch: Watch | None = None
) -> Written:
    """Write all ranks into one file, whole or not at all. Raises as `write_workload` does."""
    return pack_programs(workload, workload.programs(program, watch), path)


def pack_programs(
    workload: Workload,
    programs: Iterable[tuple[Columns, Ranks]],
    path: str | Path,
    *,
    seen: Callable[[Template], None] | None = None,
) -> Written:
    """As `write_packed`, of columns with the ranks that run them; `seen` sees each template."""
    written = Written(workload)
    kept: list[TemplateTable] = []
    with atomic_output(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for columns, ranks in programs:
            written.programs += 1
            for template in templates(columns, ranks):
                if seen is not None:
                    seen(template)
                for name, data in _parts(template).items():
                    packed = zstandard.ZstdCompressor(level=3).compress(data)
                    _store(archive, f"{name}.{len(kept)}.zst", packed)
                kept.append(_told(template))
                written.add(template, 0)
        _store(archive, GROUP_FILE, msgspec.json.encode(workload.comm_groups()), squeeze=True)
        _store(archive, MANIFEST, msgspec.json.encode(written.manifest()), squeeze=True)
        _store(archive, TABLE, msgspec.json.encode(SetTable(kept)), squeeze=True)
    written.file_bytes = Path(path).stat().st_size
    return written


def _store(archive: zipfile.ZipFile, name: str, data: bytes, *, squeeze: bool = False) -> None:
    how = zipfile.ZIP_DEFLATED if squeeze else zipfile.ZIP_STORED
    # One date for all: equal sets give equal files.
    archive.writestr(zipfile.ZipInfo(name), data, how)


def _parts(template: Template) -> dict[str, bytes]:
    """The members of a template."""
    ranks, workload = template.ranks.tolist(), template.workload
    heads = [head(workload, rank) for rank in ranks]
    return {
        "nodes": template.data,
        "slots": b"".join(slot.offsets.astype("<i8").tobytes() for slot in template.slots),
        "values": b"".join(
            slot_value(workload, slot, rank) for rank in ranks for slot in template.slots
        ),
        "heads": b"".join(len(each).to_bytes(8, "little") + each for each in heads),
    }


def _told(template: Template) -> TemplateTable:
    slots = [SlotTable(slot.width, len(slot.offsets)) for slot in template.slots]
    return TemplateTable(template.ranks.tolist(), template.nodes, template.edges, slots)


class PackedSet(Mapping[int, Trace]):
    """The traces of a packed set by rank; each is made when it is asked for.

    Raises FormatError for a file that is none, and ChakraError for one that cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._archive = zipfile.ZipFile(self.path)
        except OSError as error:
            raise ChakraError(
                f"cannot be read: {error.strerror or error}", path=path, remedy="Name a packed set."
            ) from error
        except zipfile.BadZipFile as error:
            raise FormatError(
                f"not a packed set: {error}", path=path, remedy="Write it again, or copy it again."
            ) from error
        table = read_table(self.path, self._archive)
        self._ranks = sorted(rank for template in table.templates for rank in template.ranks)
        # Ranks of one template together, so that it is read once.
        self._order = [rank for template in table.templates for rank in template.ranks]

    def __getitem__(self, rank: int) -> Trace:
        return decode_et(self.file(rank))

    def __iter__(self) -> Iterator[int]:
        return iter(self._ranks)

    def __len__(self) -> int:
        return len(self._ranks)

    def file(self, rank: int) -> bytes:
        """The file of a rank. Raises KeyError for a rank that is not in the set."""
        data = packed_file(self.path, self._archive, f"trace.{rank}.et")
        if data is None:
            raise KeyError(rank)
        return data

    def unpack(
        self,
        directory: str | Path,
        ranks: Iterable[int] | None = None,
        prefix: str = "trace",
        *,
        force: bool = False,
    ) -> list[Path]:
        """Write `{prefix}.{rank}.et` for some ranks (all by default), and comm_groups.json."""
        target = Path(directory)
        chosen = set(self._ranks if ranks is None else ranks)
        absent = sorted(chosen - set(self._ranks))
        if absent:
            raise ChakraError(
                f"no rank {absent[0]}", path=self.path, remedy=f"It has {len(self)} ranks, from 0."
            )
        with run_directory(target, prefix, force) as run:
            for rank in self._order:
                if rank in chosen:
                    run.path(f"{prefix}.{rank}.et").write_bytes(self.file(rank))
            for name in packed_names(self._archive) or ():
                if name.endswith(".json") and (ranks is None or name == GROUP_FILE):
                    run.path(name).write_bytes(self._archive.read(name))
        return [target / name for name in sorted(run.sources)]
