// How a feeder is to behave, and the states of a node.
#ifndef CHAKRA_ET_OPTIONS_HPP
#define CHAKRA_ET_OPTIONS_HPP

#include <cstdint>

#include "node.hpp"

namespace chakra_et {

enum class Order : uint8_t {
  id = 0,     // ready nodes by ascending id
  start = 1,  // by recorded start time, then id
};

// What to do about a parent that the trace does not hold, or about a node that waits for itself.
enum class Fault : uint8_t {
  fail = 0,  // an error that names the node
  drop = 1,  // as if the edge were not there
  wait = 2,  // the node stays blocked, and blocked() says why
};

struct Options {
  Order order = Order::id;
  Fault missing_parent = Fault::fail;
  Fault self_edge = Fault::fail;
  uint32_t gate = edge_all;      // the edge kinds that gate; edge_inferred among them or not
  bool skip_metadata = false;    // metadata nodes are done by themselves
  uint64_t window = 0;           // nodes held at once; 0: the whole trace, indexed
  bool strict_window = false;    // never hold more than the window, fail instead
  uint64_t repeat = 1;           // how often to run the trace; 0: for ever
  uint64_t max_record = 1u << 28;                   // bytes of one node
  uint64_t max_input = uint64_t{1} << 36;           // bytes of a stream that is read whole
};

enum class State : uint8_t { unknown = 0, waiting = 1, ready = 2, taken = 3, done = 4 };

inline const char* state_name(State state) {
  static const char* const names[] = {"unknown", "waiting", "ready", "taken", "done"};
  return names[static_cast<unsigned>(state)];
}

// The answer of Feeder::next().
enum class Next : uint8_t {
  node = 0,      // a node was taken
  pending = 1,   // none is ready, but taken ones will make some ready when they are done
  finished = 2,  // every node is done
  blocked = 3,   // nodes are left, none is ready and none is taken: see blocked()
  failed = 4,    // the input is broken: see error()
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_OPTIONS_HPP
