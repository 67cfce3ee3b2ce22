// Process groups of a set of ranks: groups PREFIX GROUP prints the members of a group, and the first
// collective that is ready on all members of its group.
#include <cinttypes>
#include <cstdio>

#include "chakra_et/feeder_set.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  auto set = chakra_et::FeederSet::open(argv[1]);
  if (!set) {
    std::printf("%s: %s\n", chakra_et::code_name(set.error().code), set.error().message().c_str());
    return 0;
  }
  for (uint64_t rank : set->members(argv[2])) std::printf("%" PRIu64 " ", rank);
  chakra_et::Collective collective;
  bool found = false;
  if (chakra_et::Error error = set->next_collective_ready(collective, found)) {
    std::printf("| %s\n", error.message().c_str());
  } else if (!found) {
    std::printf("| none\n");
  } else {
    std::printf("| %s:", collective.group.c_str());
    for (const auto& member : collective.members) {
      std::printf(" %" PRIu64 "/%" PRIu64, member.rank, member.id);
    }
    std::printf("\n");
  }
  return 0;
}
