"""See that the generated protobuf code is current, and that it runs on old and new runtimes.

    python tools/check_protobuf.py

Each runtime is installed into a temporary folder, and the generated code is imported with it, with
every warning an error, and put to work on one node. Meant for CI: it installs packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from derive import registry

RUNTIMES = ("protobuf==5.29.*", "protobuf==6.33.*", "protobuf")

PROBE = """
import sys
import google.protobuf
from chakra_et.proto import et_def_pb2 as et
node = et.Node(id=0, name="a", type=et.COMP_NODE, data_deps=[1, 300])
wire = bytes.fromhex("12016118042a0301ac02")
assert node.SerializeToString() == wire, node.SerializeToString().hex()
assert et.Node.FromString(wire) == node
assert google.protobuf.__file__.startswith(sys.path[1]), google.protobuf.__file__
print(google.protobuf.__version__)
"""


def check_current() -> bool:
    """Whether the derived files agree with the schema."""
    print("derived files:", flush=True)
    generate = Path(__file__).with_name("generate.py")
    return subprocess.run([sys.executable, str(generate), "--check"], check=False).returncode == 0


def check_runtime(requirement: str) -> bool:
    """Whether the generated code runs on one protobuf runtime."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chakra-protobuf-") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        commands = [
            [*pip, "--no-deps", "--target", folder, requirement],
            [sys.executable, "-W", "error", "-c", PROBE],
        ]
        # Before the environment's own packages, so that this runtime is the one that is imported.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(registry.ROOT)])}
        said = ""
        for command in commands:
            done = subprocess.run(
                command, capture_output=True, check=False, text=True, cwd=folder, env=environment
            )
            if done.returncode:
                print(f"failed   {requirement}: {' '.join(command[:4])} ...\n{done.stderr.strip()}")
                return False
            said = done.stdout.strip()
    seconds = time.monotonic() - began
    print(f"ok       {requirement}: protobuf {said}, imported with -W error ({seconds:.0f} s)")
    return True


def main() -> int:
    """Run every check, and say which failed."""
    results = {"derived files": check_current()}
    print("runtimes:", flush=True)
    for requirement in RUNTIMES:
        results[requirement] = check_runtime(requirement)
    failed = [name for name, passed in results.items() if not passed]
    print(f"{len(results) - len(failed)} of {len(results)} checks passed")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
