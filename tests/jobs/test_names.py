"""Ranks are found whatever their files are called: by what files tell first, by names second."""

from __future__ import annotations

from pathlib import Path

import pytest
from many_ranks import FIRST_PID, rank_files

import chakra_et
from chakra_et.pairing import find_pairs

NAMES = {
    "torch's handler": ("node_{pid}.16989550635208692{rank:02}.pt.trace.json", "et_{pid}.json"),
    "its gzip": ("a-b.c_{pid}.1698955063520869{rank:02}.pt.trace.json.gz", "et_{pid}.json"),
    "torchtitan": ("profile_traces/iteration_10/rank{rank}_trace.json", "et/rank{rank}.json"),
    "vLLM": ("dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}.17590000.pt.trace.json.gz", None),
    "vLLM with an id": ("vllm-42-rank-{rank}.1698955063520869240.pt.trace.json.gz", None),
    "SGLang": ("1741234567.8912-TP-{rank}.trace.json.gz", None),
    "SGLang by stage": ("prof-1741234567.8-TP-{rank}-DP-0-EP-{rank}-DECODE.trace.json.gz", None),
    "Megatron-Bridge": ("torch_profile/rank-{rank}.json.gz", "execution_trace/rank-{rank}.json"),
}


@pytest.mark.parametrize("told", [True, False], ids=["metadata", "names"])
@pytest.mark.parametrize("naming", NAMES)
def test_every_rank_is_found(tmp_path: Path, naming: str, told: bool) -> None:
    device, host = NAMES[naming]
    for rank in range(3):
        rank_files(tmp_path, rank, device, host, world=3 if told else None)
    pairs, others = find_pairs([tmp_path])
    assert others == []
    assert len(pairs) == 3
    assert all(pair.complete == (host is not None) for pair in pairs)
    assert [pair.device and pair.device.pid for pair in pairs] == [FIRST_PID + r for r in range(3)]
    without_ranks = not told and "{rank}" not in device
    assert [pair.rank for pair in pairs] == ([None] * 3 if without_ranks else [0, 1, 2])


def test_what_files_tell_counts_before_their_names(tmp_path: Path) -> None:
    """Names that count backward, as where a scheduler renames files."""
    for rank in range(3):
        rank_files(tmp_path, rank, f"rank{2 - rank}_trace.json", "h_{pid}.json", world=3)
    pairs, _ = find_pairs([tmp_path])
    assert [(p.rank, p.device and p.device.name) for p in pairs] == [
        (0, "rank2_trace.json"), (1, "rank1_trace.json"), (2, "rank0_trace.json"),
    ]  # fmt: skip
    assert all(p.host and p.host.pid == FIRST_PID + i for i, p in enumerate(pairs))


def test_the_process_in_a_name_pairs_a_profile_whose_head_tells_none(tmp_path: Path) -> None:
    for rank in range(2):
        profile, _ = rank_files(tmp_path, rank)
        text = profile.read_text().replace(f'"pid": {FIRST_PID + rank}', '"pid": "python"')
        profile.write_text(text)
    pairs, _ = find_pairs([tmp_path])
    assert all(pair.complete for pair in pairs)


def test_stages_of_a_pipeline_are_the_outer_axis(tmp_path: Path) -> None:
    for rank in range(4):
        rank_files(tmp_path, rank, f"1741.5-TP-{rank % 2}-PP-{rank // 2}.trace.json.gz", None)
    pairs, _ = find_pairs([tmp_path])
    assert [(p.rank, p.device and p.device.pid) for p in pairs] == [
        (rank, FIRST_PID + rank) for rank in range(4)
    ]


def test_axes_that_do_not_tell_files_apart_give_no_rank(tmp_path: Path) -> None:
    for rank in range(2):
        rank_files(tmp_path, rank, f"1741.5-TP-0-DP-{rank}.trace.json.gz", None)
    assert [pair.rank for pair in find_pairs([tmp_path])[0]] == [None, None]


def test_process_ids_that_repeat_on_other_nodes_do_not_mix_ranks(tmp_path: Path) -> None:
    for rank in range(4):
        profile, host = rank_files(
            tmp_path,
            rank,
            f"node{rank // 2}_{{pid}}.17.pt.trace.json",
            f"rank-{rank}.json",
            world=4,
        )
        assert host is not None
        for path in (profile, host):
            path.write_text(path.read_text().replace(f"{FIRST_PID + rank}", f"{4242 + rank % 2}"))
    chakra_et.convert_directory(tmp_path, tmp_path / "out")
    for rank in range(4):
        trace = chakra_et.read(tmp_path / "out" / f"trace.{rank}.et")
        assert f"aten::op{rank}_1" in {node.name for node in trace.nodes}
