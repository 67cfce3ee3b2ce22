// What a feeder does, whether it holds the whole trace or a window of it.
#ifndef CHAKRA_ET_ENGINE_HPP
#define CHAKRA_ET_ENGINE_HPP

#include <functional>
#include <vector>

#include "error.hpp"
#include "frames.hpp"
#include "node.hpp"
#include "options.hpp"

namespace chakra_et {

struct Counts {
  uint64_t waiting = 0, ready = 0, taken = 0, done = 0;
  uint64_t held = 0;      // nodes in memory or indexed, not done
  uint64_t peak_held = 0;
  bool all_read = true;   // false: the input goes on
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Next next(NodeView& out) = 0;
  virtual Error take(uint64_t id) = 0;
  virtual Error done(uint64_t id) = 0;
  virtual Error push_back(uint64_t id) = 0;

  // Ready ids in order, from the first or from the one after `after`; returns how many.
  virtual size_t ready(uint64_t* out, size_t room) const = 0;
  virtual bool is_finished() const = 0;

  virtual State state(uint64_t id) const = 0;
  virtual NodeView node(uint64_t id) const = 0;  // !valid() when it is not held
  virtual std::vector<uint64_t> children(uint64_t id) const = 0;
  virtual std::vector<Edge> gates(uint64_t id) const = 0;  // the parents that gate
  virtual void each_taken(const std::function<void(uint64_t)>& visit) const = 0;
  virtual void each_waiting(const std::function<void(uint64_t)>& visit) const = 0;
  virtual void each_node(const std::function<void(const NodeView&)>& visit) const = 0;  // by id

  virtual Counts counts() const = 0;
  virtual Error restart() = 0;
  virtual Error error() const = 0;
  virtual MetadataView metadata() const = 0;
  virtual size_t memory() const = 0;  // bytes held beside the input
};

// The parents of a node that count under the options, as listed.
inline std::vector<Edge> gating_parents(const NodeView& node, uint32_t gate) {
  if (gate == edge_all) return node.parents();
  std::vector<Edge> edges = node.parents(), kept;
  for (const Edge& edge : edges) {
    if ((edge.kind & gate) != 0 && (!edge.inferred || (gate & edge_inferred) != 0)) {
      kept.push_back(edge);
    }
  }
  return kept;
}

// The same without edges that the options drop; `exists` says whether the trace has a node.
template <class Exists>
std::vector<Edge> open_parents(const NodeView& node, const Options& options, Exists exists) {
  std::vector<Edge> edges = gating_parents(node, options.gate), kept;
  for (const Edge& edge : edges) {
    bool own = edge.id == node.id() && options.self_edge == Fault::drop;
    bool missing = options.missing_parent == Fault::drop && !exists(edge.id);
    if (!own && !missing) kept.push_back(edge);
  }
  return kept;
}

inline const char* refusal(State state) { return state_name(state); }

}  // namespace chakra_et

#endif  // CHAKRA_ET_ENGINE_HPP
