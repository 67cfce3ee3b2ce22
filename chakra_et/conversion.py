"""Converting: files in, a trace and a report out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from chakra_et.converters.kineto import DeviceTrace, read_device
from chakra_et.converters.pytorch import HostTrace, read_host
from chakra_et.errors import ChakraError, FormatError
from chakra_et.files import write
from chakra_et.io.output import make_directory
from chakra_et.io.sniff import FileKind, sniff
from chakra_et.linker import link
from chakra_et.linker.report import Report
from chakra_et.model import Trace, TraceSet
from chakra_et.pairing import Pair, pair_directory, rank_in_name

PathLike: TypeAlias = "str | Path"


@dataclass
class Conversion:
    """A trace, the report of how it was made, and where it was written (None if it was not)."""

    trace: Trace
    report: Report
    output: Path | None = None


def convert(
    host: PathLike | None = None,
    device: PathLike | None = None,
    output: PathLike | None = None,
    *,
    rank: int | None = None,
) -> Conversion:
    """Link a PyTorch host trace and the Kineto profile of the same run into one trace.

    Either file may be missing; either may be gzip or zstd. `output` is written if given: protobuf,
    or JSON for a name that ends in `.json`; `.gz` and `.zst` compress. `rank` is told by the
    profile, else by the files' names, if not given.

    Raises ChakraError, which names file, place and remedy: FormatError for a damaged file or one
    of another kind, LinkError for files that do not belong together, OutputError if the output
    cannot be written.
    """
    if host is None and device is None:
        raise ChakraError("nothing to convert", remedy="Give a host trace, a profile, or both.")
    host_trace = None if host is None else _read_host(host)
    device_trace = None if device is None else _read_device(device)
    linked = link(host_trace, device_trace, _rank(rank, device_trace, host, device))
    conversion = Conversion(linked.trace, linked.report)
    if output is not None:
        _write(conversion, Path(output))
    return conversion


def convert_directory(
    directory: PathLike, output_directory: PathLike | None, *, prefix: str = "trace"
) -> list[Conversion]:
    """Convert every pair of host trace and profile in a directory, one for each rank.

    Files are paired by process id, else by the rank in metadata or name; a file without a
    counterpart is converted alone. Writes `{prefix}.{rank}.et` into `output_directory`, which is
    made if needed; without one, nothing is written. Raises ChakraError as `convert` does, and when
    there is nothing to convert or two pairs have one rank.
    """
    conversions: dict[int, Conversion] = {}
    for place, pair in enumerate(pair_directory(directory)):
        conversion = _convert_pair(pair)
        rank = conversion.trace.rank
        number = place if rank is None else rank
        if number in conversions:
            raise ChakraError(
                f"two pairs of files are of rank {number}",
                path=pair.host or pair.device,
                remedy="Put the files of each run into a directory of their own.",
            )
        conversions[number] = conversion
    if output_directory is not None:
        for number, conversion in sorted(conversions.items()):
            _write(conversion, Path(output_directory) / f"{prefix}.{number}.et")
    return [conversion for _, conversion in sorted(conversions.items())]


def trace_set(conversions: list[Conversion]) -> TraceSet:
    """The traces of several conversions as one set; traces without a rank count by place."""
    return TraceSet(
        {
            place if c.trace.rank is None else c.trace.rank: c.trace
            for place, c in enumerate(conversions)
        }
    )


def _convert_pair(pair: Pair) -> Conversion:
    conversion = convert(pair.host, pair.device, rank=pair.rank)
    if pair.host is None or pair.device is None:
        missing = "profile" if pair.device is None else "host trace"
        conversion.report.warnings.append(f"no {missing} of the same process or rank was found")
    return conversion


def _rank(
    given: int | None,
    device: DeviceTrace | None,
    *paths: PathLike | None,
) -> int | None:
    if given is not None:
        return given
    info = {} if device is None else device.metadata.get("distributedInfo")
    if isinstance(info, dict) and info.get("rank") is not None:
        return None
    named = [
        rank for path in paths if path is not None and (rank := rank_in_name(path)) is not None
    ]
    return named[0] if named and len(set(named)) == 1 else None


def _read_host(path: PathLike) -> HostTrace:
    _expect(path, FileKind.HOST)
    return read_host(path)


def _read_device(path: PathLike) -> DeviceTrace:
    _expect(path, FileKind.DEVICE)
    return read_device(path)


def _expect(path: PathLike, wanted: FileKind) -> None:
    kind = sniff(path)
    if kind is not wanted:
        remedies = {
            (FileKind.DEVICE, FileKind.HOST): "Pass it as the device trace (--device).",
            (FileKind.HOST, FileKind.DEVICE): "Pass it as the host trace (--host).",
        }
        raise FormatError(
            f"this is a file of kind {kind.value}, where a {wanted.value} is wanted",
            path=path,
            remedy=remedies.get((kind, wanted), "It is converted already; read it as it is."),
        )


def _write(conversion: Conversion, output: Path) -> None:
    make_directory(output.parent)
    write(conversion.trace, output)
    conversion.output = output
    conversion.report.output = {
        "path": str(output),
        "bytes": output.stat().st_size,
        "nodes": len(conversion.trace.nodes),
        "edges": len(conversion.trace.edges),
    }
