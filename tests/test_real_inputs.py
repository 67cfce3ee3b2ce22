"""Every listed file of the real data is read or converted, and its report adds up."""

from __future__ import annotations

from pathlib import Path

import pytest
from accounts import converted
from places import DATA, EXAMPLES, each_of
from traces_index import trace_files

import chakra_et
from chakra_et import ChakraError
from chakra_et.converters.format import View
from chakra_et.inputs import open_input
from chakra_et.linker.output.report import RESTS

FILES = [path.relative_to(DATA).as_posix() for path in trace_files(DATA)]
PAIRS = [
    name
    for name in FILES
    if Path(name).name.startswith("host") and (DATA / name.replace("host", "device")).is_file()
]


@pytest.mark.parametrize("name", each_of(FILES))
def test_every_file_is_read_whole(name: str) -> None:
    path = DATA / name
    view = open_input(path).view
    if view is View.TRACE:
        assert len(chakra_et.read(path).nodes) > 0
        return
    assert view in (View.HOST, View.DEVICE)
    host, device = (path, None) if view is View.HOST else (None, path)
    report = converted(host, device).report
    assert report.repairs == []
    assert report.added.keys() <= {RESTS}
    assert report.host_nodes.kept == report.host_nodes.total
    assert report.device_events.kept == report.device_events.total


@pytest.mark.parametrize("name", each_of(PAIRS))
def test_every_pair_converts(name: str) -> None:
    report = converted(DATA / name, DATA / name.replace("host", "device")).report
    assert report.joins[0].matched >= 0.9 * report.joins[0].of
    assert report.device_events.kept == report.device_events.total


def test_files_of_two_ranks_are_no_pair(data: Path) -> None:
    with pytest.raises(ChakraError, match="do not belong together"):
        converted(data / "host_et/resnet_rank1_1.1.0.json.gz", data / "resnet_rfid/device.json.gz")


@pytest.mark.parametrize("step", ["simple_add", "mlp"])
def test_every_cut_of_an_example_is_read_as_far_as_it_goes(tmp_path: Path, step: str) -> None:
    name = "host.json.gz" if step == "simple_add" else "host.0.json.gz"
    content = b"".join(chakra_et.io.source.blocks(EXAMPLES / step / name))
    whole = converted(EXAMPLES / step / name).report.host_nodes.kept
    kept = []
    for cut in range(1000, len(content), len(content) // 17):
        path = tmp_path / "cut.json"
        path.write_bytes(content[:cut])
        kept.append(converted(path).report.host_nodes.kept)
    assert kept == sorted(kept)
    assert kept[-1] >= 0.9 * whole
