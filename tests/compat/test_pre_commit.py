"""The hooks of this repository, run by pre-commit in a repository that uses them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from traces import coll, node, trace

from chakra_et.files import write

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, check=check, capture_output=True, text=True)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with sound files, and hooks from a clone of this one."""
    pytest.importorskip("pre_commit", reason="pip install pre-commit")
    base = tmp_path_factory.mktemp("pre-commit")
    source, user = base / "source", base / "user"
    # The hooks of the last commit: pre-commit clones, and a clone has nothing else.
    run("git", "clone", "--quiet", str(ROOT), str(source), cwd=base)
    revision = run("git", "rev-parse", "HEAD", cwd=source).stdout.strip()
    user.mkdir()
    hooks = [{"id": i} for i in ("chakra-et", "chakra-json", "chakra-schema")]
    config = {"repos": [{"repo": str(source), "rev": revision, "hooks": hooks}]}
    # JSON is YAML too.
    (user / ".pre-commit-config.yaml").write_text(json.dumps(config))
    write(trace(node(1, took=5), coll(2, deps=(1,))), user / "trace.0.et")
    (user / "host.json").write_text(
        json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []})
    )
    (user / "package.json").write_text('{"name": "not a trace"}')
    (user / "my.proto").write_text("message M { int32 a = 1; }")
    run("git", "init", "--quiet", cwd=user)
    run("git", "add", ".", cwd=user)
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one", cwd=user)
    return user


def hooks(repository: Path) -> subprocess.CompletedProcess[str]:
    run("git", "add", ".", cwd=repository)
    command = (sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never")
    return run(*command, cwd=repository, check=False)


def test_sound_files_pass(scratch: Path) -> None:
    done = hooks(scratch)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Passed") == 3


@pytest.mark.parametrize(
    ("name", "told"),
    [("trace.0.et", "ET102"), ("host.json", "ET051"), ("my.proto", "number 1 was 'int32 a'")],
)
def test_broken_files_fail(scratch: Path, name: str, told: str) -> None:
    path = scratch / name
    before = path.read_bytes()
    if name.endswith(".et"):
        write(trace(node(1, deps=(7,))), path)
    elif name.endswith(".json"):
        path.write_text('{"schema": "1.1.1-chakra.0.0.4", "pid": "one", "nodes": [{"id": "x"}]}')
    else:
        path.write_text("message M { int64 a = 1; }")
    done = hooks(scratch)
    path.write_bytes(before)
    assert done.returncode == 1
    assert done.stdout.count("Passed") == 2
    assert told in done.stdout
