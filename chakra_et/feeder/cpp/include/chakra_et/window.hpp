// The engine for a window of a trace: reads on while fewer than `window` nodes are held, and past
// that only when nothing could run otherwise. Any order of nodes in the file is allowed.
#ifndef CHAKRA_ET_WINDOW_HPP
#define CHAKRA_ET_WINDOW_HPP

#include <algorithm>
#include <memory>
#include <new>
#include <set>

#include "engine.hpp"
#include "reader.hpp"
#include "seen.hpp"

namespace chakra_et {

class Window final : public Engine {
 public:
  Error open(Reopen reopen, const Options& options) {
    options_ = options;
    reopen_ = std::move(reopen);
    if (Error error = reader_.open(reopen_, options_.max_record)) return error;
    return fill();
  }

  Next next(NodeView& out) override {
    if (error_) return Next::failed;
    if (ready_.empty()) {
      if (taken_ != 0) return Next::pending;
      return is_finished() ? Next::finished : Next::blocked;
    }
    uint32_t i = held_[ready_.begin()->second];
    ready_.erase(ready_.begin());
    slots_[i].state = State::taken;
    ++taken_;
    out = view(slots_[i]);
    return Next::node;
  }

  Error take(uint64_t id) override {
    if (error_) return error_;
    Slot* slot = find(id);
    if (slot == nullptr || slot->state != State::ready) {
      return slot == nullptr && !seen_.contains(id)
                 ? make_error(Code::unknown_node, id)
                 : make_error(Code::not_ready, id, 0, 0, refusal(state(id)));
    }
    ready_.erase({slot->key, id});
    slot->state = State::taken;
    ++taken_;
    return Error{};
  }

  Error done(uint64_t id) override {
    if (error_) return error_;
    if (Error error = check_taken(id)) return error;
    --taken_;
    finish(held_[id]);
    return fill();
  }

  Error push_back(uint64_t id) override {
    if (error_) return error_;
    if (Error error = check_taken(id)) return error;
    Slot* slot = find(id);
    slot->state = State::ready;
    ready_.insert({slot->key, id});
    --taken_;
    return Error{};
  }

  size_t ready(uint64_t* out, size_t room) const override {
    size_t count = 0;
    for (auto it = ready_.begin(); it != ready_.end() && count < room; ++it) {
      out[count++] = it->second;
    }
    return count;
  }

  bool is_finished() const override { return ended_ && held_.empty() && !error_; }

  State state(uint64_t id) const override {
    auto found = held_.find(id);
    if (found != held_.end()) return slots_[found->second].state;
    return seen_.contains(id) ? State::done : State::unknown;
  }

  NodeView node(uint64_t id) const override {
    auto found = held_.find(id);
    return found == held_.end() ? NodeView() : view(slots_[found->second]);
  }

  std::vector<uint64_t> children(uint64_t id) const override {  // of those read so far
    std::vector<uint64_t> out;
    auto found = held_.find(id);
    if (found == held_.end()) return out;
    for (uint32_t child : slots_[found->second].children) out.push_back(slots_[child].id);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  std::vector<Edge> gates(uint64_t id) const override {
    return open_parents(node(id), options_,
                        [this](uint64_t other) { return !ended_ || seen_.contains(other); });
  }

  void each_taken(const std::function<void(uint64_t)>& visit) const override {
    each_in(State::taken, visit);
  }
  void each_waiting(const std::function<void(uint64_t)>& visit) const override {
    each_in(State::waiting, visit);
  }

  void each_node(const std::function<void(const NodeView&)>& visit) const override {
    std::vector<uint64_t> ids;  // those held
    for (const auto& entry : held_) ids.push_back(entry.first);
    std::sort(ids.begin(), ids.end());
    for (uint64_t id : ids) visit(node(id));
  }

  Counts counts() const override {
    Counts counts;
    counts.ready = ready_.size();
    counts.taken = taken_;
    counts.held = held_.size();
    counts.waiting = counts.held - counts.ready - counts.taken;
    counts.done = done_;
    counts.peak_held = peak_;
    counts.all_read = ended_;
    return counts;
  }

  Error restart() override {
    slots_.clear();
    free_.clear();
    held_.clear();
    unread_.clear();
    ready_.clear();
    seen_.clear();
    taken_ = done_ = 0;
    ended_ = false;
    error_ = Error{};
    if (Error error = reader_.open(reopen_, options_.max_record)) return error_ = error;
    return fill();
  }

  Error error() const override { return error_; }
  MetadataView metadata() const override { return MetadataView(reader_.metadata()); }
  size_t memory() const override {
    size_t bytes = seen_.bytes() + reader_.memory();
    for (const Slot& slot : slots_) bytes += sizeof(Slot) + slot.size + slot.children.size() * 4;
    return bytes + held_.size() * 40 + ready_.size() * 48;
  }

 private:
  struct Slot {
    uint64_t id = 0;
    std::unique_ptr<wire::Byte[]> bytes;
    uint32_t size = 0, need = 0;
    State state = State::unknown;
    int64_t key = 0;  // 0, or the start time
    std::vector<uint32_t> children;
  };

  static NodeView view(const Slot& slot) {
    return NodeView(wire::Span{slot.bytes.get(), slot.bytes.get() + slot.size});
  }

  Slot* find(uint64_t id) {
    auto found = held_.find(id);
    return found == held_.end() ? nullptr : &slots_[found->second];
  }

  Error check_taken(uint64_t id) {
    Slot* slot = find(id);
    if (slot != nullptr && slot->state == State::taken) return Error{};
    if (slot == nullptr && !seen_.contains(id)) return make_error(Code::unknown_node, id);
    return make_error(Code::not_taken, id, 0, 0, refusal(state(id)));
  }

  void each_in(State state, const std::function<void(uint64_t)>& visit) const {
    std::vector<uint64_t> ids;
    for (const auto& entry : held_) {
      if (slots_[entry.second].state == state) ids.push_back(entry.first);
    }
    std::sort(ids.begin(), ids.end());
    for (uint64_t id : ids) visit(id);
  }

  bool is_stalled() const { return ready_.empty() && taken_ == 0; }

  Error fill() {
    while (!ended_ && (held_.size() < options_.window || is_stalled())) {
      if (options_.strict_window && held_.size() >= options_.window) {
        return error_ = make_error(Code::window_full, 0, held_.size());
      }
      wire::Span record;
      Error error = reader_.next(record, ended_);
      if (!error) error = ended_ ? settle_unread() : admit(record);
      if (error) return error_ = error;
    }
    return Error{};
  }

  Error admit(wire::Span record) {
    NodeView read(record);
    if (read.malformed() || !read.each_dep([](uint64_t, bool) { return true; })) {
      return make_error(Code::malformed, read.id(), 0, reader_.record_offset(), "its fields are cut");
    }
    uint64_t id = read.id();
    if (seen_.contains(id)) return make_error(Code::duplicate_id, id, 0, reader_.record_offset());
    uint32_t i = new_slot();
    Slot& slot = slots_[i];
    slot.bytes.reset(new (std::nothrow) wire::Byte[record.size() + 1]);
    if (slot.bytes == nullptr) return make_error(Code::out_of_memory, id);
    std::memcpy(slot.bytes.get(), record.begin, record.size());
    slot.size = static_cast<uint32_t>(record.size());
    slot.id = id;
    slot.state = State::waiting;
    if (options_.order == Order::start) {
      slot.key = read.has_start() ? read.start_ns() : INT64_MAX;  // without a start: last
    }
    seen_.insert(id);
    held_.emplace(id, i);
    if (Error error = link(i)) return error;
    auto waiting = unread_.find(id);
    if (waiting != unread_.end()) {
      slots_[i].children = std::move(waiting->second);
      unread_.erase(waiting);
    }
    peak_ = std::max<uint64_t>(peak_, held_.size());
    if (slots_[i].need == 0) enter(i);
    return Error{};
  }

  Error link(uint32_t i) {
    Slot& slot = slots_[i];
    for (const Edge& edge : gating_parents(view(slot), options_.gate)) {
      if (edge.id == slot.id) {
        if (options_.self_edge == Fault::fail) return make_error(Code::self_edge, slot.id);
        slot.need += options_.self_edge == Fault::wait;  // or dropped
      } else if (held_.find(edge.id) != held_.end()) {
        ++slot.need;
        slots_[held_[edge.id]].children.push_back(i);
      } else if (!seen_.contains(edge.id)) {
        ++slot.need;
        unread_[edge.id].push_back(i);
      }
    }
    return Error{};
  }

  // At the end of the input: what still waits for nodes that never came.
  Error settle_unread() {
    if (options_.missing_parent == Fault::wait || unread_.empty()) return Error{};
    uint64_t child = UINT64_MAX, parent = 0;
    std::vector<uint32_t> freed;
    for (const auto& entry : unread_) {
      for (uint32_t i : entry.second) {
        if (slots_[i].id < child || (slots_[i].id == child && entry.first < parent)) {
          child = slots_[i].id;
          parent = entry.first;
        }
        if (options_.missing_parent == Fault::drop && --slots_[i].need == 0) freed.push_back(i);
      }
    }
    unread_.clear();
    if (options_.missing_parent == Fault::fail) {
      return make_error(Code::missing_parent, child, parent);
    }
    for (uint32_t i : freed) enter(i);
    return Error{};
  }

  void enter(uint32_t i) {
    Slot& slot = slots_[i];
    if (options_.skip_metadata && view(slot).type() == NodeType::metadata) {
      finish(i);
      return;
    }
    slot.state = State::ready;
    ready_.insert({slot.key, slot.id});
  }

  void finish(uint32_t first) {
    std::vector<uint32_t> stack{first};
    while (!stack.empty()) {  // skipped nodes, without recursion
      uint32_t i = stack.back();
      stack.pop_back();
      std::vector<uint32_t> children = std::move(slots_[i].children);
      held_.erase(slots_[i].id);
      slots_[i] = Slot();
      free_.push_back(i);
      ++done_;
      for (uint32_t child : children) {
        if (--slots_[child].need != 0) continue;
        if (options_.skip_metadata && view(slots_[child]).type() == NodeType::metadata) {
          stack.push_back(child);
        } else {
          enter(child);
        }
      }
    }
  }

  uint32_t new_slot() {
    if (!free_.empty()) {
      uint32_t i = free_.back();
      free_.pop_back();
      return i;
    }
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }

  Options options_;
  Reopen reopen_;
  Reader reader_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::unordered_map<uint64_t, uint32_t> held_;                 // id -> slot
  std::unordered_map<uint64_t, std::vector<uint32_t>> unread_;  // parent -> waiting slots
  std::set<std::pair<int64_t, uint64_t>> ready_;                // (key, id)
  Seen seen_;
  uint64_t taken_ = 0, done_ = 0, peak_ = 0;
  bool ended_ = false;
  Error error_;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_WINDOW_HPP
