"""Which files belong together: the host trace and the profile of each rank."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

import msgspec

from chakra_et.converters.format import View
from chakra_et.errors import ChakraError
from chakra_et.inputs import Input, with_ranks_of_axes
from chakra_et.search import PassedOver, find_inputs


class Pair(msgspec.Struct, frozen=True):
    """The files of one rank; one of them may be missing. `rank` is that of the files' names.

    `whole` stands alone: it is a file that holds all there is of a rank, a linked trace or an ET.
    `asked` is the rank that the user gives, which counts first.
    """

    host: Input | None = None
    device: Input | None = None
    rank: int | None = None
    whole: Input | None = None
    asked: int | None = None

    @property
    def files(self) -> list[Input]:
        """The files that there are."""
        return [file for file in (self.host, self.device, self.whole) if file is not None]

    @property
    def complete(self) -> bool:
        """Whether both views are there."""
        return self.host is not None and self.device is not None


def find_pairs(
    sources: Iterable[str | Path], skip: Path | None = None
) -> tuple[list[Pair], list[PassedOver]]:
    """The pairs in files, directories and archives, and the files that are passed over.

    Directories are descended, but not into `skip`. Raises ChakraError where there is no trace.
    """
    found = find_inputs(sources, skip)
    pairs, strays = pair_inputs(found.inputs)
    return pairs, found.passed_over + strays


def pair_inputs(inputs: Iterable[Input]) -> tuple[list[Pair], list[PassedOver]]:
    """Pairs of host trace and profile, in order of rank, and the host traces of no rank.

    Pairs have one process id; where ids do not tell, one rank; where that does not, one
    directory; where there is but one of each kind, they are a pair, unless process ids tell of
    other pairs, and that these are of two processes. Raises ChakraError where several host traces
    are of the process of one profile.
    """
    found = with_ranks_of_axes(list(inputs))
    hosts = [item for item in found if item.view is View.HOST]
    devices = [item for item in found if item.view is View.DEVICE]
    pairs = [
        Pair(rank=item.rank, whole=item) for item in found if item.view in (View.BOTH, View.TRACE)
    ]
    keys: list[Callable[[Input], Hashable]] = [
        lambda c: c.pid and (c.pid, c.rank),
        lambda c: c.pid,
        lambda c: c.rank,
    ]
    left_over: list[Callable[[Input], Hashable]] = [lambda c: c.path.parent, lambda c: True]
    for key in keys + left_over:
        matches = _matches(hosts, devices, key)
        if key in left_over and any(_of_one_process(pair.host, pair.device) for pair in pairs):
            matches = [match for match in matches if not _of_two_processes(*match)]
        for host, device in matches:
            pairs.append(Pair(host, device, host.rank if device.rank is None else device.rank))
        taken = {id(item) for match in matches for item in match}
        hosts = [host for host in hosts if id(host) not in taken]
        devices = [device for device in devices if id(device) not in taken]
    _refuse_ambiguous(hosts, devices)
    strays = _strays(hosts, pairs)
    pairs += [Pair(host, None, host.rank) for host in hosts if host not in strays]
    pairs += [Pair(None, device, device.rank) for device in devices]
    pairs.sort(key=lambda p: (p.rank is None, p.rank or 0, str(p.files[0].path)))
    return pairs, [PassedOver(host.name, reason) for host, reason in strays.items()]


def _of_one_process(host: Input | None, device: Input | None) -> bool:
    """Whether both files are there and tell the same process id."""
    if host is None or device is None:
        return False
    return bool(host.pid) and host.pid == device.pid


def _of_two_processes(host: Input, device: Input) -> bool:
    """Whether both files tell a process id, and not the same one."""
    return bool(host.pid and device.pid) and host.pid != device.pid


def _refuse_ambiguous(hosts: list[Input], devices: list[Input]) -> None:
    """Raise ChakraError where several host traces are of the process of one profile."""
    for device in devices:
        alike = [host for host in hosts if host.pid and host.pid == device.pid]
        if len(alike) > 1 and sum(other.pid == device.pid for other in devices) == 1:
            raise ChakraError(
                f"this host trace and {alike[0].name} are both of process {device.pid}, as is "
                f"the profile {device.name}",
                path=alike[1].path,
                remedy="Give the host trace of the same recording only.",
            )


def _matches(
    hosts: list[Input], devices: list[Input], key: Callable[[Input], Hashable]
) -> list[tuple[Input, Input]]:
    """Pairs in which both sides are the only ones of their kind with that key."""

    def only(items: list[Input]) -> dict[Hashable, Input]:
        found: dict[Hashable, list[Input]] = {}
        for item in items:
            found.setdefault(key(item), []).append(item)
        return {k: same[0] for k, same in found.items() if k is not None and len(same) == 1}

    mine, theirs = only(hosts), only(devices)
    return [(mine[k], theirs[k]) for k in mine if k in theirs]


def _strays(hosts: list[Input], pairs: list[Pair]) -> dict[Input, str]:
    """Host traces without a profile that are of no rank of the run, and why.

    Beside complete pairs, such a trace is a rank of its own only if there can be one more.
    """
    complete = [pair for pair in pairs if pair.complete]
    if not complete:
        return {}
    worlds = [p.device.world_size for p in complete if p.device and p.device.world_size]
    world = max(worlds, default=None)
    taken = {pair.rank for pair in complete}
    strays = {}
    for host in hosts:
        if host.rank is not None and host.rank in taken:
            strays[host] = f"a second host trace of rank {host.rank}"
        elif world is not None and len(complete) >= world:
            strays[host] = f"a host trace without a profile; the run has {world} ranks"
        elif host.rank is None and world is None:
            strays[host] = "a host trace without a profile, of unknown rank"
    return strays
