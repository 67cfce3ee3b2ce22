"""Changes of the schema that break readers are named; additions are not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from chakra_et.validators.compatibility import compare, main, proto_changes, registry_changes

ROOT = Path(__file__).parents[2]
PROTO = (ROOT / "schema" / "et_def.proto").read_text()


def test_the_schema_is_compatible_with_itself_and_with_more() -> None:
    assert proto_changes(PROTO, PROTO) == []
    more = PROTO.replace("message Node {", "message Node {\n  string note = 99;", 1)
    assert more != PROTO
    assert proto_changes(PROTO, more) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("uint64 id = 1;", "uint64 id = 17;", "Node: number 1"),
        ("uint64 id = 1;", "int64 id = 1;", "'uint64 id' and would be 'int64 id'"),
        ("uint64 id = 1;", "", "'uint64 id') is gone and not reserved"),
        ("COMP_NODE = 4;", "PIM_NODE = 4;", "NodeType: number 4 was 'COMP_NODE'"),
    ],
)
def test_what_breaks(old: str, new: str, told: str) -> None:
    assert old in PROTO
    assert any(told in change for change in proto_changes(PROTO, PROTO.replace(old, new, 1)))


def test_reserved_numbers_may_go() -> None:
    before = "message M { int32 a = 1; oneof x { int32 b = 2; } }"
    assert proto_changes(before, "message M { reserved 1 to 2; }") == []
    assert len(proto_changes(before, "message M { reserved 1; }")) == 1


def test_registry() -> None:
    before = {
        "kinds": {"integer": ["int32", "int64"]},
        "attribute": [{"name": "a", "scope": "node", "kind": "int64", "accepts": "integer"}],
    }
    assert registry_changes(before, before) == []
    more = {**before, "attribute": [*before["attribute"], {"name": "b", "accepts": []}]}
    assert registry_changes(before, more) == []
    assert registry_changes(before, {}) == ["node attribute a: the attribute is gone"]
    narrowed = {**before, "kinds": {"integer": ["int64"]}}
    assert registry_changes(before, narrowed) == ["node attribute a: no longer accepts int32"]


def test_against_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    path = tmp_path / "et_def.proto"
    path.write_text("message M { int32 a = 1; }")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    assert compare(path) == []
    path.write_text("message M { int64 a = 1; }")
    assert main([str(path)]) == 1
    assert "number 1 was 'int32 a'" in capsys.readouterr().out
