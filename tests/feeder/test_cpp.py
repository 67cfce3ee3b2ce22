"""What is built from the C++ feeder: examples, CMake, facades, and a run under sanitizers."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from feeder_traces import N, attribute, random_nodes, trace
from places import CPP, ROOT

from chakra_et.build import Workload, write_packed
from chakra_et.feeder import native
from chakra_et.schema_files import schema_file

EXAMPLES = ROOT / "examples" / "feeder"
INCLUDE = CPP / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SIZE = attribute("comm_size", 9, 1000)
NODES = [N(0, duration=3), N(1, [0], duration=4, type=7, attrs=SIZE), N(2, [1], duration=5)]


def run(*command: str | Path, **environment: str) -> str:
    """The output of a program, which must succeed."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> str:
    """A program, or the test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return found


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of 12 us and 1000 bytes."""
    path = tmp_path_factory.mktemp("trace") / "t.0.et"
    path.write_bytes(trace(NODES))
    return path


@pytest.fixture(scope="session")
def library(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of libfeeder_c.so, compiled without a warning."""
    folder = tmp_path_factory.mktemp("library")
    source, target = CPP / "src" / "feeder_c.cpp", folder / "libfeeder_c.so"
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", *WARNINGS]
    run(compiler, *flags, "-I", INCLUDE, source, "-o", target)
    return folder


def test_python_example_is_short_and_runs(path: Path) -> None:
    example = EXAMPLES / "simulate.py"
    assert len(example.read_text().splitlines()) < 60
    assert run(sys.executable, example, path).startswith("12000 ns; busy: host 0 ns, device 8000")
    assert run(sys.executable, example, path, "0.5").startswith("10000 ns")


def test_c_example(compiler: str, library: Path, path: Path, tmp_path: Path) -> None:
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", str(INCLUDE)]
    run(tool("cc"), *flags, "-c", EXAMPLES / "simulate.c", "-o", tmp_path / "simulate.o")
    link = ["-L", str(library), "-lfeeder_c", f"-Wl,-rpath,{library}"]
    run(compiler, tmp_path / "simulate.o", *link, "-o", tmp_path / "simulate")
    assert run(tmp_path / "simulate", path) == "3 nodes, 12000 ns, 1000 bytes\n"


def test_rust_example(library: Path, path: Path, tmp_path: Path) -> None:
    program = tmp_path / "simulate"
    run(tool("rustc"), "-L", library, EXAMPLES / "simulate.rs", "-o", program)
    assert run(program, path, LD_LIBRARY_PATH=str(library)) == "3 nodes, 12000 ns, 1000 bytes\n"


def test_javascript_client(path: Path) -> None:
    chakra = f"{sys.executable} -m chakra_et.cli"
    out = run(tool("node"), EXAMPLES / "client.mjs", path, CHAKRA=chakra)
    assert out == "3 nodes, 12 us\n"


@pytest.mark.parametrize(
    ("macro", "library_name", "header"),
    [("CHAKRA_ET_WITH_ZLIB", "z", "zlib.h"), ("CHAKRA_ET_WITH_ZSTD", "zstd", "zstd.h")],
)
def test_compressed(
    compiler: str, path: Path, tmp_path: Path, macro: str, library_name: str, header: str
) -> None:
    if not Path("/usr/include", header).exists():
        pytest.skip(f"no {header}")
    gzipped, zstd = tmp_path / "t.et.gz", tmp_path / "t.et.zst"
    data = path.read_bytes()
    gzipped.write_bytes(gzip.compress(data[:9]) + gzip.compress(data[9:]))
    zstd.write_bytes(zstandard.compress(data))
    good, other = (gzipped, zstd) if library_name == "z" else (zstd, gzipped)
    # The description of a set that was generated packed is deflated, its parts are zstd frames.
    write_packed(Workload(dp=2), lambda rank: rank.all_reduce("dp", 8), tmp_path / "run.pack")
    packed = tmp_path / "run.pack" / "trace.0.et"
    program = tmp_path / "drain"
    flags = ["-std=c++17", "-O1", *WARNINGS, "-I", str(INCLUDE), f"-D{macro}"]
    run(compiler, *flags, CPP / "tools" / "drain.cpp", f"-l{library_name}", "-o", program)
    for window in ((), ("2",)):
        assert run(program, good, *window).startswith("nodes=3 ")
        assert run(program, path, *window).startswith("nodes=3 ")
        cut, lacking = tmp_path / "cut", "not built in"
        cut.write_bytes(good.read_bytes()[:-9])
        for bad, said in ((other, lacking), (packed, lacking), (cut, "cannot read")):
            done = subprocess.run(
                [program, bad, *window], capture_output=True, text=True, check=False
            )
            assert done.returncode == 1
            assert said in done.stderr


PROJECT = """
cmake_minimum_required(VERSION 3.15)
project(simulator CXX)
find_package(chakra_et CONFIG REQUIRED)
add_executable(drain ${DRAIN})
target_link_libraries(drain PRIVATE chakra_et::feeder)
add_executable(ranks ${RANKS})
target_link_libraries(ranks PRIVATE chakra_et::feeder_c pthread)
"""


def test_cmake_finds_it(compiler: str, path: Path, tmp_path: Path) -> None:
    """By `chakra feeder --cmake-dir`, and by the root that the entry point `cmake.root` gives."""
    cmake = tool("cmake")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    told = run(sys.executable, "-m", "chakra_et.cli", "feeder", "--cmake-dir").strip()
    options = [f"-DDRAIN={CPP}/tools/drain.cpp", f"-DRANKS={CPP}/tests/ranks.cpp"]
    options.append(f"-DCMAKE_CXX_COMPILER={compiler}")
    by_root, build = tmp_path / "by-root", tmp_path / "build"
    run(cmake, "-S", tmp_path, "-B", by_root, f"-Dchakra_et_ROOT={native.CPP_DIR}", *options)
    run(cmake, "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={told}", *options)
    run(cmake, "--build", build)
    assert run(build / "drain", path).startswith("nodes=3 ")
    for rank in range(1, 20):
        path.with_name(f"t.{rank}.et").write_bytes(path.read_bytes())
    assert "ranks=20 nodes=60 again=60" in run(build / "ranks", path.parent / "t")


def test_sanitizers(compiler: str, tmp_path: Path) -> None:
    """All doors with address and undefined-behaviour sanitizers, on good and on bad traces."""

    program = tmp_path / "fuzz"
    flags = ["-std=c++17", "-g1", "-O0", "-fsanitize=address,undefined"]
    flags += ["-fno-sanitize-recover=all", *WARNINGS, "-I", str(INCLUDE)]
    run(compiler, *flags, CPP / "tests" / "fuzz.cpp", "-o", program)
    rng = random.Random("sanitizers")
    inputs = []
    for number in range(60):
        data = bytearray(trace(random_nodes(rng, rng.randrange(1, 12), 2, cyclic=True)))
        for _ in range(number % 4):
            data[rng.randrange(len(data))] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        inputs.append(tmp_path / f"{number}.et")
        inputs[-1].write_bytes(bytes(data))
    assert run(program, *inputs) == "60 inputs\n"


USE_V3 = """
#include "src/feeder_v3/et_feeder.h"
#include <cstdio>
#include <set>
// Sets of ids may be gone through within each other, and while their state changes.
void loop(Chakra::FeederV3::DependancyResolver& resolver) {
  unsigned long pairs = 0, firsts = 0, kept = 0;
  const auto& free_nodes = resolver.get_dependancy_free_nodes();
  for (uint64_t a : free_nodes) {
    for (uint64_t b : free_nodes) pairs += a < b;
  }
  for (uint64_t a : free_nodes) firsts += a - *free_nodes.begin();
  auto it = free_nodes.begin();
  if (it != free_nodes.begin()) throw std::runtime_error("not the same");
  for (uint64_t id : free_nodes) resolver.take_node(id);
  for (; it != free_nodes.end(); ++it) kept += *it;
  std::printf("%lu %lu %lu %zu\\n", pairs, firsts, kept, resolver.get_ongoing_nodes().size());
}
int main(int argc, char** argv) {
  try {
    Chakra::ETFeeder feeder(argv[argc - 1]);
    auto& resolver = feeder.getDependancyResolver();
    if (argc > 2) return loop(resolver), 0;
    unsigned long count = 0, bytes = 0, micros = 0;
    while (!resolver.get_dependancy_free_nodes().empty()) {
      auto free_nodes = resolver.get_dependancy_free_nodes();
      std::set<uint64_t> ids(free_nodes.begin(), free_nodes.end());
      for (uint64_t id : ids) {
        std::shared_ptr<Chakra::FeederV3::ETFeederNode> node = feeder.lookupNode(id);
        resolver.take_node(id);
        if (resolver.get_ongoing_nodes().empty()) return 3;
        micros += node->runtime();
        if (node->type() == ChakraProtoMsg::COMM_COLL_NODE) {
          bytes += node->comm_size<uint64_t>() + node->comm_priority<uint32_t>();
          if (node->has_attr("involved_dim")) return 4;
          if (node->pg_name<std::string>("none") != "none") return 8;
          if (node->get_attr_msg("comm_size").int64_val() != 1000) return 5;
          if (node->get_attr<Chakra::FeederV3::ChakraAttr>("comm_size").has_string_list()) return 6;
          if (node->is_cpu_op() || node->is_cpu_op<bool>(true) != true) return 7;
        }
        resolver.finish_node(id);
        ++count;
      }
    }
    std::printf("%lu nodes, %lu us, %lu bytes\\n", count, micros, bytes);
  } catch (const std::runtime_error& error) {
    std::printf("error: %s", error.what());
  }
}
"""
USE_MLCOMMONS = """
#include "src/feeder/et_feeder.h"
#include <cstdio>
int main(int argc, char** argv) {
  try {
    Chakra::ETFeeder feeder(argv[argc - 1]);
    unsigned long count = 0, bytes = 0, micros = 0;
    while (feeder.hasNodesToIssue()) {
      std::shared_ptr<Chakra::ETFeederNode> node = feeder.getNextIssuableNode();
      feeder.pushBackIssuableNode(node->id());
      node = feeder.getNextIssuableNode();
      if (feeder.lookupNode(node->id()) != node) return 3;
      micros += node->runtime();
      bytes += node->comm_size();
      if (node->has_other_attr("comm_size")) {
        if (node->get_other_attr("comm_size").int64_val() != 1000) return 4;
      }
      feeder.freeChildrenNodes(node->id());
      feeder.removeNode(node->id());
      ++count;
    }
    std::printf("%lu nodes, %lu us, %lu bytes\\n", count, micros, bytes);
  } catch (const std::runtime_error& error) {
    std::printf("error: %s", error.what());
  }
}
"""


@pytest.fixture(scope="session")
def messages(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the schema's C++ classes: `et_def.pb.h` and the compiled `et_def.pb.o`."""
    protoc = tool("protoc")
    if not any(
        Path(p, "google/protobuf/message.h").exists()
        for p in ("/usr/include", "/usr/local/include")
    ):
        pytest.skip("no headers of libprotobuf")
    folder = tmp_path_factory.mktemp("messages")
    run(
        protoc,
        f"--proto_path={schema_file('et_def.proto').parent}",
        f"--cpp_out={folder}",
        "et_def.proto",
    )
    source, target = folder / "et_def.pb.cc", folder / "et_def.pb.o"
    run(compiler, "-std=c++17", "-I", folder, "-c", source, "-o", target)
    return folder


@pytest.mark.parametrize(
    ("facade", "folder", "program"),
    [("astra-sim", "feeder_v3", USE_V3), ("mlcommons", "feeder", USE_MLCOMMONS)],
)
def test_facades(
    compiler: str,
    messages: Path,
    path: Path,
    tmp_path: Path,
    facade: str,
    folder: str,
    program: str,
) -> None:
    old = tmp_path / "src" / folder / "stale.cpp"
    old.parent.mkdir(parents=True)
    old.write_text("#error")
    command = [sys.executable, "-m", "chakra_et.cli", "feeder"]
    run(*command, "--facade", facade, "--into", tmp_path, "--yes")
    schema = tmp_path / "schema" / "protobuf" / "et_def.proto"
    assert schema.read_text() == schema_file("et_def.proto").read_text()
    (tmp_path / "main.cpp").write_text(program)
    sources = [tmp_path / "main.cpp", messages / "et_def.pb.o", *old.parent.glob("*.cpp")]
    assert old not in sources
    flags = ["-std=c++17", "-Wall", "-fsanitize=address", "-I", str(tmp_path), "-I", str(messages)]
    run(compiler, *flags, *sources, "-lprotobuf", "-pthread", "-o", tmp_path / "main")
    assert run(tmp_path / "main", path) == "3 nodes, 12 us, 1000 bytes\n"
    if facade == "astra-sim":
        wide = tmp_path / "wide.et"
        wide.write_bytes(trace([N(i) for i in range(5)]))
        assert run(tmp_path / "main", "loops", wide) == "10 10 10 5\n"
    for name, nodes, said in (
        ("cycle", [N(0), N(1, [2]), N(2, [1])], "cycle: 1 waits for 2 waits for 1"),
        ("dangling", [N(0), N(1, [7])], "node 1 waits for node 7"),
    ):
        bad = tmp_path / f"{name}.et"
        bad.write_bytes(trace(nodes))
        assert said in run(tmp_path / "main", bad)
