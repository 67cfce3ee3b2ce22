"""Inputs and outputs by URL give what files of this machine give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from command import chakra
from many_ranks import FIRST_PID, run_of, traces
from moto.server import ThreadedMotoServer

import chakra_et
from chakra_et import ChakraError
from chakra_et.jobs import job

BUCKET = "traces"
BAD = f"node_{FIRST_PID + 1}.1700000000000000001.pt.trace.json"


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """A server of S3 on this machine."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir(BUCKET)
        yield
    server.stop()


@pytest.fixture(params=["s3", "memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A URL below which there is nothing."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://{BUCKET}/{tmp_path.name}"
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"file://{tmp_path}/store"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("many") / "run", 4)


@pytest.fixture(scope="module")
def right(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the run gives on this machine."""
    folder = tmp_path_factory.mktemp("right")
    chakra_et.convert_files(run, folder)
    return traces(folder)


def put(run: Path, url: str) -> str:
    system, path = fsspec.core.url_to_fs(url)
    for file in run.iterdir():
        system.makedirs(path, exist_ok=True)
        system.pipe_file(f"{path}/{file.name}", file.read_bytes())
    return url


def objects(url: str) -> dict[str, bytes]:
    """The traces at a URL."""
    system, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    names = [name for name in system.ls(path, detail=False) if name.endswith(".et")]
    return {name.rsplit("/", 1)[-1]: system.cat_file(name) for name in sorted(names)}


def test_from_a_url_to_a_url(place: str, run: Path, right: dict[str, bytes]) -> None:
    source = put(run, f"{place}/run")
    done = chakra("convert", source, "-o", f"{place}/out", "--jobs", 2)
    assert done.code == 0, done.errors
    assert objects(f"{place}/out") == right
    assert f"{place}/out: 4 ranks" in done.output


def test_reports_and_errors_name_urls(place: str, run: Path, tmp_path: Path) -> None:
    source = put(run, f"{place}/run")
    system, path = fsspec.core.url_to_fs(source)
    system.pipe_file(f"{path}/{BAD}", b'{"schemaVersion": 1, "traceEvents": 5}')
    found = chakra_et.convert_files(source, tmp_path / "out", keep_going=True, jobs=1)
    assert found[0].report.device is not None
    assert found[0].report.device["path"].startswith(f"{source}/node_")
    (failure,) = found.failures
    assert str(failure.error).startswith(f"{source}/{BAD}: ")


def test_a_run_at_a_url_is_resumed(
    place: str, run: Path, right: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = put(run, f"{place}/run"), f"{place}/out"
    real, converted = job.convert_pair, list[str]()

    def failing(pair: Any, options: Any) -> Any:
        if len(converted) == 2:
            raise KeyboardInterrupt
        converted.append(pair.files[0].name)
        return real(pair, options)

    monkeypatch.setattr(job, "convert_pair", failing)
    with pytest.raises(KeyboardInterrupt):
        chakra_et.convert_files(source, target, jobs=1)
    del converted[:]

    def counting(pair: Any, options: Any) -> Any:
        converted.append(pair.files[0].name)
        return real(pair, options)

    monkeypatch.setattr(job, "convert_pair", counting)
    for _ in range(2):
        chakra_et.convert_files(source, target, jobs=1, resume=True)
        assert len(converted) == 2
        assert objects(target) == right
    system, path = fsspec.core.url_to_fs(source)
    first = next(name for name in system.ls(path, detail=False) if "et_" in name)
    system.pipe_file(first, system.cat_file(first) + b"\n")
    chakra_et.convert_files(source, target, jobs=1, resume=True)
    assert len(converted) == 3


def test_one_file_of_a_store_is_read_and_written(place: str, run: Path, tmp_path: Path) -> None:
    source = put(run, f"{place}/run")
    host = f"{source}/et_{FIRST_PID}.json"
    done = chakra("convert", host, "-o", f"{place}/one.json.gz")
    assert done.code == 0, done.errors
    assert chakra("convert", f"{place}/one.json.gz", "-o", tmp_path / "one.et").code == 0
    chakra_et.convert(run / f"et_{FIRST_PID}.json", None, tmp_path / "right.et")
    assert (tmp_path / "one.et").read_bytes() == (tmp_path / "right.et").read_bytes()
    assert len(chakra_et.read(f"{place}/one.json.gz").nodes) == 4


def test_other_ranks_at_a_url_are_refused(place: str, run: Path, right: dict[str, bytes]) -> None:
    system, path = fsspec.core.url_to_fs(f"{place}/out")
    system.makedirs(path, exist_ok=True)
    system.pipe_file(f"{path}/trace.9.et", b"somebody's")
    with pytest.raises(ChakraError, match=r"files of another run are here \(trace.9.et\)"):
        chakra_et.convert_files(run, f"{place}/out", jobs=1)
    system.rm_file(f"{path}/trace.9.et")
    chakra_et.convert_files(run, f"{place}/out", jobs=1)
    assert objects(f"{place}/out") == right


def test_an_output_replaces_no_remote_input(place: str, run: Path, tmp_path: Path) -> None:
    chakra_et.convert_files(run, f"{place}/out", jobs=1)
    with pytest.raises(ChakraError, match="would overwrite this input"):
        chakra_et.convert_files(f"{place}/out/trace.0.et", f"{place}/out", jobs=1, force=True)


def test_what_is_not_there_is_named(place: str, tmp_path: Path) -> None:
    done = chakra("convert", f"{place}/nowhere", "-o", tmp_path / "out")
    assert done.code == 2
    assert f"{place}/nowhere" in done.errors
    assert "Traceback" not in done.errors


def test_a_scheme_that_nobody_knows(tmp_path: Path) -> None:
    done = chakra("convert", "nosuch://x/y", "-o", tmp_path / "out")
    assert done.code == 2
    assert "nosuch" in done.errors


def test_shards_need_a_directory(run: Path) -> None:
    done = chakra("convert", run, "-o", "memory://shards", "--shard", "1/2")
    assert done.code == 2
    assert "memory://shards" in done.errors
