"""Rules about JSON files: the schema says what is wrong, the rule that it is."""

from __future__ import annotations

from typing import Final

from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.json_inputs import JsonFacts
from chakra_et.validators.rule import json_rule

_WHY: Final = "A converter skips what it does not understand, or stops."


@json_rule(
    "ET051",
    "The host trace does not match its schema.",
    why=_WHY,
    cure="Record again with a released torch; a file written by hand needs schema, pid and nodes.",
)
def host_trace(facts: JsonFacts) -> Hits:
    """PyTorch host traces."""
    return facts.hits() if facts.schema == "host_trace.schema.json" else NOTHING


@json_rule(
    "ET052",
    "The profile does not match its schema.",
    why=_WHY,
    cure="Export it again; a file that was edited by hand may have lost a key.",
)
def profile_file(facts: JsonFacts) -> Hits:
    """Kineto profiles."""
    return facts.hits() if facts.schema == "kineto_trace.schema.json" else NOTHING


@json_rule(
    "ET053",
    "The JSON form of the trace does not match its schema.",
    why=_WHY,
    cure="Write it with this tool, or correct what the finding points at.",
)
def json_trace(facts: JsonFacts) -> Hits:
    """ETs in JSON."""
    return facts.hits() if facts.schema == "et.schema.json" else NOTHING
