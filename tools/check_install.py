"""Check that the package installs from a wheel, from an sdist, and from a clone without links.

    python tools/check_install.py

- A wheel, in a fresh environment without extras, converts the bundled pair: with the compiled
  kernel where it can be built, and in pure Python, to the same bytes.
- An unpacked sdist runs the tests that need neither real traces nor a compiler.
- A clone made with `core.symlinks=false`, as Git for Windows makes it, does the same, and gives the
  same wheel.

Meant for CI: it installs packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/test_public.py",
    "tests/schema/test_schema.py",
    "tests/linker/test_linking.py",
    "tests/cli/test_real_input.py",
)


def main() -> int:
    """Run every check; 0 if all went well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "plain", with_pip=True)
        python = folder / "plain" / "bin" / "python"
        compiled = build_wheel(python, ROOT, folder / "compiled", "auto")
        wheel = build_wheel(python, ROOT, folder / "wheel", "off")
        first = install_and_convert(python, compiled, folder / "compiled")
        if install_and_convert(python, wheel, folder / "wheel") != first:
            raise SystemExit("the kernel writes other bytes than pure Python")
        check_sdist(folder)
        check_clone_without_links(python, wheel, folder)
    print("3 passed, 0 failed")
    return 0


def build_wheel(python: Path, source: Path, target: Path, kernel: str) -> Path:
    """The wheel of a source tree; `kernel` is what the build hook is told."""
    os.environ["CHAKRA_ET_KERNEL"] = kernel
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", target, source)
    (wheel,) = target.glob("*.whl")
    return wheel


def install_and_convert(python: Path, wheel: Path, folder: Path) -> bytes:
    """The README's conversion with nothing but the wheel: the ET."""
    run(python, "-m", "pip", "install", "--quiet", wheel)
    run(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    chakra = python.with_name("chakra")
    pair = ROOT / "examples" / "simple_add"
    inputs = ("--host", pair / "host.json.gz", "--device", pair / "device.json.gz")
    run(chakra, "convert", *inputs, "-o", folder / "trace.0.et", cwd=folder)
    run(chakra, "info", folder / "trace.0.et", cwd=folder)
    run(chakra, "--version", cwd=folder)
    run(python, "-W", "error", "-c", "import chakra_et.proto.et_def_pb2", cwd=folder)
    return (folder / "trace.0.et").read_bytes()


def check_sdist(folder: Path) -> None:
    """The sdist holds what its own tests need."""
    backend = "import hatchling.build as b, sys; print(b.build_sdist(sys.argv[1]))"
    (folder / "sdist").mkdir()
    run(sys.executable, "-c", backend, folder / "sdist", cwd=ROOT)
    (archive,) = (folder / "sdist").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "sdist", filter="data")
    (tree,) = (path for path in (folder / "sdist").iterdir() if path.is_dir())
    run_tests(tree)


def check_clone_without_links(python: Path, wheel: Path, folder: Path) -> None:
    """A clone in which links are small files imports, passes its tests and builds the same."""
    clone = folder / "clone"
    run("git", "clone", "--quiet", "--config", "core.symlinks=false", ROOT, clone)
    if (clone / "chakra_et" / "converters").is_symlink():
        raise SystemExit("the clone has links")
    run_tests(clone)
    other = build_wheel(python, clone, folder / "clone-wheel", "off")
    if members(other) != members(wheel):
        changed = sorted(set(members(other).items()) ^ set(members(wheel).items()))
        raise SystemExit(f"the wheel of a clone without links differs: {changed[:6]}")


def members(wheel: Path) -> dict[str, int]:
    """The files of a wheel with their checksums, its list of them aside."""
    with zipfile.ZipFile(wheel) as archive:
        found = {info.filename: info.CRC for info in archive.infolist()}
    return {name: crc for name, crc in found.items() if not name.endswith("RECORD")}


def run_tests(tree: Path) -> None:
    """Some tests of a source tree, by the environment at hand but not by its package."""
    where = "import chakra_et, sys; sys.exit(not chakra_et.__file__.startswith(sys.argv[1]))"
    run(sys.executable, "-c", where, tree.resolve(), cwd=tree)
    run(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTS, cwd=tree)


def run(*command: object, cwd: Path | None = None) -> None:
    """Run a program, which must succeed."""
    words = [str(word) for word in command]
    print("$", " ".join(words), flush=True)
    subprocess.run(words, check=True, cwd=cwd)


if __name__ == "__main__":
    sys.exit(main())
