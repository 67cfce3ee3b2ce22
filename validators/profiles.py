"""Named sets of rules with severities: what one consumer makes of a trace.

A profile is data: a list of rules for each severity, on top of another profile whose severities it
may change. `consumer` says what was looked at, so that an answer can be dated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chakra_et.errors import ChakraError
from chakra_et.validators.finding import Severity


@dataclass(frozen=True)
class Profile:
    """A set of rules with a severity for each."""

    name: str
    about: str
    """What a trace without findings is good for."""
    consumer: str
    """The program that the severities are about, with its commit."""
    severities: Mapping[str, Severity]

    def __contains__(self, rule_id: str) -> bool:
        return rule_id in self.severities


_CORE: Final = {
    Severity.ERROR: """
        ET001 ET002 ET003 ET004 ET008 ET051 ET052 ET053
        ET101 ET102 ET103 ET104 ET105 ET106
        ET201 ET204 ET207 ET208 ET209 ET212 ET214
        ET301 ET401 ET403 ET405 ET406
        ET501 ET502 ET503 ET504 ET505 ET506 ET508 ET509 ET510
    """,
    Severity.WARNING: """
        ET005 ET107 ET203 ET205 ET206 ET210 ET211 ET213 ET215 ET216 ET217 ET218 ET219 ET220
        ET302 ET303 ET304 ET306 ET308 ET311 ET402 ET404 ET407 ET408 ET409
    """,
}
_ASTRA_SIM: Final = {
    Severity.ERROR: """
        ET006 ET007 ET107 ET205 ET206 ET210 ET211 ET215 ET217 ET218 ET219 ET402 ET404 ET409
        ET701 ET702 ET710 ET712 ET714 ET715 ET716 ET717 ET718 ET720 ET721 ET722 ET724
    """,
    Severity.WARNING: "ET009 ET110 ET111 ET703 ET704 ET705 ET707 ET709 ET719 ET725",
    Severity.INFO: "ET202 ET309 ET706 ET708 ET711 ET713 ET723",
}
_ROOFLINE: Final = {Severity.ERROR: "ET730 ET731"}
_LOCAL_MEMORY: Final = {Severity.ERROR: "ET732 ET733"}
_MLC: Final = {
    Severity.ERROR: "ET109 ET202 ET205 ET206",
    Severity.WARNING: "ET108",
    Severity.INFO: "ET112 ET801",
}
_REPLAY: Final = {
    Severity.WARNING: "ET307 ET601 ET602 ET603 ET605 ET606 ET607",
    Severity.INFO: "ET305 ET309 ET310 ET604",
}
_TORCH: Final = {
    Severity.ERROR: "ET901 ET902 ET903",
    Severity.WARNING: "ET601 ET606 ET607 ET904",
    Severity.INFO: "ET604 ET905",
}


def _over(
    base: Mapping[str, Severity] | None, table: Mapping[Severity, str]
) -> dict[str, Severity]:
    severities = dict(base or {})
    for severity, rules in table.items():
        severities.update(dict.fromkeys(rules.split(), severity))
    return severities


_core = _over(None, _CORE)
_astra_sim = _over(_core, _ASTRA_SIM)
_ASTRA: Final = "astra-sim/astra-sim 518bd51, feeder_v3 of astra-sim/chakra f37c2bb"

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile("core", "the rules of the format hold", "schema 1.0.0", _core),
        Profile("astra-sim", "ASTRA-sim runs it to the end", _ASTRA, _astra_sim),
        Profile(
            "astra-sim-roofline",
            "ASTRA-sim runs it with roofline-enabled",
            _ASTRA,
            _over(_astra_sim, _ROOFLINE),
        ),
        Profile(
            "astra-sim-local-mem",
            "ASTRA-sim runs it with track-local-mem",
            _ASTRA,
            _over(_astra_sim, _LOCAL_MEMORY),
        ),
        Profile(
            "mlc-chakra",
            "the C++ feeder and the tools of mlc-chakra read it",
            "mlcommons/chakra 21585d8",
            _over(_core, _MLC),
        ),
        Profile("replay", "our replay gives times back", "chakra-et", _over(_core, _REPLAY)),
        Profile(
            "torch-replay",
            "`chakra run` executes its operators again",
            "torch 2.13",
            _over(_core, _TORCH),
        ),
    )
}
"""Every profile by its name."""


def profile(name: str) -> Profile:
    """The profile of a name. Raises ChakraError for a name that none has."""
    found = PROFILES.get(name)
    if found is None:
        raise ChakraError(f"unknown profile {name!r}", remedy=f"Profiles: {', '.join(PROFILES)}.")
    return found
