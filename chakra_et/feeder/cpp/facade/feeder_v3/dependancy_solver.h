// Which nodes are free and which are under way. The spelling is the interface's.
#ifndef CHAKRA_ET_FACADE_V3_DEPENDANCY_SOLVER_H
#define CHAKRA_ET_FACADE_V3_DEPENDANCY_SOLVER_H

#include <iterator>
#include <memory>
#include <unordered_set>
#include <vector>

#include "common.h"

namespace Chakra {
namespace FeederV3 {

// Ids of the free or the taken nodes, ascending. The resolver's own sets follow its state; a copy
// stays as it was. An iterator goes through the ids at the time of begin(), whatever happens to the
// set or to other iterators meanwhile.
class NodeIdSet {
 public:
  enum class Which { free, taken };

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = NodeId;
    using difference_type = std::ptrdiff_t;
    using pointer = const NodeId*;
    using reference = const NodeId&;

    const_iterator() = default;  // behind the last id of any set
    explicit const_iterator(std::vector<NodeId> ids)
        : ids_(std::make_shared<const std::vector<NodeId>>(std::move(ids))) {}

    reference operator*() const { return (*ids_)[at_]; }
    pointer operator->() const { return &(*ids_)[at_]; }
    const_iterator& operator++() {
      ++at_;
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) {
      if (a.ended() || b.ended()) return a.ended() == b.ended();
      return *a == *b;
    }
    friend bool operator!=(const const_iterator& a, const const_iterator& b) { return !(a == b); }

   private:
    bool ended() const { return !ids_ || at_ >= ids_->size(); }

    std::shared_ptr<const std::vector<NodeId>> ids_;
    size_t at_ = 0;
  };
  using iterator = const_iterator;
  using value_type = NodeId;

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
  const_iterator begin() const { return const_iterator(now()); }
  const_iterator end() const { return const_iterator(); }

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
  std::vector<NodeId> ids_;  // of a copy
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
