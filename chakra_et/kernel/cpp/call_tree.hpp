// Who calls whom as intervals of places: what `call_tree` in linker/edges/data/call_tree.py finds.
#ifndef CHAKRA_ET_KERNEL_CALL_TREE_HPP
#define CHAKRA_ET_KERNEL_CALL_TREE_HPP

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace chakra_et {
namespace kernel {

class CallTree {
 public:
  std::vector<int64_t> position, end, last_begun;

  // False for callers that there are none of, and where nodes do not each have a place of their own
  // in the order in which they began.
  bool find(const int64_t* caller, const int64_t* begun, size_t count) {
    std::vector<int64_t> order(count, -1);
    first_.assign(count + 1, 0);
    for (size_t node = 0; node < count; ++node) {
      auto place = static_cast<uint64_t>(begun[node]);
      if (place >= count || order[place] != -1) return false;
      order[place] = static_cast<int64_t>(node);
      if (caller[node] == -1) continue;
      if (static_cast<uint64_t>(caller[node]) >= count) return false;
      ++first_[static_cast<size_t>(caller[node]) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    callees_.resize(static_cast<size_t>(first_.back()));
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    for (int64_t node : order) {
      if (caller[node] != -1) callees_[next[caller[node]]++] = node;
    }
    position.assign(count, -1);
    end.resize(count);
    last_begun.assign(begun, begun + count);
    int64_t placed = 0;
    for (int64_t node : order) {
      if (caller[node] == -1) walk(node, placed);
    }
    // Nodes on a circle of callers, and what those call, call nothing.
    for (size_t node = 0; node < count; ++node) {
      if (position[node] != -1) continue;
      position[node] = placed++;
      end[node] = placed;
    }
    return true;
  }

 private:
  // Place a node, and all that it calls, behind those that have their places.
  void walk(int64_t root, int64_t& placed) {
    enter(root, placed);
    while (!open_.empty()) {
      auto [node, callee] = open_.back();
      if (callee < first_[node + 1]) {
        ++open_.back().callee;
        enter(callees_[callee], placed);
        continue;
      }
      end[node] = placed;
      open_.pop_back();
      if (open_.empty()) continue;
      int64_t& last = last_begun[open_.back().node];
      last = std::max(last, last_begun[node]);
    }
  }

  void enter(int64_t node, int64_t& placed) {
    position[node] = placed++;
    open_.push_back({node, first_[node]});
  }

  struct Open {
    int64_t node, callee;  // the next one of its callees
  };
  std::vector<int64_t> first_, callees_;
  std::vector<Open> open_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_CALL_TREE_HPP
