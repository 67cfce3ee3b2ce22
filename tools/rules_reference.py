"""Write the table of rules in docs/validators.md from the rules themselves.

python tools/rules_reference.py            write it
python tools/rules_reference.py --check    compare; exit 1 where it differs
"""

from __future__ import annotations

import sys
from pathlib import Path

from page_parts import keep

from chakra_et.validators import PROFILES, RULES

PAGE = Path(__file__).parents[1] / "docs" / "validators.md"
BEGIN, END = "<!-- rules: begin -->", "<!-- rules: end -->"
TITLES = {
    "file": "Files",
    "json_files": "JSON files",
    "graph": "Graph",
    "attributes": "Types and attributes",
    "communication": "Communication",
    "time": "Time",
    "groups": "Process groups",
    "ranks": "Across ranks",
    "deadlock": "Deadlocks",
    "capture": "How it was recorded",
    "astra_sim": "ASTRA-sim: nodes and edges",
    "astra_sim_communication": "ASTRA-sim: communication",
    "astra_sim_groups": "ASTRA-sim: groups",
    "astra_sim_modes": "ASTRA-sim: other modes",
    "mlc_chakra": "mlc-chakra",
    "torch_replay": "Executing again",
}


def table() -> str:
    """The rules by group: id, what it says, and its severity in each profile that has it."""
    lines = []
    for group, title in TITLES.items():
        lines += ["", f"### {title}", "", "| rule | it speaks where | in |", "|---|---|---|"]
        for rule_id in sorted(r for r in RULES if RULES[r].group == group):
            lines.append(
                f"| {rule_id} | {RULES[rule_id].title.rstrip('.')} | {_profiles(rule_id)} |"
            )
    return "\n".join([*lines, ""])


def _profiles(rule_id: str) -> str:
    """Profiles with severities; one that only hands on what `core` says is left out."""
    core = PROFILES["core"].severities.get(rule_id)
    parts = [] if core is None else [f"core: {core.label}"]
    astra = PROFILES["astra-sim"].severities.get(rule_id)
    for name, chosen in PROFILES.items():
        severity = chosen.severities.get(rule_id)
        inherited = astra if name.startswith("astra-sim-") else core
        if name != "core" and severity is not None and severity != inherited:
            parts.append(f"{name}: {severity.label}")
    return ", ".join(parts)


def main() -> int:
    """Write or compare the page."""
    return keep(PAGE, BEGIN, END, table(), check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
