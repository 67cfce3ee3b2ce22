// The same where calls find what they wait for while running: what `run_resolving` in
// replay/resolving.py does, which says how.
#ifndef CHAKRA_ET_KERNEL_RESOLVING_REPLAY_HPP
#define CHAKRA_ET_KERNEL_RESOLVING_REPLAY_HPP

#include <functional>
#include <queue>
#include <utility>

#include "replay.hpp"

namespace chakra_et {
namespace kernel {

// Calls that wait for streams, in compressed rows, and device work in the order of each stream.
// Of more targets than `many`, those are noted that hold a call up.
struct Waiting {
  const int64_t *call, *offset, *scope;
  size_t calls, scopes;
  const int64_t *work, *stream, *launch, *own;
  size_t works;
  size_t many;
};

class ResolvingReplay : public Replay {
 public:
  std::vector<int64_t> found_target, found_call;
  uint64_t picked = 0;  // nodes, for guards that count work

  ResolvingReplay(const Plan& plan, const Waiting& waiting) : Replay(plan), waiting_(waiting) {}

  bool run() {
    if (!index() || !is_sound()) return false;
    end.assign(plan_.nodes, -1);
    take_calls();
    take_work();
    for (size_t node = 0; node < plan_.nodes; ++node) {
      Key key;
      if (waits_[node] != 0) continue;
      if (!key_of(static_cast<uint32_t>(node), key)) return false;
      ready_.push(key);
    }
    while (has_held_ || !ready_.empty()) {
      if (!visit(take())) return false;
    }
    done.resize(plan_.nodes);
    std::transform(waits_.begin(), waits_.end(), done.begin(), [](uint32_t n) { return n == 0; });
    return true;
  }

 private:
  using Key = std::pair<int64_t, uint32_t>;  // time and node
  using Heap = std::priority_queue<Key, std::vector<Key>, std::greater<Key>>;
  static constexpr int64_t none = -1;

  bool is_sound() const {
    auto below = [](const int64_t* rows, size_t count, int64_t least, size_t behind) {
      return std::all_of(rows, rows + count, [=](int64_t row) {
        return row >= least && (row < 0 || static_cast<size_t>(row) < behind);
      });
    };
    const Waiting& given = waiting_;
    return given.works < std::numeric_limits<uint32_t>::max() &&
           below(given.call, given.calls, 0, plan_.nodes) &&
           below(given.work, given.works, 0, plan_.nodes) &&
           below(given.stream, given.works, 0, given.works) &&
           below(given.scope, given.scopes, 0, streams()) &&
           below(given.launch, given.works, none, plan_.nodes) &&
           std::is_sorted(given.offset, given.offset + given.calls + 1) && given.offset[0] >= 0 &&
           static_cast<size_t>(given.offset[given.calls]) <= given.scopes;
  }

  size_t streams() const {
    const int64_t* last = std::max_element(waiting_.stream, waiting_.stream + waiting_.works);
    return waiting_.works == 0 ? 0 : static_cast<size_t>(*last) + 1;
  }

  void take_calls() {
    call_.assign(plan_.nodes, none);
    for (size_t i = 0; i < waiting_.calls; ++i) {
      call_[static_cast<size_t>(waiting_.call[i])] = static_cast<int64_t>(i);
    }
  }

  void take_work() {
    position_.assign(plan_.nodes, none);
    launched_.assign(plan_.nodes, none);
    next_launched_.assign(waiting_.works, none);
    awaiting_.assign(plan_.nodes, none);
    last_.assign(streams(), none);
    coming_.resize(streams());
    for (size_t i = 0; i < waiting_.works; ++i) {
      position_[static_cast<size_t>(waiting_.work[i])] = static_cast<int64_t>(i);
    }
    for (size_t i = 0; i < waiting_.works; ++i) {
      if (waiting_.launch[i] < 0) {
        settle(static_cast<size_t>(waiting_.stream[i]), waiting_.work[i]);
      } else {
        int64_t& first = launched_[static_cast<size_t>(waiting_.launch[i])];
        next_launched_[i] = first;
        first = static_cast<int64_t>(i);
      }
    }
  }

  // When a node starts, and which: nodes are picked in this order.
  bool key_of(uint32_t node, Key& key) const {
    key.second = node;
    return add(start[node], lag_[node], key.first);
  }

  // What became ready last is not pushed until the next pick: often it is that pick.
  void hold(const Key& key) {
    if (has_held_) ready_.push(held_);
    held_ = key;
    has_held_ = true;
  }

  Key take() {
    ++picked;
    if (has_held_ && (ready_.empty() || held_ < ready_.top())) {
      has_held_ = false;
      return held_;
    }
    Key key = ready_.top();
    ready_.pop();
    if (has_held_) ready_.push(held_);
    has_held_ = false;
    return key;
  }

  bool visit(const Key& key) {
    auto [begin, node] = key;
    if (call_[node] != none) {
      int64_t ready = find_targets(node, begin);
      if (waits_[node] != 0) return true;
      if (ready != begin) {
        hold({ready, node});
        return true;
      }
    }
    start[node] = begin;
    if (!add(begin, plan_.duration[node], end[node])) return false;
    if (launched_[node] != none && !launch(node)) return false;
    auto push = [this](uint32_t follower) {
      Key next;
      if (!key_of(follower, next)) return false;
      hold(next);
      return true;
    };
    if (!follow(node, push)) return false;
    int64_t i = std::exchange(awaiting_[node], none);
    for (; i != none; i = waits_on_[static_cast<size_t>(i)].second) {
      if (!release(waits_on_[static_cast<size_t>(i)].first, end[node], push)) return false;
    }
    return true;
  }

  // The work that a call launches is given to its streams when the call's own part has ended.
  bool launch(uint32_t node) {
    int64_t i = launched_[node], given;
    if (!add(start[node], waiting_.own[i], given)) return false;
    given = std::min(given, end[node]);
    for (; i != none; i = next_launched_[static_cast<size_t>(i)]) {
      coming_[static_cast<size_t>(waiting_.stream[i])].push(
          {given, static_cast<uint32_t>(waiting_.work[i])});
    }
    return true;
  }

  // Looks up what a call waits for; when it may start if all of that has ended.
  int64_t find_targets(uint32_t node, int64_t now) {
    auto call = static_cast<size_t>(call_[node]);
    call_[node] = none;
    targets_.clear();
    for (int64_t i = waiting_.offset[call]; i < waiting_.offset[call + 1]; ++i) {
      int64_t target = target_of(static_cast<size_t>(waiting_.scope[i]), now);
      if (target >= 0) targets_.push_back(static_cast<uint32_t>(target));
    }
    if (targets_.size() > waiting_.many) keep_holding();
    int64_t ready = now;
    for (uint32_t target : targets_) {
      found_target.push_back(target);
      found_call.push_back(node);
      if (end[target] < 0) {
        ++waits_[node];
        waits_on_.emplace_back(node, awaiting_[target]);
        awaiting_[target] = static_cast<int64_t>(waits_on_.size()) - 1;
      } else {
        ready = std::max(ready, end[target]);
      }
    }
    // A delay is that of the call, not of its return.
    start[node] = ready;
    lag_[node] = 0;
    return ready;
  }

  // The last work that a stream had been given by now.
  int64_t target_of(size_t stream, int64_t now) {
    Heap& coming = coming_[stream];
    for (; !coming.empty() && coming.top().first <= now; coming.pop()) {
      settle(stream, coming.top().second);
    }
    return last_[stream];
  }

  void settle(size_t stream, int64_t node) {
    int64_t& last = last_[stream];
    if (last < 0 || position_[static_cast<size_t>(node)] > position_[static_cast<size_t>(last)]) {
      last = node;
    }
  }

  // Of many targets, all that have not ended, else the last.
  void keep_holding() {
    auto ended = [this](uint32_t target) { return end[target] >= 0; };
    if (std::all_of(targets_.begin(), targets_.end(), ended)) {
      auto later = [this](uint32_t a, uint32_t b) { return end[a] < end[b]; };
      targets_ = {*std::max_element(targets_.begin(), targets_.end(), later)};
    } else {
      targets_.erase(std::remove_if(targets_.begin(), targets_.end(), ended), targets_.end());
    }
  }

  const Waiting waiting_;
  std::vector<int64_t> call_;           // which of the calls a node is, until it is picked
  std::vector<int64_t> position_;       // of work among all work
  std::vector<int64_t> launched_;       // the last work that a node launches,
  std::vector<int64_t> next_launched_;  // and for each the one before it
  std::vector<int64_t> last_;           // work that each stream has been given
  std::vector<Heap> coming_;            // work that each stream will be given
  std::vector<int64_t> awaiting_;       // the last call that waits for a target so found,
  std::vector<std::pair<uint32_t, int64_t>> waits_on_;  // each call, and the one before it
  std::vector<uint32_t> targets_;
  Heap ready_;
  Key held_;
  bool has_held_ = false;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_RESOLVING_REPLAY_HPP
