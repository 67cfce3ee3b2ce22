"""Rules about the bytes and the name of a file."""

from __future__ import annotations

from typing import Final

from chakra_et.file_facts import NAME, FileFacts
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.rule import file_rule

_VERSIONS: Final = ("", "0.0.4", "1.0.0")
"""Versions of the present schema; many producers write none."""


@file_rule(
    "ET001",
    "The file is not a sequence of records.",
    why="Nothing after the damage can be trusted; some readers turn it into an empty node.",
    cure="Copy or record the file again.",
    kin="ET002 ET003 ET004 ET008",
)
def broken_framing(facts: FileFacts) -> Hits:
    """Lengths that no record can have, and fields that are none."""
    if facts.broken is None:
        return NOTHING
    return _hit(facts, f"byte {facts.broken[0]}: {facts.broken[1]}")


@file_rule(
    "ET002",
    "The file ends inside a record.",
    why="ASTRA-sim runs what is there, and ends with exit code 0 and a plausible result.",
    cure="The writer was stopped, or the copy was: write or copy the file again.",
)
def truncated(facts: FileFacts) -> Hits:
    """A last record of which bytes are missing."""
    if facts.cut is None:
        return NOTHING
    at, missing = facts.cut
    return _hit(facts, f"{missing} bytes of the record at byte {at} are missing")


@file_rule(
    "ET003",
    "The first record is not metadata of the current schema.",
    why="Readers take the first record for the metadata whatever it is: a node is lost silently.",
    cure="Write the file with a current tool; a file of a schema before 0.0.4 must be made again.",
)
def no_metadata(facts: FileFacts) -> Hits:
    """A node, or the metadata of an old schema, where the metadata has to be."""
    return NOTHING if facts.no_metadata is None else _hit(facts, facts.no_metadata)


@file_rule(
    "ET004",
    "The metadata record is empty.",
    why="Readers in Python take an empty record for the end of the file, and find no node.",
    cure="Set the version: `chakra fix` does.",
)
def empty_metadata(facts: FileFacts) -> Hits:
    """Metadata of no bytes, or a file of none."""
    if facts.size == 0:
        return _hit(facts, "the file has no bytes at all")
    return _hit(facts, "a record of 0 bytes at byte 0") if facts.empty_metadata else NOTHING


@file_rule(
    "ET005",
    "The version of the file is unknown.",
    why="Numbers and attributes may mean something else.",
    cure="Use a newer release of this tool, or correct the version.",
)
def unknown_version(facts: FileFacts) -> Hits:
    """A version other than those of the present schema."""
    if facts.version is None or facts.version in _VERSIONS:
        return NOTHING
    return _hit(facts, f"version {facts.version!r}; known are {', '.join(_VERSIONS[1:])}")


@file_rule(
    "ET006",
    "The file is compressed.",
    why="A reader that seeks, as that of ASTRA-sim does, takes compressed bytes for records.",
    cure="Unpack it (gunzip, zstd -d, unzip; a packed set: `chakra generate unpack`); "
    "`chakra fix` writes plain files.",
)
def compressed(facts: FileFacts) -> Hits:
    """A file in gzip or zstd, or in a zip archive."""
    return NOTHING if facts.compression is None else _hit(facts, facts.compression)


@file_rule(
    "ET007",
    "The file name is not {prefix}.{rank}.et.",
    why="Simulators open PREFIX.0.et, PREFIX.1.et and so on, and no other file.",
    cure="Rename it.",
)
def odd_name(facts: FileFacts) -> Hits:
    """A name that no simulator makes up."""
    return NOTHING if NAME.fullmatch(facts.path.name) else _hit(facts, facts.path.name)


@file_rule(
    "ET008",
    "The file has records without content.",
    why="Each becomes a node with id 0 and no type, and may take the place of the true node 0.",
    cure="Cut the zeros off the end; a file system that loses power leaves such.",
    kin="ET101 ET204 ET701 ET702",
)
def trailing_zeros(facts: FileFacts) -> Hits:
    """Bytes of zero behind the records, or between them."""
    if not facts.empty:
        return NOTHING
    return _hit(facts, f"{facts.empty} empty records, the first at byte {facts.first_empty}")


@file_rule(
    "ET009",
    "The file is not writable.",
    why="ASTRA-sim opens it for reading and appending, and fails with 'Failed to open file'.",
    cure="chmod u+w, or copy it.",
)
def read_only(facts: FileFacts) -> Hits:
    """A file that this user may not write."""
    return NOTHING if facts.writable else _hit(facts, "no permission to write")


def _hit(facts: FileFacts, evidence: str) -> Hits:
    """One hit about the file."""
    return Hits.of([Finding(evidence, facts.rank, path=str(facts.path))])
