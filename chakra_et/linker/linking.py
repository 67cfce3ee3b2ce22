"""From a recording to one trace: each step in one line."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from chakra_et.graph import redundant_edges
from chakra_et.io.memory import give_back, keep_freed
from chakra_et.linker.communication.accounts import Told
from chakra_et.linker.communication.communication import communicate
from chakra_et.linker.communication.process_groups import find_groups
from chakra_et.linker.edges.ties import find_ties
from chakra_et.linker.finding import find_edges
from chakra_et.linker.guesses.other_ranks import Verdict, refuted_by
from chakra_et.linker.joining.collect import collect
from chakra_et.linker.joining.join import join_views
from chakra_et.linker.notes import Notes
from chakra_et.linker.output.assemble import assemble
from chakra_et.linker.output.explain import tell
from chakra_et.linker.output.further_nodes import with_further_nodes
from chakra_et.linker.output.order import forward_order
from chakra_et.linker.output.report import Report, added_nodes, count_trace, make_report
from chakra_et.linker.time.own_time import in_own_time, late_warnings, own_time
from chakra_et.model import Trace
from chakra_et.recording import Recording


class Linked(msgspec.Struct):
    """A trace, and the report of how it came to be."""

    trace: Trace
    report: Report


def link(
    recording: Recording,
    rank: int | None = None,
    *,
    named_rank: int | None = None,
    aligned: bool = False,
    told: Mapping[int, Mapping[int, Told]] | None = None,
    verdicts: Mapping[int, Verdict] | None = None,
    judged: bool = True,
) -> Linked:
    """Link the host's and the device's view of one rank; either may be missing.

    The recording is used up: its columns are let go as the trace takes their place.

    `rank` is told by the profile if not given, else by members of groups, else it is `named_rank`,
    that of the files' names. With `aligned`, times of devices whose clock is
    behind the host's are shifted. `told` is what other ranks tell of transfers, by rank and
    record-function id, and `verdicts`, by rank, what others say of inferred edges. What they need
    for that is in the report if this rank is to be `judged`; it takes memory.
    Raises LinkError when the two do not belong together.
    """
    keep_freed()
    notes = Notes(recording.file_warnings)
    join = join_views(recording, notes)
    table = collect(recording.host, recording.device, None if join is None else join.record)
    find_ties(table, recording, aligned, notes)
    groups = find_groups(recording.host, recording.device, rank)
    refuted = refuted_by(verdicts, groups.rank)
    table, spoken = communicate(table, recording, groups, named_rank, told or {}, notes.warnings)
    give_back()
    found = find_edges(table, recording, spoken, refuted, notes)
    del table  # which is longer now
    give_back()
    own = own_time(found.table, found.time, found.ordered, found.waits.copies, recording.device)
    edges = in_own_time(found.table, recording, own, found.ordered, notes.warnings)
    order, edges = forward_order(found, recording.host, own, edges, notes.warnings)
    notes.warnings += late_warnings(found.table, found.streams, own)
    graph = with_further_nodes(found.table, order, edges, own, found.communications.kernels)
    added = added_nodes(recording, graph)
    report = make_report(recording, join, found, added, groups, notes)
    if judged:
        report.guesses = found.doubts.account
    scopes, spoken = found.waits.scopes, found.communications
    del join, found, own, order, edges  # What follows needs memory, too.
    give_back()  # Columns of the trace stay to the end, those of the steps before are gone.
    trace, evidence = assemble(graph, recording, scopes, spoken, groups)
    del spoken, graph
    give_back()
    kept = ~redundant_edges(trace)
    trace.edges, evidence = trace.edges.select(kept), evidence[kept]
    tell(trace, evidence)
    count_trace(report, trace, evidence)
    return Linked(trace, report)
