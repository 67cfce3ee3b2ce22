"""`chakra convert` takes what people have: files of every kind, in any order and number."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from command import chakra
from places import EXAMPLES, ROOT, names_in
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import ChakraError, convert_files

HOST = EXAMPLES / "simple_add" / "host.json.gz"
DEVICE = EXAMPLES / "simple_add" / "device.json.gz"
LINKED = ROOT / "tests" / "converters" / "linked" / "waits.json"


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the pair of files gives."""
    path = tmp_path_factory.mktemp("right") / "trace.et"
    chakra_et.convert(HOST, DEVICE, path)
    return path.read_bytes()


def pair(folder: Path, rank: int, host: str, device: str, world: int | None = None) -> None:
    """The files of a rank, under these names; the process tells that they belong together."""
    pid = 100 + rank
    (folder / host).parent.mkdir(parents=True, exist_ok=True)
    (folder / device).parent.mkdir(parents=True, exist_ok=True)
    HostRecording(pid=pid).op(3, f"op{rank}", rf_id=1).write(folder / host)
    info = {} if world is None else {"backend": "nccl", "rank": rank, "world_size": world}
    profile = Profile(info=info).op(f"op{rank}", 1, 1, rf_id=1)
    profile.events[0]["pid"] = pid
    profile.write(folder / device)


def ranks(folder: Path) -> dict[str, str]:
    """The operation in each ET of a directory."""
    return {
        name: chakra_et.read(folder / name).nodes[-1].name
        for name in names_in(folder)
        if name.endswith(".et")
    }


# --- Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [(HOST, DEVICE), (DEVICE, HOST)])
def test_a_pair_in_any_order(tmp_path: Path, right: bytes, files: tuple[Path, ...]) -> None:
    done = chakra("convert", *files, "-o", tmp_path / "out.et")
    assert done.code == 0, done.errors
    assert (tmp_path / "out.et").read_bytes() == right
    assert "36 of 36 host operations" in done.words


def test_names_tell_nothing(tmp_path: Path, right: bytes) -> None:
    """Host trace and profile as .et and .txt, compressed another way."""
    (tmp_path / "a.et").write_bytes(zstandard.compress(gzip.decompress(DEVICE.read_bytes())))
    (tmp_path / "b.txt").write_bytes(gzip.decompress(HOST.read_bytes()))
    assert (
        chakra("convert", tmp_path / "a.et", tmp_path / "b.txt", "-o", tmp_path / "o.et").code == 0
    )
    assert (tmp_path / "o.et").read_bytes() == right


@pytest.mark.parametrize(
    ("option", "file"), [("--host", HOST), ("--device", DEVICE), ("--host", LINKED)]
)
def test_one_file_alone_is_as_with_its_option(tmp_path: Path, option: str, file: Path) -> None:
    assert chakra("convert", file, "-o", tmp_path / "a.et").code == 0
    assert chakra("convert", option, file, "-o", tmp_path / "b.et").code == 0
    assert (tmp_path / "a.et").read_bytes() == (tmp_path / "b.et").read_bytes()


def test_through_pipes(tmp_path: Path, right: bytes) -> None:
    plain = gzip.decompress(HOST.read_bytes())
    done = chakra("convert", "-", DEVICE, "-o", "-", stdin=plain)
    assert done.code == 0, done.errors
    assert done.raw == right
    assert "36 of 36" in done.errors
    assert chakra("info", "-", stdin=right).words.startswith("-: ET (protobuf)")


def test_a_file_that_is_given_twice_is_one(tmp_path: Path, right: bytes) -> None:
    done = chakra("convert", HOST.parent, HOST, DEVICE, HOST, "-o", tmp_path / "o.et")
    assert done.code == 0, done.errors
    assert (tmp_path / "o.et").read_bytes() == right


def test_a_report_on_standard_output_is_alone_there(tmp_path: Path) -> None:
    done = chakra("convert", HOST, "-o", tmp_path / "o.et", "--report", "-")
    assert json.loads(done.output)["host_nodes"]["kept"] == 38
    assert "host nodes" in done.errors


def test_an_option_and_a_file_are_refused(tmp_path: Path) -> None:
    done = chakra("convert", DEVICE, "--host", HOST, "-o", tmp_path / "o.et")
    assert done.code == 2
    assert "both FILE and --host or --device" in done.errors


def test_files_of_two_ranks_do_not_fit_one_file(tmp_path: Path) -> None:
    files = sorted((EXAMPLES / "ddp_2rank").glob("*.json.gz"))
    done = chakra("convert", *files, "-o", tmp_path / "out.et")
    assert done.code == 2
    assert "names one file, but the inputs have 2 ranks" in done.errors
    assert not names_in(tmp_path)
    assert chakra("convert", *files, "-o", tmp_path / "out").code == 0
    assert names_in(tmp_path / "out") == ["trace.0.et", "trace.1.et"]


def test_a_rank_for_several_is_refused_and_for_one_taken(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match="--rank sets one rank"):
        convert_files(EXAMPLES / "ddp_2rank", None, rank=3)
    (one,) = convert_files([HOST], None, rank=3)
    assert one.trace.rank == 3


def test_a_file_that_was_named_and_is_no_trace_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    done = chakra("convert", HOST, tmp_path / "notes.txt", "-o", tmp_path / "o.et")
    assert done.code == 2
    assert f"{tmp_path / 'notes.txt'}: neither JSON nor an ET" in done.errors


# --- ETs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.et.zst", "t.et"])
def test_an_et_in_another_form_and_back_loses_nothing(
    tmp_path: Path, right: bytes, name: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.et").write_bytes(right)
    report = tmp_path / "report.json"
    done = chakra(
        "convert", tmp_path / "in" / "first.et", "-o", tmp_path / name, "--report", report
    )
    assert done.code == 0, done.errors
    assert ", all kept; " in done.words
    told = json.loads(report.read_text())
    assert told["inputs"]["trace"]["format"] == "ET (protobuf)"
    assert told["records"]["ET nodes"] == {"total": 57, "kept": 57, "merged": 0, "left_out": []}
    assert told["inputs"]["trace"]["written"] == (
        "byte for byte the same"
        if name == "t.et"
        else "reads back equal in every node, edge and attribute"
    )
    assert chakra("convert", tmp_path / name, "-o", tmp_path / "back.et").code == 0
    assert (tmp_path / "back.et").read_bytes() == right


def test_ets_of_a_directory_are_made_ready_for_a_simulator(tmp_path: Path) -> None:
    convert_files(EXAMPLES / "ddp_2rank", tmp_path / "ets")
    out = tmp_path / "ets" / "out"
    for _ in range(2):
        # What the first time made is no input of the second.
        done = chakra("convert", tmp_path / "ets", "--for", "astra-sim", "-o", out)
        assert done.code == 0, done.errors
        assert names_in(out) == ["comm_groups.json", "trace.0.et", "trace.1.et"]


@pytest.mark.parametrize("options", [{"steps": "1"}, {"rank": 2}])
def test_what_is_about_recordings_is_refused_for_ets(
    tmp_path: Path, right: bytes, options: dict[str, str]
) -> None:
    (tmp_path / "t.et").write_bytes(right)
    with pytest.raises(ChakraError, match=r"window|--rank is for recordings"):
        convert_files(tmp_path / "t.et", None, **options)  # type: ignore[arg-type]


# --- Directories ---------------------------------------------------------------------------------

LAYOUTS = {
    "a directory of each rank": ("rank{}/host.json", "rank{}/device.json"),
    "iterations": ("iteration_10/host_rank{}.json", "iteration_10/rank{}_trace.json.gz"),
    "et beside kineto": ("et/rank-{}.json", "kineto/rank-{}.some_host.pt.trace.json"),
    "deep": ("a/b/c/host.{}.json", "a/b/d/device.{}.json.gz"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_directories_are_descended(tmp_path: Path, layout: str) -> None:
    host, device = LAYOUTS[layout]
    for rank in range(2):
        pair(tmp_path / "run", rank, host.format(rank), device.format(rank))
    done = chakra("convert", tmp_path / "run", "-o", tmp_path / "out")
    assert done.code == 0, done.errors
    assert ranks(tmp_path / "out") == {"trace.0.et": "op0", "trace.1.et": "op1"}
    assert "warning" not in done.output


def test_the_directory_of_a_rank_pairs_what_nothing_else_does(tmp_path: Path) -> None:
    """Neither process nor rank is in the files."""
    for rank in range(2):
        folder = tmp_path / "run" / f"rank{rank}"
        folder.mkdir(parents=True)
        HostRecording(pid=7).op(3, f"op{rank}", rf_id=1).write(folder / "host.json")
        Profile().op(f"op{rank}", 1, 1, rf_id=1).write(folder / "device.json")
    convert_files(tmp_path / "run", tmp_path / "out")
    assert ranks(tmp_path / "out") == {"trace.0.et": "op0", "trace.1.et": "op1"}


def test_what_is_passed_over_is_named_with_what_it_is(tmp_path: Path) -> None:
    pair(tmp_path / "run", 0, "host.json", "device.json")
    (tmp_path / "run" / "log").mkdir()
    (tmp_path / "run" / "log" / "out.txt").write_text("hello")
    (tmp_path / "run" / "model.pkl").write_bytes(b"\x80\x04\x95model")
    (tmp_path / "run" / ".git").mkdir()
    (tmp_path / "run" / ".git" / "index").write_text("hidden directories are nobody's traces")
    done = chakra("convert", tmp_path / "run", "-o", tmp_path / "out")
    assert done.words.endswith(
        "warning skipped 2 files: model.pkl (a Python pickle), "
        "log/out.txt (neither JSON nor an ET in protobuf)"
    )


def test_two_recordings_of_a_rank_are_an_error_that_names_them(tmp_path: Path) -> None:
    for iteration in (10, 20):
        folder = tmp_path / "run" / f"iteration_{iteration}"
        pair(folder, 0, "host.json", "rank0_trace.json")
    done = chakra("convert", tmp_path / "run", "-o", tmp_path / "out")
    assert done.code == 2
    assert "of rank 0" in done.errors
    assert "iteration_10" in done.errors
    assert "iteration_20" in done.errors


def test_a_conversion_again_in_place_takes_no_output_for_input(tmp_path: Path) -> None:
    """What the first time has left in the directory is no input of the second."""
    pair(tmp_path, 0, "host.json", "device.json")
    words = ("convert", tmp_path, "-o", tmp_path, "--report", tmp_path / "report.json")
    first, second = chakra(*words), chakra(*words)
    assert (first.code, second.code) == (0, 0), second.errors
    assert names_in(tmp_path) == ["device.json", "host.json", "report.json", "trace.0.et"]
    assert "skipped 1 file: trace.0.et (an ET (protobuf), beside recordings)" in second.output
    for_simulator = chakra("convert", tmp_path, "--for", "astra-sim", "-o", tmp_path / "out")
    assert for_simulator.code == 0, for_simulator.errors


def test_reports_alone_are_no_input(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert chakra("convert", HOST, "-o", tmp_path / "x.et", "--report", report).code == 0
    done = chakra("convert", report, "-o", tmp_path / "y.et")
    assert done.code == 2
    assert "this is a report of chakra-et" in done.errors


# --- Strays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stray.json", "host_rank1.json", "host_rank7.json"])
def test_a_stray_host_trace_is_no_rank_of_a_run(tmp_path: Path, name: str) -> None:
    for rank in range(2):
        pair(tmp_path / "run", rank, f"h{rank}.json", f"d{rank}.json", world=2)
    HostRecording(pid=55).op(3, "stray").write(tmp_path / "run" / name)
    done = chakra("convert", tmp_path / "run", "-o", tmp_path / "out")
    assert done.code == 0, done.errors
    assert ranks(tmp_path / "out") == {"trace.0.et": "op0", "trace.1.et": "op1"}
    last = " ".join(done.output.splitlines()[-1].split())
    assert last.startswith(f"warning skipped 1 file: {name} (a ")
    assert "host trace" in last


def test_a_host_trace_of_a_rank_that_is_missing_stays(tmp_path: Path) -> None:
    pair(tmp_path / "run", 0, "h0.json", "d0.json", world=2)
    HostRecording(pid=55).op(3, "op1").write(tmp_path / "run" / "host_rank1.json")
    convert_files(tmp_path / "run", tmp_path / "out")
    assert ranks(tmp_path / "out") == {"trace.0.et": "op0", "trace.1.et": "op1"}


# --- Archives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar", "xztar"])
def test_archives_of_several_files(tmp_path: Path, kind: str) -> None:
    for rank in range(2):
        pair(tmp_path / "run", rank, f"rank{rank}/host.json", f"rank{rank}/device.json")
    archive = shutil.make_archive(str(tmp_path / "packed"), kind, tmp_path / "run")
    if kind == "xztar":
        assert chakra("convert", archive, "-o", tmp_path / "out").code == 2
        return
    done = chakra("convert", archive, "-o", tmp_path / "out")
    assert done.code == 0, done.errors
    assert ranks(tmp_path / "out") == {"trace.0.et": "op0", "trace.1.et": "op1"}


def test_an_archive_of_a_pair_gives_one_file(tmp_path: Path, right: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "pair.zip", "w") as archive:
        archive.write(HOST, "host.json.gz")
        archive.write(DEVICE, "device.json.gz")
    assert chakra("convert", tmp_path / "pair.zip", "-o", tmp_path / "x.et").code == 0
    assert (tmp_path / "x.et").read_bytes() == right


def test_members_do_not_lead_out_of_an_archive(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(gzip.decompress(HOST.read_bytes()))
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in (str(tmp_path / "secret.json"), "../secret.json", "./notes.txt"):
            archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(ChakraError, match="no trace in these files"):
        convert_files(tmp_path / "a.tar", None)


# --- Output directories --------------------------------------------------------------------------


def run_of(folder: Path, count: int) -> Path:
    for rank in range(count):
        pair(folder, rank, f"host_rank{rank}.json", f"device_rank{rank}.json")
    return folder


def test_a_directory_with_other_ranks_is_refused_and_force_takes_their_place(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    many, few = run_of(tmp_path / "many", 4), run_of(tmp_path / "few", 2)
    assert chakra("convert", many, "-o", out).code == 0
    assert chakra("convert", many, "-o", out).code == 0, "the same run again is no other run"
    before = {name: (out / name).read_bytes() for name in names_in(out)}
    done = chakra("convert", few, "-o", out)
    assert done.code == 2
    assert f"{out}: files of another run are here (trace.2.et, trace.3.et)" in done.errors
    assert "--force" in done.errors
    assert {name: (out / name).read_bytes() for name in names_in(out)} == before
    assert chakra("convert", few, "-o", out, "--force").code == 0
    assert names_in(out) == ["trace.0.et", "trace.1.et"]


def test_force_removes_nothing_that_the_manifest_does_not_list(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = run_of(tmp_path / "run", 2)
    assert chakra("convert", run, "-o", out).code == 0
    (out / "trace.5.et").write_bytes(b"somebody's")
    (out / "notes.txt").write_text("mine")
    done = chakra("convert", run, "-o", out, "--force")
    assert done.code == 2
    assert "trace.5.et" in done.errors
    (out / "trace.5.et").unlink()
    assert chakra("convert", run, "-o", out, "--force").code == 0
    assert names_in(out) == ["notes.txt", "trace.0.et", "trace.1.et"]


def test_a_table_of_groups_of_an_earlier_run_does_not_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = run_of(tmp_path / "run", 2)
    assert chakra("convert", run, "-o", out, "--for", "astra-sim").code == 0
    assert "comm_groups.json" in chakra("convert", run, "-o", out).errors
    assert chakra("convert", run, "-o", out, "--force").code == 0
    assert names_in(out) == ["trace.0.et", "trace.1.et"]


def test_runs_with_other_prefixes_live_side_by_side(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert chakra("convert", run_of(tmp_path / "a", 2), "-o", out, "--prefix", "a").code == 0
    assert chakra("convert", run_of(tmp_path / "b", 1), "-o", out, "--prefix", "b").code == 0
    assert names_in(out) == ["a.0.et", "a.1.et", "b.0.et"]


# --- The list of formats -------------------------------------------------------------------------


def test_formats_lists_what_is_read_and_written() -> None:
    told = {item["name"]: item for item in json.loads(chakra("formats", "--json").output)}
    assert told["Kineto profile"]["read"]
    assert told["ET (JSON)"]["suffixes"] == [".json"]
    assert not told["a Perfetto trace (protobuf)"]["read"]
    assert "traceconv" in told["a Perfetto trace (protobuf)"]["remedy"]
    assert "PyTorch host trace" in chakra("formats").output
