// Who waits for whom: the answer to "why does nothing happen?".
#ifndef CHAKRA_ET_BLOCKED_HPP
#define CHAKRA_ET_BLOCKED_HPP

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine.hpp"
#include "shown.hpp"

namespace chakra_et {

struct Blocker {
  uint64_t id = 0;
  std::string name;
  State state = State::unknown;  // unknown: the trace does not hold it
};

struct Waiter {
  uint64_t id = 0;
  std::string name;
  std::vector<Blocker> waits_for;  // the first `limit`
  uint64_t more = 0;               // and how many there are beside them
};

struct Taken {
  uint64_t id = 0;
  std::string name;
  uint32_t type = 0;
  uint64_t waiters = 0;  // nodes that wait for it directly
};

struct Blocked {
  Counts counts;
  std::vector<Taken> taken;                    // handed out, not done
  std::vector<Waiter> waiting;                 // the first `limit`, by id
  std::vector<std::vector<uint64_t>> cycles;   // each node waits for the next, the last for the first
  std::vector<std::pair<uint64_t, uint64_t>> missing;  // (node, parent that is not in the trace)

  std::string text() const {
    std::string out = std::to_string(counts.done) + " done, " + std::to_string(counts.taken) +
                      " taken, " + std::to_string(counts.ready) + " ready, " +
                      std::to_string(counts.waiting) + " waiting\n";
    for (const Taken& node : taken) {
      out += "taken, not done: " + label(node.id, node.name) + ", type " +
             std::to_string(node.type) + "; " + std::to_string(node.waiters) + " wait for it\n";
    }
    for (const Waiter& node : waiting) {
      out += label(node.id, node.name) + " waits for ";
      for (size_t i = 0; i < node.waits_for.size(); ++i) {
        const Blocker& other = node.waits_for[i];
        bool absent = other.state == State::unknown;
        out += (i == 0 ? "" : ", ") + label(other.id, other.name) + " (" +
               (absent ? "not in the trace" : state_name(other.state)) + ")";
      }
      if (node.more != 0) out += ", and " + std::to_string(node.more) + " more";
      out += '\n';
    }
    for (const auto& cycle : cycles) out += cycle_text(cycle);
    return out;
  }

 private:
  static std::string cycle_text(const std::vector<uint64_t>& cycle) {
    constexpr size_t most = 20;
    std::string out = "cycle: ";
    for (size_t i = 0; i < cycle.size() && i < most; ++i) {
      out += std::to_string(cycle[i]) + " waits for ";
    }
    if (cycle.size() > most) out += std::to_string(cycle.size() - most) + " more waits for ";
    return out + std::to_string(cycle.front()) + '\n';
  }

  static std::string label(uint64_t id, const std::string& raw) {
    std::string name = shown(raw);
    if (name.size() > 60) name = name.substr(0, 57) + "...";
    return name.empty() ? std::to_string(id) : std::to_string(id) + " \"" + name + '"';
  }
};

namespace detail {

// Finds cycles among waiting nodes by depth-first search with an explicit stack.
class CycleSearch {
 public:
  CycleSearch(const Engine& engine, size_t limit, std::vector<std::vector<uint64_t>>& out)
      : engine_(engine), limit_(limit), out_(out) {}

  void from(uint64_t root) {
    if (out_.size() >= limit_ || colour_.count(root) != 0) return;
    push(root);
    while (!stack_.empty() && out_.size() < limit_) {
      Frame& top = stack_.back();
      if (top.next == top.parents.size()) {
        colour_[top.id] = black;
        stack_.pop_back();
        continue;
      }
      uint64_t parent = top.parents[top.next++].id;
      if (engine_.state(parent) != State::waiting) continue;
      auto found = colour_.find(parent);
      if (found == colour_.end()) {
        push(parent);
      } else if (found->second == grey) {
        record(parent);
      }
    }
    stack_.clear();
  }

 private:
  enum Colour : uint8_t { grey, black };
  struct Frame {
    uint64_t id;
    std::vector<Edge> parents;
    size_t next;
  };

  void push(uint64_t id) {
    colour_[id] = grey;
    stack_.push_back(Frame{id, engine_.gates(id), 0});
  }

  void record(uint64_t first) {
    std::vector<uint64_t> cycle;
    size_t i = stack_.size();
    while (stack_[--i].id != first) {
    }
    for (; i < stack_.size(); ++i) cycle.push_back(stack_[i].id);
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    out_.push_back(std::move(cycle));
  }

  const Engine& engine_;
  size_t limit_;
  std::vector<std::vector<uint64_t>>& out_;
  std::unordered_map<uint64_t, Colour> colour_;
  std::vector<Frame> stack_;
};

}  // namespace detail

inline Blocked find_blocked(const Engine& engine, size_t limit) {
  Blocked out;
  out.counts = engine.counts();
  std::unordered_map<uint64_t, uint64_t> waiters;
  detail::CycleSearch search(engine, limit, out.cycles);
  engine.each_waiting([&](uint64_t id) {
    Waiter waiter;
    waiter.id = id;
    std::unordered_set<uint64_t> told;
    for (const Edge& edge : engine.gates(id)) {
      State state = engine.state(edge.id);
      if (state == State::done || !told.insert(edge.id).second) continue;
      if (state == State::taken) ++waiters[edge.id];
      if (state == State::unknown && out.missing.size() < limit) {
        out.missing.emplace_back(id, edge.id);
      }
      if (out.waiting.size() >= limit) continue;
      if (waiter.waits_for.size() < limit) {
        waiter.waits_for.push_back(
            Blocker{edge.id, std::string(engine.node(edge.id).name()), state});
      } else {
        ++waiter.more;
      }
    }
    if (out.waiting.size() < limit) {
      waiter.name = std::string(engine.node(id).name());
      out.waiting.push_back(std::move(waiter));
    }
    search.from(id);
  });
  engine.each_taken([&](uint64_t id) {
    if (out.taken.size() >= limit) return;
    NodeView node = engine.node(id);
    out.taken.push_back(Taken{id, std::string(node.name()), node.type_number(), waiters[id]});
  });
  return out;
}

}  // namespace chakra_et

#endif  // CHAKRA_ET_BLOCKED_HPP
