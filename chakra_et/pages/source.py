"""What a page is made of: ETs or recordings, and the account of their conversion."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from chakra_et.conversion import trace_set
from chakra_et.converters.format import View
from chakra_et.directory import convert_files
from chakra_et.errors import ChakraError
from chakra_et.files import read_set
from chakra_et.inputs import open_input
from chakra_et.model import TraceSet
from chakra_et.pages.account import Manifest, Report, manifest_in, reports_in
from chakra_et.search import names_in, trace_files


@dataclass
class Opened:
    """Traces by rank, the reports of their conversions as `docs/report.md` has them, from where
    these are (empty where no report was found), and the manifests of the recording.
    """

    traces: TraceSet
    reports: list[Report] = field(default_factory=list)
    told_by: str = ""
    manifests: list[Manifest] = field(default_factory=list)


def open_run(source: Path) -> Opened:
    """Read the ETs of a file or directory; where there are none, convert the recordings in it.

    Raises ChakraError as reading and converting do.
    """
    manifests = _manifests(source)
    if _holds_ets(source):
        return Opened(read_set(source), *_kept_reports(source), manifests)
    conversions = convert_files(source, None)
    reports = [Report.of(conversion.report.as_dict()) for conversion in conversions]
    return Opened(trace_set(conversions), reports, "this conversion", manifests)


def _holds_ets(source: Path) -> bool:
    if names_in(source) is None:
        return open_input(source).view is View.TRACE
    try:
        return bool(trace_files(source))
    except ChakraError:
        # Nothing, or recordings: converting them says what is wrong.
        return False


def _kept_reports(source: Path) -> tuple[list[Report], str]:
    """The reports of a conversion in a directory, or in that of a file, and what holds them."""
    folder = source if source.is_dir() else source.parent
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            reports = reports_in(path.read_bytes()) if open_input(path).format.own else []
        except (ChakraError, OSError):
            continue
        if reports:
            return reports, path.name
    return [], ""


def _manifests(source: Path) -> list[Manifest]:
    """The manifests of a recording in a directory, or in that above it, where its traces are."""
    folder = source if source.is_dir() else source.parent
    for place in (folder, folder.parent):
        found: list[Manifest] = []
        for path in sorted(place.glob("manifest.*.json")):
            with suppress(OSError):
                found += manifest_in(path.read_bytes())
        if found:
            return found
    return []
