"""What a profile's head says of the run: rank, process groups, machine, devices."""

from __future__ import annotations

from chakra_et.converters.process_groups import group_entry
from chakra_et.recording import DeviceTrace
from chakra_et.recording.numbers import integer, rank_number

_SOURCE = "the profile's distributedInfo"


def read_metadata(device: DeviceTrace) -> None:
    """Take what is known by a name out of the metadata; what stays there is carried."""
    metadata = device.metadata
    info = metadata.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    device.rank = rank_number(info.get("rank"))
    device.world_size = integer(info.get("world_size"))
    configs = info.get("pg_config")
    found = (
        group_entry(entry, _SOURCE) for entry in (configs if isinstance(configs, list) else [])
    )
    device.groups = [entry for entry in found if entry is not None]
    machine = metadata.get("host_name")
    device.machine = machine if isinstance(machine, str) else None
    device.trace_name = metadata.pop("traceName", None)
    device.device_properties = metadata.pop("deviceProperties", None)
    metadata.pop("baseTimeNanoseconds", None)
