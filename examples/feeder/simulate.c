/* Replays a trace on one resource, through the C interface.
 *
 *   CPP=$(dirname "$(chakra feeder --include-dir)")
 *   c++ -std=c++17 -O2 -I "$CPP/include" -c "$CPP/src/feeder_c.cpp" -o feeder_c.o
 *   cc -O2 -I "$CPP/include" -c simulate.c -o simulate.o && c++ simulate.o feeder_c.o -o simulate
 *   ./simulate trace.0.et
 */
#include <inttypes.h>
#include <stdio.h>

#include "chakra_et/feeder.h"

int main(int argc, char** argv) {
  chakra_et_feeder* feeder;
  chakra_et_error error;
  chakra_et_node node;
  int64_t now = 0, bytes = 0, size;
  uint64_t count = 0;
  int answer;

  if (argc != 2) return 2;
  if (chakra_et_open(argv[1], NULL, &feeder, &error) != CHAKRA_ET_OK) {
    fprintf(stderr, "%s: %s\n", argv[1], error.message);
    return 1;
  }
  while ((answer = chakra_et_take_next(feeder, &node, &error)) == CHAKRA_ET_NEXT_NODE) {
    now += node.duration_ns;
    if (chakra_et_attr_int(&node, "comm_size", &size)) bytes += size;
    ++count;
    if (chakra_et_done(feeder, node.id, &error) != CHAKRA_ET_OK) break;
  }
  if (answer == CHAKRA_ET_NEXT_BLOCKED) {
    char text[4096];
    chakra_et_blocked(feeder, 10, text, sizeof text);
    fputs(text, stderr);
  }
  printf("%" PRIu64 " nodes, %" PRId64 " ns, %" PRId64 " bytes\n", count, now, bytes);
  chakra_et_close(feeder);
  return answer != CHAKRA_ET_NEXT_FINISHED;
}
