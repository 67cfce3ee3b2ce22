"""Converting all ranks of a run: several at the same time, each by a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from chakra_et.conversion import Conversion, Options, PathLike, convert_pair
from chakra_et.errors import ChakraError
from chakra_et.io.aside import Aside
from chakra_et.io.memory import available_bytes
from chakra_et.io.output import move_output, staging_directory
from chakra_et.io.source import plain_bytes
from chakra_et.linker.window import window
from chakra_et.pairing import Pair, pair_directory

_MEMORY_FACTOR: Final = 2
"""Memory that a conversion may take, in sizes of its input: 1.4 for a pair of 193 MB, and room."""
_LARGE_BYTES: Final = 24 << 20
"""Below this, a process takes longer to begin than the conversion takes."""
_NAMED: Final = 5
"""So many of the files that are passed over are named."""


def convert_directory(
    directory: PathLike,
    output_directory: PathLike | None,
    *,
    prefix: str = "trace",
    strict: bool = False,
    steps: str | None = None,
    annotation: str | None = None,
    align_clocks: bool = False,
    jobs: int | None = None,
) -> list[Conversion]:
    """Convert every pair of host trace and profile in a directory, one for each rank.

    An archive stands for the directory that was packed into it, and a profile that was merged from
    several processes for the profiles of each. Options are those of `convert`.

    Files are paired by process id, else by the rank in metadata or name; a file without a
    counterpart is converted alone, and one that is neither is named in a warning. Writes
    `{prefix}.{rank}.et` into `output_directory`, which is made if needed, and keeps no trace in
    memory; without one, nothing is written and all are kept.

    `jobs` pairs are converted at the same time, by default as many as cores and free memory allow;
    the result does not depend on it. Raises ChakraError as `convert` does, and when there is
    nothing to convert or two pairs have one rank; then nothing is written.
    """
    if jobs is not None and jobs < 1:
        raise ChakraError(f"{jobs} jobs", remedy="Give --jobs a number from 1 on.")
    options = Options(strict, window(steps, annotation), align_clocks)
    pairs, others = pair_directory(directory)
    jobs = min(jobs or _sensible_jobs(pairs), len(pairs))
    if output_directory is None:
        found = sorted(_numbered(pairs, _convert_all(pairs, options, None, jobs)))
        return _with_others([conversion for _, conversion in found], others)
    target = Path(output_directory)
    with staging_directory(target) as staging:
        found = sorted(_numbered(pairs, _convert_all(pairs, options, staging, jobs)))
        for number, conversion in found:
            _publish(conversion, target / f"{prefix}.{number}.et")
    return _with_others([conversion for _, conversion in found], others)


def _convert_all(
    pairs: list[Pair], options: Options, staging: Path | None, jobs: int
) -> list[list[Conversion]]:
    """The conversions of each pair. Raises the first error, after all were tried."""
    work = [
        (pair, options, None if staging is None else staging / str(place))
        for place, pair in enumerate(pairs)
    ]
    if jobs == 1:
        outcomes = [_tried(*item) for item in work]
    else:
        # Threads only wait here; the work is done by an interpreter of its own for each pair.
        running: list[Aside] = []
        with ThreadPoolExecutor(jobs) as pool:
            try:
                outcomes = list(pool.map(lambda item: _tried_aside(running, *item), work))
            except BaseException:
                for aside in running:
                    aside.end()
                raise
    converted = [outcome for outcome in outcomes if not isinstance(outcome, ChakraError)]
    for pair, outcome in zip(pairs, outcomes, strict=True):
        if isinstance(outcome, ChakraError):
            raise _explained(outcome, pair, len(converted), len(pairs))
    return converted


Outcome = list[Conversion] | ChakraError


def _tried(pair: Pair, options: Options, stage: Path | None) -> Outcome:
    try:
        return convert_and_write(pair, options, stage)
    except ChakraError as error:
        return error


def _tried_aside(running: list[Aside], pair: Pair, options: Options, stage: Path | None) -> Outcome:
    """As `_tried`, by another interpreter, which joins those that are `running`."""
    try:
        with Aside(__name__, "convert_and_write", pair, options, stage) as aside:
            running.append(aside)
            found: list[Conversion] = aside.result()
            return found
    except ChakraError as error:
        return error


def convert_and_write(pair: Pair, options: Options, stage: Path | None) -> list[Conversion]:
    """The conversions of a pair; with `stage`, written under such names and not kept in memory."""
    conversions = convert_pair(pair, options)
    if stage is not None:
        for place, conversion in enumerate(conversions):
            conversion.write(stage.with_name(f"{stage.name}.{place}.et"))
            conversion.kept = None
    return conversions


def _explained(error: ChakraError, pair: Pair, converted: int, count: int) -> ChakraError:
    """The error of one pair, which names a file and says what became of the other pairs."""
    others = f" ({converted} of {count} pairs could be converted, nothing was written)"
    return type(error)(
        error.problem.rstrip(".") + others * (count > 1),
        path=error.path or pair.host or pair.device,
        place=error.place,
        remedy=error.remedy,
    )


def _numbered(
    pairs: list[Pair], conversions: list[list[Conversion]]
) -> Iterable[tuple[int, Conversion]]:
    """Each conversion with its rank, or its place where it has none."""
    found: dict[int, Conversion] = {}
    for pair, of_pair in zip(pairs, conversions, strict=True):
        for conversion in of_pair:
            rank = conversion.report.rank
            number = len(found) if rank is None else rank
            if number in found:
                raise ChakraError(
                    f"two pairs of files are of rank {number}",
                    path=pair.host or pair.device,
                    remedy="Put the files of each run into a directory of their own.",
                )
            found[number] = conversion
    return found.items()


def _with_others(conversions: list[Conversion], others: list[Path]) -> list[Conversion]:
    """The conversions, the first of which tells of the files that were passed over."""
    if others:
        names = ", ".join(path.name for path in others[:_NAMED])
        conversions[0].report.warnings.append(
            f"{len(others)} files of the directory are neither host traces nor profiles and were "
            f"passed over: {names}{' and more' * (len(others) > _NAMED)}"
        )
    return conversions


def _publish(conversion: Conversion, target: Path) -> None:
    assert conversion.output is not None
    assert conversion.report.output is not None
    move_output(conversion.output, target)
    conversion.output = target
    conversion.report.output["path"] = str(target)


def _sensible_jobs(pairs: list[Pair]) -> int:
    """As many as cores and free memory allow; one where the files are small."""
    sizes = [sum(plain_bytes(path) for path in (p.host, p.device) if path) for p in pairs]
    largest = max(sizes)
    if largest < _LARGE_BYTES:
        return 1
    cores = os.cpu_count() or 1
    return max(1, min(cores, int(available_bytes() / (_MEMORY_FACTOR * largest))))
