"""Check that a wheel of this tree installs alone and converts the bundled pair.

Builds a wheel, installs it into a fresh environment without extras, and runs `chakra` there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Build, install, convert; 0 if all went well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = folder / "venv"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        _run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        _run(python, "-m", "pip", "install", "--quiet", wheel)
        chakra = environment / "bin" / "chakra"
        pair = ROOT / "examples" / "simple_add"
        output = folder / "trace.0.et"
        _run(
            chakra, "convert", "--host", pair / "host.json.gz",
            "--device", pair / "device.json.gz", "-o", output, cwd=folder,
        )  # fmt: skip
        _run(chakra, "info", output, cwd=folder)
    print("1 passed, 0 failed")
    return 0


def _run(*command: object, cwd: Path | None = None) -> None:
    words = [str(word) for word in command]
    print("$", " ".join(words), flush=True)
    subprocess.run(words, check=True, cwd=cwd)


if __name__ == "__main__":
    sys.exit(main())
