"""Converting: files in, a trace and a report out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from chakra_et.converters.both_views import recording_of
from chakra_et.converters.format import View
from chakra_et.converters.kineto import split_processes
from chakra_et.errors import ChakraError
from chakra_et.files import read, write
from chakra_et.inputs import Input, open_input, read_both
from chakra_et.io.memory import collection_paused, give_back
from chakra_et.io.output import make_directory, size_of
from chakra_et.io.protected import inputs_protected, refuse_input
from chakra_et.linker import link
from chakra_et.linker.communication.accounts import Told
from chakra_et.linker.guesses.other_ranks import Verdict
from chakra_et.linker.output.report import Report
from chakra_et.linker.window import Window, cut_device, cut_host, window
from chakra_et.model import Trace, TraceSet
from chakra_et.pairing import Pair
from chakra_et.recording import DeviceTrace, HostTrace

PathLike: TypeAlias = "str | Path"


class Options(msgspec.Struct, frozen=True):
    """What is asked for beside the files."""

    strict: bool = False
    window: Window | None = None
    align_clocks: bool = False
    told: Mapping[int, Mapping[int, Told]] | None = None
    """What ranks tell of each other's transfers, as `settle` has it."""
    verdicts: Mapping[int, Verdict] | None = None
    """What ranks say of each other's inferred edges, as `judged_by_others` has it."""

    @property
    def chosen(self) -> Callable[[str], bool] | None:
        """Which annotations a window is of, by their names; None for all that there is."""
        return None if self.window is None else self.window.chosen


class Conversion(msgspec.Struct):
    """How a trace was made (the report), where it was written (None if it was not), and the trace.

    `kept` is the trace while it is in memory. A conversion to a directory keeps none: `load` reads
    the file.
    """

    report: Report
    output: Path | None = None
    kept: Trace | None = None

    @property
    def trace(self) -> Trace:
        """The trace in memory. Raises ChakraError where it was only written."""
        if self.kept is None:
            raise ChakraError(
                "this trace was written and is no longer in memory",
                path=self.output,
                remedy="Call load() of the conversion: it reads the file.",
            )
        return self.kept

    def load(self) -> Trace:
        """The trace in memory, or else the one in the file `output`, read anew each time."""
        if self.kept is not None:
            return self.kept
        assert self.output is not None, "a trace is kept or written"
        return read(self.output)

    def write(self, output: Path) -> None:
        """Write the trace, and say in the report where. Raises OutputError."""
        give_back()  # What the trace was made of is gone.
        write(self.trace, output)
        self.output = output
        self.report.output = {
            "path": str(output),
            "bytes": size_of(output),
            "nodes": len(self.trace.nodes),
            "edges": len(self.trace.edges),
        }
        if self.report.trace is not None and output.is_file():
            from chakra_et.rewriting import check_rewritten

            check_rewritten(self.report, self.trace, output)


@collection_paused()
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
    with inputs_protected(host, device):
        if output is not None:
            refuse_input(output)
        conversion = convert_one(_pair(host, device, rank), options)
        if output is not None:
            make_directory(Path(output).parent)
            conversion.write(Path(output))
        return conversion


def trace_set(conversions: list[Conversion]) -> TraceSet:
    """The traces of several conversions as one set; traces without a rank count by place."""
    traces = [conversion.load() for conversion in conversions]
    return TraceSet({i if t.rank is None else t.rank: t for i, t in enumerate(traces)})


def _pair(host: PathLike | None, device: PathLike | None, rank: int | None) -> Pair:
    """The files of `convert`; what holds both views is given as `host`, alone."""
    first = None if host is None else open_input(host)
    second = None if device is None else open_input(device)
    if first is not None and second is None and first.view in (View.BOTH, View.TRACE):
        return Pair(rank=first.rank, whole=first, asked=rank)
    named = {file.rank for file in (first, second) if file is not None} - {None}
    return Pair(first, second, rank=named.pop() if len(named) == 1 else None, asked=rank)


@collection_paused()
def convert_one(pair: Pair, options: Options) -> Conversion:
    """The conversion of a pair to one trace. Raises ChakraError where it holds several processes.

    Of a profile of several processes, that of the host trace counts. Other ranks do not judge it.
    """
    if pair.whole is not None:
        return _convert_whole(pair.whole, pair, options, judged=False)
    host, profile = read_both(pair.host, pair.device, options.strict, options.chosen)
    device = _one_of({} if profile is None else split_processes(profile), host)
    del profile
    return _link(host, device, pair.asked, pair.rank, options, judged=False)


@collection_paused()
def convert_pair(pair: Pair, options: Options) -> list[Conversion]:
    """The conversion of a pair; of a profile that was merged from several processes, of each."""
    if pair.whole is not None:
        return [_convert_whole(pair.whole, pair, options, judged=True)]
    host, profile = read_both(pair.host, pair.device, options.strict, options.chosen)
    processes = {0: None} if profile is None else split_processes(profile)
    conversions = []
    for place, (pid, device) in enumerate(processes.items()):
        alone = len(processes) == 1
        mine = host if alone or (host is not None and host.pid == pid) else None
        rank = pair.rank if alone else None
        asked = pair.asked if alone else None
        conversion = _link(mine, device, asked, rank if alone else place, options, judged=True)
        if mine is None or device is None:
            missing = "profile" if device is None else "host trace"
            conversion.report.warnings.append(f"no {missing} of the same process or rank was found")
        if not alone:
            conversion.report.warnings.append(
                f"the profile was merged from {len(processes)} processes; this is process {pid}"
            )
        conversions.append(conversion)
    return conversions


def _convert_whole(given: Input, pair: Pair, options: Options, judged: bool) -> Conversion:
    """The conversion of a file that holds all there is of a rank."""
    if options.window is not None:
        raise ChakraError(
            f"no window can be cut from {given.format.called}",
            path=given.path,
            remedy="Convert it whole, or give the host trace and the profile that it was made of.",
        )
    content = given.read(options.strict)
    if given.view is View.TRACE:
        if pair.asked is not None:
            raise ChakraError(
                "--rank is for recordings", path=given.path, remedy="An ET keeps its own rank."
            )
        from chakra_et.rewriting import rewrite_report

        return Conversion(rewrite_report(given, content), kept=content)
    linked = link(
        content, pair.asked, named_rank=pair.rank, aligned=options.align_clocks, judged=judged
    )
    return Conversion(linked.report, kept=linked.trace)


def _link(
    host: HostTrace | None,
    device: DeviceTrace | None,
    rank: int | None,
    named_rank: int | None,
    options: Options,
    judged: bool,
) -> Conversion:
    if options.window is not None:
        host = None if host is None else cut_host(host, options.window, device)
        device = None if device is None else cut_device(device, options.window)
    linked = link(
        recording_of(host, device),
        rank,
        named_rank=named_rank,
        aligned=options.align_clocks,
        told=options.told,
        verdicts=options.verdicts,
        judged=judged,
    )
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
