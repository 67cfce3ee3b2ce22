// The engine for a whole trace in memory or in a mapped file.
#ifndef CHAKRA_ET_GRAPH_HPP
#define CHAKRA_ET_GRAPH_HPP

#include "graph_load.hpp"

namespace chakra_et {

class Graph final : public Engine {
 public:
  Error load(Blob&& blob, const Options& options) {
    blob_ = std::move(blob);
    options_ = options;
    if (Error error = GraphLoader(blob_.span(), options_, data_).load()) return error;
    uint64_t n = data_.ids.size();
    if (!ready_.init(n) || !taken_.init(n) || !done_.init(n)) return out_of_memory();
    if (!data_.metadata.empty()) {
      if (!skipped_.init(n)) return out_of_memory();
      for (uint32_t i : data_.metadata) skipped_.insert(i);
      data_.metadata.release();
    }
    if (options_.order == Order::start && !sort_by_start()) return out_of_memory();
    return enter_roots() ? Error{} : out_of_memory();
  }

  Next next(NodeView& out) override {
    uint64_t key = ready_.first();
    if (key == BitTree::none) {
      if (taken_count_ != 0) return Next::pending;
      return is_finished() ? Next::finished : Next::blocked;
    }
    uint32_t i = at_key(key);
    ready_.erase(key);
    taken_.insert(i);
    ++taken_count_;
    out = view(i);
    return Next::node;
  }

  Error take(uint64_t id) override {
    uint32_t i = data_.ids.find(id);
    if (i == Ids::none) return make_error(Code::unknown_node, id);
    if (!is_ready(i)) return make_error(Code::not_ready, id, 0, 0, refusal(state_at(i)));
    ready_.erase(key_of(i));
    taken_.insert(i);
    ++taken_count_;
    return Error{};
  }

  Error done(uint64_t id) override {
    uint32_t i = data_.ids.find(id);
    if (Error error = check_taken(i, id)) return error;
    taken_.erase(i);
    --taken_count_;
    return finish(i) ? Error{} : out_of_memory();
  }

  Error push_back(uint64_t id) override {
    uint32_t i = data_.ids.find(id);
    if (Error error = check_taken(i, id)) return error;
    taken_.erase(i);
    --taken_count_;
    ready_.insert(key_of(i));
    return Error{};
  }

  size_t ready(uint64_t* out, size_t room) const override {
    size_t count = 0;
    for (uint64_t key = ready_.first(); key != BitTree::none && count < room;
         key = ready_.after(key)) {
      out[count++] = data_.ids[at_key(key)];
    }
    return count;
  }

  bool is_finished() const override { return done_count_ == data_.ids.size(); }

  State state(uint64_t id) const override {
    uint32_t i = data_.ids.find(id);
    return i == Ids::none ? State::unknown : state_at(i);
  }

  NodeView node(uint64_t id) const override {
    uint32_t i = data_.ids.find(id);
    return i == Ids::none ? NodeView() : view(i);
  }

  std::vector<uint64_t> children(uint64_t id) const override {
    std::vector<uint64_t> out;
    uint32_t i = data_.ids.find(id);
    if (i == Ids::none) return out;
    for (uint32_t e = data_.row[i]; e < data_.row[i + 1]; ++e) {
      out.push_back(data_.ids[data_.children[e]]);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  std::vector<Edge> gates(uint64_t id) const override {
    return open_parents(node(id), options_,
                        [this](uint64_t other) { return data_.ids.find(other) != Ids::none; });
  }

  void each_taken(const std::function<void(uint64_t)>& visit) const override {
    for (uint64_t w = 0; w < taken_.words().size(); ++w) {
      for (uint64_t bits = taken_.words()[w]; bits != 0; bits &= bits - 1) {
        visit(data_.ids[w * 64 + lowest_bit(bits)]);
      }
    }
  }

  void each_waiting(const std::function<void(uint64_t)>& visit) const override {
    for (uint64_t i = 0; i < data_.ids.size(); ++i) {
      if (data_.needs[i] != 0) visit(data_.ids[i]);
    }
  }

  void each_node(const std::function<void(const NodeView&)>& visit) const override {
    for (uint64_t i = 0; i < data_.ids.size(); ++i) visit(view(static_cast<uint32_t>(i)));
  }

  Counts counts() const override {
    Counts counts;
    counts.ready = ready_.size();
    counts.taken = taken_count_;
    counts.done = done_count_;
    counts.held = data_.ids.size() - done_count_;
    counts.peak_held = data_.ids.size();
    counts.waiting = counts.held - counts.ready - counts.taken;
    return counts;
  }

  Error restart() override {
    uint64_t n = data_.ids.size();
    if (!ready_.init(n) || !taken_.init(n) || !done_.init(n)) return out_of_memory();
    if (!data_.needs.assign_zero(n)) return out_of_memory();
    for (uint32_t child : data_.children) ++data_.needs[child];
    for (uint32_t child : data_.stuck) ++data_.needs[child];
    taken_count_ = done_count_ = 0;
    return enter_roots() ? Error{} : out_of_memory();
  }

  Error error() const override { return Error{}; }
  MetadataView metadata() const override { return MetadataView(data_.first_record); }

  size_t memory() const override {
    uint64_t n = data_.ids.size();
    return data_.offsets.bytes() + data_.needs.bytes() + data_.row.bytes() +
           data_.children.bytes() + data_.ids.bytes() + by_start_.bytes() + start_key_.bytes() +
           n / 2;
  }

  uint64_t size() const { return data_.ids.size(); }

 private:
  static Error out_of_memory() { return make_error(Code::out_of_memory); }

  bool is_ready(uint32_t i) const { return ready_.contains(key_of(i)); }
  uint64_t key_of(uint32_t i) const { return start_key_.empty() ? i : start_key_[i]; }
  uint32_t at_key(uint64_t key) const {
    return by_start_.empty() ? static_cast<uint32_t>(key) : by_start_[key];
  }

  State state_at(uint32_t i) const {
    if (done_.contains(i)) return State::done;
    if (taken_.contains(i)) return State::taken;
    return data_.needs[i] == 0 ? State::ready : State::waiting;
  }

  Error check_taken(uint32_t i, uint64_t id) const {
    if (i == Ids::none) return make_error(Code::unknown_node, id);
    if (taken_.contains(i)) return Error{};
    return make_error(Code::not_taken, id, 0, 0, refusal(state_at(i)));
  }

  NodeView view(uint32_t i) const {
    const wire::Byte* p = blob_.span().begin + data_.offsets[i];
    wire::Span record;
    wire::read_length(p, blob_.span().end, record);  // was checked by load()
    return NodeView(record);
  }

  bool enter_roots() {
    for (uint64_t i = 0; i < data_.ids.size(); ++i) {
      if (data_.needs[i] == 0 && !done_.contains(i) && !enter(static_cast<uint32_t>(i))) {
        return false;
      }
    }
    return true;
  }

  // A node without open parents: ready, or done at once if it is to be skipped.
  bool enter(uint32_t i) {
    if (!skipped_.words().empty() && skipped_.contains(i)) return finish(i);
    ready_.insert(key_of(i));
    return true;
  }

  bool finish(uint32_t i) {
    if (!release(i)) return false;
    while (!cascade_.empty()) {  // skipped nodes, without recursion
      if (!release(cascade_.pop())) return false;
    }
    return true;
  }

  bool release(uint32_t i) {
    done_.insert(i);
    ++done_count_;
    for (uint32_t e = data_.row[i]; e < data_.row[i + 1]; ++e) {
      uint32_t child = data_.children[e];
      if (--data_.needs[child] != 0) continue;
      if (skipped_.words().empty() || !skipped_.contains(child)) {
        ready_.insert(key_of(child));
      } else if (!cascade_.push(child)) {
        return false;
      }
    }
    return true;
  }

  bool sort_by_start() {
    uint64_t n = data_.ids.size();
    if (!by_start_.assign_zero(n) || !start_key_.assign_zero(n)) return false;
    for (uint64_t i = 0; i < n; ++i) by_start_[i] = static_cast<uint32_t>(i);
    std::sort(by_start_.begin(), by_start_.end(), [this](uint32_t a, uint32_t b) {
      return data_.starts[a] != data_.starts[b] ? data_.starts[a] < data_.starts[b] : a < b;
    });
    for (uint64_t key = 0; key < n; ++key) start_key_[by_start_[key]] = static_cast<uint32_t>(key);
    data_.starts.release();
    return true;
  }

  Blob blob_;
  Options options_;
  GraphData data_;
  BitTree ready_;     // by key: the place in id order, or in start order
  Bits taken_, done_, skipped_;
  PodVector<uint32_t> by_start_, start_key_;  // empty when ids order the nodes
  PodVector<uint32_t> cascade_;
  uint64_t taken_count_ = 0, done_count_ = 0;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_GRAPH_HPP
