// Loads a trace, takes and finishes every node, and prints how long both took. For benchmarks.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "chakra_et/feeder.hpp"

static double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: drain TRACE [WINDOW]\n");
    return 2;
  }
  chakra_et::Options options;
  if (argc > 2) options.window = std::strtoull(argv[2], nullptr, 10);
  double start = seconds();
  auto feeder = chakra_et::Feeder::open(argv[1], options);
  if (!feeder) {
    std::fprintf(stderr, "%s\n", feeder.error().message().c_str());
    return 1;
  }
  double loaded = seconds(), first = 0;
  uint64_t count = 0, sum = 0;
  chakra_et::NodeView node;
  chakra_et::Next answer;
  while ((answer = feeder->next(node)) == chakra_et::Next::node) {
    if (count++ == 0) first = seconds();
    sum += node.type_number() + node.duration_micros() + node.is_cpu_op().value_or(false);
    if (auto error = feeder->done(node.id())) {
      std::fprintf(stderr, "%s\n", error.message().c_str());
      return 1;
    }
  }
  double end = seconds();
  std::printf("nodes=%" PRIu64 " load=%.4f drain=%.4f first=%.6f sum=%" PRIu64 " bytes=%.1f\n", count,
              loaded - start, end - loaded, first - start, sum,
              static_cast<double>(feeder->memory()) / static_cast<double>(count ? count : 1));
  if (answer == chakra_et::Next::blocked) {
    std::fprintf(stderr, "%s", feeder->blocked().text().c_str());
    return 1;
  }
  return 0;
}
