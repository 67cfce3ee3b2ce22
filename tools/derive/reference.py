"""docs/attributes.md from the registry."""

from __future__ import annotations

from collections.abc import Iterator

from derive import registry

HEAD = """\
<!-- Made by tools/generate.py from schema/attributes.toml. Do not edit. -->

# Attributes

An attribute is a name and a value of one kind. A node's attributes are in `Node.attr`; those of the
whole trace are in `GlobalMetadata.attr`. The names below have a fixed meaning. Any other name is
legal, and is kept when a file is rewritten.

*Kind* is the kind to write: a member of `AttributeProto`'s oneof, without `_val`. A reader takes
more: what is marked *integer* is read from every integer kind, and what is marked *boolean* from
`bool` and from every integer kind (0 is false). An absent attribute is not the same as a zero.

In Python, a node has a property of the same name for each attribute of scope node; `inputs` and
`outputs` are `tensor_inputs` and `tensor_outputs`.
"""


def render(source: registry.Registry) -> str:
    """The text of the page."""
    lines = [HEAD]
    for group in dict.fromkeys(attribute.group for attribute in source.attribute):
        lines += [f"## {group}", "", "| name | kind | read from | unit | meaning | written by |"]
        lines[-1] += " read by | since |"
        lines.append("|---|---|---|---|---|---|---|---|")
        lines += [_row(attribute) for attribute in source.attribute if attribute.group == group]
        lines.append("")
    lines += _edge_kinds(source)
    return "\n".join(lines)


def _row(attribute: registry.Attribute) -> str:
    cells = [
        f"`{attribute.name}`",
        attribute.kind,
        attribute.accepts,
        attribute.unit,
        attribute.meaning,
        ", ".join(attribute.writers),
        ", ".join(attribute.readers),
        attribute.since,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _edge_kinds(source: registry.Registry) -> Iterator[str]:
    yield "## Edge kinds"
    yield ""
    yield "`call` is what `ctrl_deps` says. The others are the entries of `edge_kinds`."
    yield ""
    yield "| kind | why this node waits for the other one |"
    yield "|---|---|"
    for edge in source.edge_kind:
        yield f"| `{edge.name}` | {edge.meaning} |"
    yield ""
