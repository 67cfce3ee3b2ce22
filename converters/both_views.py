"""The two views of one rank, read from two files, as one recording."""

from __future__ import annotations

from chakra_et.converters.pytorch import own_nodes
from chakra_et.recording import DeviceTrace, HostTrace, Recording


def recording_of(host: HostTrace | None, device: DeviceTrace | None) -> Recording:
    """Both views, without what forked processes wrote into the host's file.

    Times that a tool has added to a host trace count where there is no profile.
    """
    if host is None:
        return Recording(device=device)
    host = own_nodes(host, device)
    if device is not None or not host.is_timed:
        return Recording(host, device)
    from chakra_et.converters.linked import with_own_times

    return with_own_times(host)
