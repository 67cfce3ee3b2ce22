"""Converting: files in, a trace and a report out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from chakra_et.converters.kineto import DeviceTrace, split_processes
from chakra_et.converters.linked import read_linked
from chakra_et.converters.pytorch import HostTrace
from chakra_et.errors import ChakraError
from chakra_et.files import read, write
from chakra_et.inputs import is_linked, read_both, read_host_trace, read_profile
from chakra_et.io.output import make_directory
from chakra_et.linker import link
from chakra_et.linker.report import Report
from chakra_et.linker.window import Window, cut_device, cut_host, window
from chakra_et.model import Trace, TraceSet
from chakra_et.pairing import Pair, rank_in_name

PathLike: TypeAlias = "str | Path"


@dataclass(frozen=True)
class Options:
    """What is asked for beside the files."""

    strict: bool = False
    window: Window | None = None
    align_clocks: bool = False


@dataclass
class Conversion:
    """The report of how a trace was made, where it was written (None if it was not), and `trace`.

    `kept` is the trace while it is in memory.
    """

    report: Report
    output: Path | None = None
    kept: Trace | None = field(default=None, repr=False)

    @property
    def trace(self) -> Trace:
        """The trace; it is read from `output` again where it was not kept."""
        if self.kept is None:
            assert self.output is not None, "a trace is kept or written"
            self.kept = read(self.output)
        return self.kept

    def write(self, output: Path) -> None:
        """Write the trace, and say in the report where. Raises OutputError."""
        write(self.trace, output)
        self.output = output
        self.report.output = {
            "path": str(output),
            "bytes": output.stat().st_size,
            "nodes": len(self.trace.nodes),
            "edges": len(self.trace.edges),
        }


def convert(
    host: PathLike | None = None,
    device: PathLike | None = None,
    output: PathLike | None = None,
    *,
    rank: int | None = None,
    strict: bool = False,
    steps: str | None = None,
    annotation: str | None = None,
    align_clocks: bool = False,
) -> Conversion:
    """Link a PyTorch host trace and the Kineto profile of the same run into one trace.

    Either file may be missing; either may be gzip or zstd. A file of both that another tool has
    linked is given as `host`, alone. `output` is written if given: protobuf,
    or JSON for a name that ends in `.json`; `.gz` and `.zst` compress. `rank` is told by the
    profile, else by the members of its process groups, else by the files' names, if not given.
    Damaged input is mended where that is possible, and the report says so; with `strict` it is
    refused. `steps` ("2..3", or "2") or `annotation` (a name) choose a window of both files.
    `align_clocks` shifts the times of devices whose clock is behind the host's.

    Raises ChakraError, which names file, place and remedy: FormatError for a damaged file or one
    of another kind, LinkError for files that do not belong together, OutputError if the output
    cannot be written.
    """
    if host is None and device is None:
        raise ChakraError("nothing to convert", remedy="Give a host trace, a profile, or both.")
    options = Options(strict, window(steps, annotation), align_clocks)
    if host is not None and device is None and is_linked(host):
        conversion = _convert_linked(host, rank, options)
    else:
        host_trace, profile = read_both(host, device, strict)
        processes = {} if profile is None else split_processes(profile)
        device_trace = _one_of(processes, host_trace)
        conversion = _link(host_trace, device_trace, rank, _rank_in_names(host, device), options)
    if output is not None:
        make_directory(Path(output).parent)
        conversion.write(Path(output))
    return conversion


def trace_set(conversions: list[Conversion]) -> TraceSet:
    """The traces of several conversions as one set; traces without a rank count by place."""
    return TraceSet(
        {
            place if c.trace.rank is None else c.trace.rank: c.trace
            for place, c in enumerate(conversions)
        }
    )


def _convert_linked(path: PathLike, rank: int | None, options: Options) -> Conversion:
    if options.window is not None:
        raise ChakraError(
            "no window can be cut out of a linked trace",
            path=path,
            remedy="Convert it whole, or give the host trace and the profile that it was made of.",
        )
    both = read_linked(path, strict=options.strict)
    found = link(
        both.host,
        both.device,
        rank,
        named_rank=rank_in_name(path),
        aligned=options.align_clocks,
        linked=both,
    )
    return Conversion(found.report, kept=found.trace)


def convert_pair(pair: Pair, options: Options) -> list[Conversion]:
    """The conversion of a pair; of a profile that was merged from several processes, of each."""
    if pair.host is not None and pair.device is None and is_linked(pair.host):
        return [_convert_linked(pair.host, pair.rank, options)]
    host = None if pair.host is None else read_host_trace(pair.host, options.strict)
    processes = (
        {0: None}
        if pair.device is None
        else split_processes(read_profile(pair.device, options.strict))
    )
    conversions = []
    for place, (pid, device) in enumerate(processes.items()):
        alone = len(processes) == 1
        mine = host if alone or (host is not None and host.pid == pid) else None
        rank = pair.rank if alone else None
        conversion = _link(mine, device, None, rank if alone else place, options)
        if mine is None or device is None:
            missing = "profile" if device is None else "host trace"
            conversion.report.warnings.append(f"no {missing} of the same process or rank was found")
        if not alone:
            conversion.report.warnings.append(
                f"the profile was merged from {len(processes)} processes; this is process {pid}"
            )
        conversions.append(conversion)
    return conversions


def _link(
    host: HostTrace | None,
    device: DeviceTrace | None,
    rank: int | None,
    named_rank: int | None,
    options: Options,
) -> Conversion:
    if options.window is not None:
        host = None if host is None else cut_host(host, options.window, device)
        device = None if device is None else cut_device(device, options.window)
    linked = link(host, device, rank, named_rank=named_rank, aligned=options.align_clocks)
    return Conversion(linked.report, kept=linked.trace)


def _one_of(processes: dict[int, DeviceTrace], host: HostTrace | None) -> DeviceTrace | None:
    """The only process of a profile, or that of the host trace."""
    if len(processes) < 2:
        return next(iter(processes.values()), None)
    if host is not None and host.pid in processes:
        return processes[host.pid]
    device = next(iter(processes.values()))
    pids = ", ".join(map(str, processes))
    raise ChakraError(
        f"profiles of {len(processes)} processes were merged into this file ({pids})",
        path=device.path,
        remedy="Convert it to a directory (chakra convert FILE -o DIR): each process is a rank.",
    )


def _rank_in_names(*paths: PathLike | None) -> int | None:
    named = [
        rank for path in paths if path is not None and (rank := rank_in_name(path)) is not None
    ]
    return named[0] if named and len(set(named)) == 1 else None
