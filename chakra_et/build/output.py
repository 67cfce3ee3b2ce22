"""Writing a workload: a file for each rank, and what describes them all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import zstandard

from chakra_et.build.grid import Ranks
from chakra_et.build.template import Columns, Template, templates
from chakra_et.build.workload import Program, Watch, Workload
from chakra_et.errors import OutputError
from chakra_et.io.output import write_json
from chakra_et.run_directory import run_directory
from chakra_et.version import PRODUCER

GROUP_FILE: Final = "comm_groups.json"
MANIFEST: Final = "manifest.json"


@dataclass
class Written:
    """What was written: `programs` counts the distinct ones, `file_bytes` all files together."""

    workload: Workload
    programs: int = 0
    nodes: int = 0
    edges: int = 0
    file_bytes: int = 0
    ranks_of: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def add(self, template: Template, file_bytes: int) -> None:
        """Count in the files of a template."""
        ranks = len(template.ranks)
        self.nodes += template.nodes * ranks
        self.edges += template.edges * ranks
        self.file_bytes += file_bytes
        self.ranks_of.append(
            {
                "program": self.programs,
                "ranks": template.ranks.tolist(),
                "nodes": template.nodes,
                "edges": template.edges,
            }
        )

    def manifest(self) -> dict[str, Any]:
        """What describes the set: the grid, the families of groups, and which ranks are copies.

        Copies run one program, numbered from 1; their files differ in length where numbers do.
        """
        return {
            "format": "chakra-et set",
            "producer": PRODUCER,
            "world_size": self.workload.grid.world_size,
            "grid": self.workload.grid.axes,
            "facts": self.workload.facts,
            "groups": [
                {"family": f.name, "size": f.size, "first": f.first_number, "count": len(f.members)}
                for f in self.workload.families.values()
                if f.size > 1
            ],
            "copies": self.ranks_of,
        }


def write_workload(
    workload: Workload,
    program: Program,
    directory: str | Path,
    *,
    prefix: str = "trace",
    compressed: bool = False,
    jobs: int | None = None,
    force: bool = False,
    watch: Watch | None = None,
) -> Written:
    """Write `{prefix}.{rank}.et` for every rank, comm_groups.json and manifest.json.

    All files appear when all are whole. Each program is encoded once, and the bytes that differ are
    written over for every rank. `compressed` makes them `.et.zst`; `watch` sees each program;
    `force` removes what is left of an earlier, larger set.
    Raises OutputError where a file cannot be written or the disk has no room, BuildError where the
    programs do not fit together.
    """
    programs = workload.programs(program, watch)
    return write_programs(
        workload, programs, directory, prefix=prefix, compressed=compressed, jobs=jobs, force=force
    )


def write_programs(
    workload: Workload,
    programs: Iterable[tuple[Columns, Ranks]],
    directory: str | Path,
    *,
    prefix: str = "trace",
    compressed: bool = False,
    jobs: int | None = None,
    force: bool = False,
    seen: Callable[[Template], None] | None = None,
) -> Written:
    """As `write_workload`, of columns with the ranks that run them; `seen` sees each template."""
    target = Path(directory)
    written = Written(workload)
    suffix = "et.zst" if compressed else "et"
    with (
        run_directory(target, prefix, force) as run,
        ThreadPoolExecutor(jobs or os.cpu_count()) as pool,
    ):
        for columns, ranks in programs:
            written.programs += 1
            for template in templates(columns, ranks):
                if seen is not None:
                    seen(template)
                if not compressed:
                    _refuse_full_disk(target, len(template.data) * len(template.ranks))
                of_rank = {r: run.path(f"{prefix}.{r}.{suffix}") for r in template.ranks.tolist()}
                write = partial(_write, template, compressed)
                written.add(template, sum(pool.map(write, of_rank, of_rank.values())))
        write_json(workload.comm_groups(), run.path(GROUP_FILE))
        write_json(written.manifest(), run.path(MANIFEST))
    return written


def _write(template: Template, compressed: bool, rank: int, path: Path) -> int:
    """Write the file of a rank; its size in bytes."""
    data = template.file(rank)
    if compressed:
        data = zstandard.ZstdCompressor(level=1).compress(data)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            path=path.name,
            remedy="Choose a directory with room, or write a packed set.",
        ) from error
    return len(data)


def _refuse_full_disk(target: Path, needed: int) -> None:
    free = shutil.disk_usage(target).free
    if needed > free:
        raise OutputError(
            f"the files need {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free",
            path=target,
            remedy="Write them compressed, or as a packed set.",
        )
