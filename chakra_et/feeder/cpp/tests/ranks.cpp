// Many ranks at once in one process: memory, file descriptors, fairness, and one thread per rank.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <sys/resource.h>
#include <thread>

#include "chakra_et/feeder_set.hpp"

static int open_files() {
  int count = 0;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  auto set = chakra_et::FeederSet::open(argv[1]);
  if (!set) {
    std::fprintf(stderr, "%s\n", set.error().message().c_str());
    return 1;
  }
  int files = open_files();
  // Fair: after k rounds every rank has handed out about k nodes.
  std::map<uint64_t, uint64_t> handed;
  uint64_t rank = 0, count = 0, widest = 0;
  chakra_et::NodeView node;
  while (set->next(rank, node) == chakra_et::Next::node) {
    ++handed[rank];
    set->feeder(rank)->done(node.id());
    if (++count % 50000 == 0) {
      auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
      auto ends = std::minmax_element(handed.begin(), handed.end(), by_count);
      widest = std::max(widest, ends.second->second - ends.first->second);
    }
  }
  bool finished = set->is_finished();
  // One thread for each share of the ranks, at the same time.
  std::vector<std::thread> threads;
  std::vector<uint64_t> again(4);
  for (size_t share = 0; share < again.size(); ++share) {
    threads.emplace_back([&, share] {
      for (auto& entry : set->feeders()) {
        if (entry.first % again.size() != share) continue;
        chakra_et::NodeView mine;
        entry.second.reset();
        while (entry.second.next(mine) == chakra_et::Next::node) {
          ++again[share];
          entry.second.done(mine.id());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t total = 0;
  for (uint64_t part : again) total += part;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("ranks=%zu nodes=%" PRIu64 " again=%" PRIu64 " files=%d rss_mb=%ld spread=%" PRIu64 "\n",
              set->size(), count, total, files, usage.ru_maxrss / 1024, widest);
  return finished && total == count ? 0 : 1;
}
