// When each node of a plan starts and ends: what `run` in replay/engine.py does, which says how.
#ifndef CHAKRA_ET_KERNEL_REPLAY_HPP
#define CHAKRA_ET_KERNEL_REPLAY_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace chakra_et {
namespace kernel {

// Nodes and edges as Python lays them out; `start` is without the lag of a node.
struct Plan {
  const int64_t *duration, *lag, *start;
  size_t nodes;
  const int64_t *source, *target;
  size_t edges;
};

// False where a sum does not fit.
inline bool add(int64_t a, int64_t b, int64_t& sum) {
  using limits = std::numeric_limits<int64_t>;
  if (b > 0 ? a > limits::max() - b : a < limits::min() - b) return false;
  sum = a + b;
  return true;
}

class Replay {
 public:
  std::vector<int64_t> start, end;
  std::vector<uint8_t> done;
  uint64_t followed = 0;  // edges, for guards that count work

  explicit Replay(const Plan& plan)
      : start(plan.start, plan.start + plan.nodes),
        plan_(plan),
        lag_(plan.lag, plan.lag + plan.nodes),
        waits_(plan.nodes, 0) {}

  // False for a plan that is for Python: rows that no node has, or times that do not fit.
  bool run() {
    if (!index()) return false;
    end.assign(plan_.nodes, 0);
    done.assign(plan_.nodes, 0);
    std::vector<uint32_t> ready;
    for (size_t node = plan_.nodes; node-- > 0;) {
      if (waits_[node] == 0) ready.push_back(static_cast<uint32_t>(node));
    }
    auto push = [&](uint32_t node) {
      ready.push_back(node);
      return true;
    };
    while (!ready.empty()) {
      uint32_t node = ready.back();
      ready.pop_back();
      done[node] = 1;
      if (!add(start[node], lag_[node], start[node])) return false;
      if (!add(start[node], plan_.duration[node], end[node])) return false;
      if (!follow(node, push)) return false;
    }
    return true;
  }

 protected:
  // Followers in compressed rows, in one pass over the edges to count them and one to place them.
  bool index() {
    if (plan_.nodes >= std::numeric_limits<uint32_t>::max()) return false;
    auto is_row = [&](int64_t row) { return row >= 0 && static_cast<size_t>(row) < plan_.nodes; };
    offsets_.assign(plan_.nodes + 1, 0);
    for (size_t i = 0; i < plan_.edges; ++i) {
      if (!is_row(plan_.source[i]) || !is_row(plan_.target[i])) return false;
      ++offsets_[static_cast<size_t>(plan_.source[i])];
      ++waits_[static_cast<size_t>(plan_.target[i])];
    }
    size_t before = 0;
    for (size_t& offset : offsets_) offset = before += offset;
    followers_.resize(plan_.edges);
    for (size_t i = plan_.edges; i-- > 0;) {
      followers_[--offsets_[static_cast<size_t>(plan_.source[i])]] =
          static_cast<uint32_t>(plan_.target[i]);
    }
    return true;
  }

  // One more of what `follower` waits for has ended; those that are ready are given to `push`.
  template <class Push>
  bool release(uint32_t follower, int64_t finish, Push& push) {
    ++followed;
    start[follower] = std::max(start[follower], finish);
    return --waits_[follower] != 0 || push(follower);
  }

  template <class Push>
  bool follow(uint32_t node, Push& push) {
    for (size_t i = offsets_[node]; i < offsets_[node + 1]; ++i) {
      if (!release(followers_[i], end[node], push)) return false;
    }
    return true;
  }

  const Plan plan_;
  std::vector<int64_t> lag_;
  std::vector<uint32_t> waits_;  // how many of those that a node waits for have not ended
  std::vector<size_t> offsets_;
  std::vector<uint32_t> followers_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_REPLAY_HPP
