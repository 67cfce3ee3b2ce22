"""Convert a synthetic run of many ranks: workers compared, and a run that is killed and resumed.

    python tools/bench_ranks.py --ranks 64 --operations 2000        # one worker against two
    python tools/bench_ranks.py --ranks 1024 --kill 2               # killed twice, then resumed

Ranks have the names of torch's handler for TensorBoard, `HOST_PID.TIME.pt.trace.json`, and host
traces that only the process id ties to them. Compared are wall and processor time of
`chakra convert`, alternating, as ratios. With `--kill`, one file is damaged, the run is ended by
SIGKILL so often at random moments, and what is there in the end is held against an undisturbed run,
byte for byte.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pairs import make_pair
from pairs.text import PID, WORLD

DAMAGED = 7
KINDS = 8


def make_ranks(folder: Path, ranks: int, operations: int) -> None:
    """The files of so many ranks, each with so many host operations; some ranks are alike."""
    folder.mkdir()
    made = folder.parent / "made"
    for seed in range(min(ranks, KINDS)):
        make_pair(operations, seed, made / str(seed), False)
    for rank in range(ranks):
        host, device = (
            (made / str(rank % KINDS) / name).read_text() for name in ("host.json", "device.json")
        )
        pid = 1_000_000 + 3 * rank
        told = f'"rank": {rank}, "world_size": {ranks}'
        device = device.replace(f'"rank": 0, "world_size": {WORLD}', told)
        profile = f"node{rank // 8}_{pid}.{1_700_000_000_000_000_000 + rank}.pt.trace.json"
        (folder / profile).write_text(device.replace(str(PID), str(pid)))
        name = f"et_{(rank * 7919) % 100_003}.json"
        (folder / name).write_text(host.replace(str(PID), str(pid)))
    shutil.rmtree(made)


def command(source: Path, output: Path, *words: str) -> list[str]:
    """`chakra convert` with these words."""
    verb = [sys.executable, "-m", "chakra_et.cli", "convert", str(source), "-o", str(output)]
    return [*verb, "-q", *words]


def timed(words: list[str]) -> tuple[float, float]:
    """Wall and processor time of a command, in seconds, with all that it starts."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, check=True)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(folder: Path, source: Path, runs: int) -> None:
    """One worker against two, alternating."""
    ratios = []
    for run in range(runs):
        (one, one_cpu), (two, two_cpu) = (
            timed(command(source, folder / f"out.{jobs}.{run}", "--jobs", str(jobs)))
            for jobs in (1, 2)
        )
        ratios.append(one / two)
        print(
            f"1 worker {one:.2f} s ({one_cpu:.2f} s of processors), "
            f"2 workers {two:.2f} s ({two_cpu:.2f} s): {one / two:.2f} x"
        )
    print(f"median {statistics.median(ratios):.2f} x, {min(ratios):.2f} to {max(ratios):.2f}")


def kill_and_resume(folder: Path, source: Path, kills: int) -> None:
    """A run that is killed and resumed, against one that is not."""
    profile = sorted(source.glob("*.pt.trace.json"))[DAMAGED]
    profile.write_bytes(b"\0" * 4096)
    begin = time.monotonic()
    whole = subprocess.run(command(source, folder / "whole"), capture_output=True, text=True)
    took = time.monotonic() - begin
    print(f"undisturbed: exit code {whole.returncode} after {took:.1f} s\n{whole.stderr}")
    for kill in range(kills):
        running = subprocess.Popen(command(source, folder / "killed", "--resume"))
        time.sleep(took * random.uniform(0.2, 0.8) / kills)
        running.send_signal(signal.SIGKILL)
        running.wait()
        done = len(list((folder / "killed").glob(".chakra-et/trace/*/record")))
        print(f"killed {kill + 1}: {done} ranks were done")
    begin = time.monotonic()
    last = subprocess.run(command(source, folder / "killed", "--resume"), capture_output=True)
    print(f"resumed: exit code {last.returncode} after {time.monotonic() - begin:.1f} s")
    first, second = (
        {path.name: path.read_bytes() for path in (folder / name).glob("*.et")}
        for name in ("whole", "killed")
    )
    print(f"{len(first)} and {len(second)} ranks: {'equal' if first == second else 'DIFFERENT'}")
    sys.exit(first != second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--operations", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kill", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_ranks(folder / "run", asked.ranks, asked.operations)
        if asked.kill:
            kill_and_resume(folder, folder / "run", asked.kill)
        compare(folder, folder / "run", asked.runs)


if __name__ == "__main__":
    main()
