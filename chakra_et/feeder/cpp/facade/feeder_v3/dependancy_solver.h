// Which nodes are free and which are under way. The spelling is the interface's.
#ifndef CHAKRA_ET_FACADE_V3_DEPENDANCY_SOLVER_H
#define CHAKRA_ET_FACADE_V3_DEPENDANCY_SOLVER_H

#include <unordered_set>
#include <vector>

#include "common.h"

namespace Chakra {
namespace FeederV3 {

// Ids of the free or the taken nodes, ascending. The resolver's own sets follow its state; a copy
// stays as it was. Iterating looks at the state when begin() is called.
class NodeIdSet {
 public:
  enum class Which { free, taken };

  NodeIdSet(const chakra_et::Feeder& feeder, Which which) : feeder_(&feeder), which_(which) {}
  NodeIdSet(const NodeIdSet& other) : which_(other.which_), ids_(other.now()) {}
  NodeIdSet& operator=(const NodeIdSet& other) {
    if (this != &other) ids_ = other.now();
    if (this != &other) feeder_ = nullptr;
    return *this;
  }

  size_t size() const {
    if (feeder_ == nullptr) return ids_.size();
    chakra_et::Counts counts = feeder_->counts();
    return which_ == Which::free ? counts.ready : counts.taken;
  }
  bool empty() const { return size() == 0; }
  size_t count(NodeId id) const {
    if (feeder_ == nullptr) return std::binary_search(ids_.begin(), ids_.end(), id);
    return feeder_->state(id) ==
           (which_ == Which::free ? chakra_et::State::ready : chakra_et::State::taken);
  }
  std::vector<NodeId>::const_iterator begin() const {
    if (feeder_ != nullptr) ids_ = now();
    return ids_.begin();
  }
  std::vector<NodeId>::const_iterator end() const { return ids_.end(); }

  operator std::unordered_set<NodeId>() const {
    std::vector<NodeId> ids = now();
    return std::unordered_set<NodeId>(ids.begin(), ids.end());
  }

 private:
  std::vector<NodeId> now() const {
    if (feeder_ == nullptr) return ids_;
    if (which_ == Which::free) return feeder_->ready();
    std::vector<NodeId> ids;
    feeder_->engine().each_taken([&](uint64_t id) { ids.push_back(id); });
    return ids;
  }

  const chakra_et::Feeder* feeder_ = nullptr;  // null: a copy
  Which which_;
  mutable std::vector<NodeId> ids_;
};

class DependancyResolver {
 public:
  explicit DependancyResolver(chakra_et::Feeder& feeder)
      : feeder_(feeder),
        free_(feeder, NodeIdSet::Which::free),
        ongoing_(feeder, NodeIdSet::Which::taken) {}
  DependancyResolver(const DependancyResolver&) = delete;
  DependancyResolver& operator=(const DependancyResolver&) = delete;

  const NodeIdSet& get_dependancy_free_nodes() const { return free_; }
  const NodeIdSet& get_ongoing_nodes() const { return ongoing_; }

  void take_node(NodeId id) { check(feeder_.take(id)); }
  void push_back_node(NodeId id) { check(feeder_.push_back(id)); }

  // Throws when nodes are left that can never run, and says what they wait for: a simulator that
  // sees no free node would take the trace for finished.
  void finish_node(NodeId id) {
    check(feeder_.done(id));
    refuse_stuck();
  }

  void refuse_stuck() const {
    chakra_et::Counts counts = feeder_.counts();
    if (counts.ready == 0 && counts.taken == 0 && counts.waiting != 0) {
      throw std::runtime_error("chakra-et feeder: nodes are left that can never run: " +
                               feeder_.blocked(8).text());
    }
  }

 private:
  chakra_et::Feeder& feeder_;
  NodeIdSet free_, ongoing_;
};

}  // namespace FeederV3
}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_V3_DEPENDANCY_SOLVER_H
