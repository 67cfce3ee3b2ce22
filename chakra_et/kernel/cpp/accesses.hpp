// Which operations read and write which memory, and when: what `find_accesses` in
// linker/edges/data/accesses.py finds, which says why.
#ifndef CHAKRA_ET_KERNEL_ACCESSES_HPP
#define CHAKRA_ET_KERNEL_ACCESSES_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace chakra_et {
namespace kernel {

// Host nodes: texts of inputs and outputs, operator, what they are, and their places in the tree.
struct AccessNodes {
  const int32_t *inputs, *outputs, *schema;
  const bool *acting, *records, *receiving, *generated, *asking, *launches;
  const int64_t *position, *end, *begun, *last_begun;
  size_t size;
};

// What operators do with their arguments, `arguments` of each.
struct AccessOperators {
  const bool *reads, *writes, *in_place, *allocates;
  size_t size, arguments;
};

// Tensors in texts, and the memory of each.
struct AccessTensors {
  const int64_t *offsets, *argument, *memory, *begin, *end, *device;
  const bool *has_memory, *on_host;
  size_t texts, size, memories, devices;
};

// Small, as there are several of each node.
struct Access {
  uint32_t node, tensor;
  bool writes, renews, told, done;
};

class AccessFinder {
 public:
  AccessFinder(const AccessNodes& nodes, const AccessOperators& operators,
               const AccessTensors& tensors, bool work_known)
      : nodes_(nodes), operators_(operators), tensors_(tensors), work_known_(work_known) {}

  // False for rows and codes that there are none of.
  bool find() {
    if (!sound()) return false;
    std::vector<size_t> by_position(nodes_.size);
    for (size_t node = 0; node < nodes_.size; ++node) {
      by_position[static_cast<size_t>(nodes_.position[node])] = node;
    }
    found_.reserve(tensors_.size);
    for (size_t node : by_position) {
      if (nodes_.acting[node]) take(static_cast<uint32_t>(node));
    }
    group_by_memory();
    drop_done_by_callees();
    put_in_order();
    return true;
  }

  // In order of memory and time.
  const std::vector<Access>& found() const { return found_; }

  int64_t memory(const Access& access) const { return tensors_.memory[access.tensor]; }

  int64_t begin(const Access& access) const { return tensors_.begin[access.tensor]; }

  int64_t end(const Access& access) const { return tensors_.end[access.tensor]; }

  bool on_device(const Access& access) const {
    return !tensors_.on_host[tensors_.device[access.tensor]];
  }

 private:
  struct Span {
    int64_t first, last;
  };

  bool sound() const {
    constexpr size_t most = std::numeric_limits<uint32_t>::max();
    if (nodes_.size > most || tensors_.size > most) return false;
    std::vector<bool> placed(nodes_.size);
    for (size_t node = 0; node < nodes_.size; ++node) {
      auto position = static_cast<uint64_t>(nodes_.position[node]);
      if (position >= nodes_.size || placed[position]) return false;
      placed[position] = true;
      for (int32_t text : {nodes_.inputs[node], nodes_.outputs[node]}) {
        if (static_cast<uint32_t>(text) >= tensors_.texts) return false;
      }
      if (static_cast<uint32_t>(nodes_.schema[node]) >= operators_.size) return false;
    }
    for (size_t tensor = 0; tensor < tensors_.size; ++tensor) {
      if (static_cast<uint64_t>(tensors_.memory[tensor]) >= tensors_.memories) return false;
      if (static_cast<uint64_t>(tensors_.device[tensor]) >= tensors_.devices) return false;
      if (tensors_.argument[tensor] < 0) return false;
    }
    for (size_t text = 0; text < tensors_.texts; ++text) {
      if (tensors_.offsets[text] < 0 || tensors_.offsets[text] > tensors_.offsets[text + 1]) {
        return false;
      }
    }
    return static_cast<uint64_t>(tensors_.offsets[tensors_.texts]) <= tensors_.size;
  }

  Span tensors_in(int32_t text) const { return {tensors_.offsets[text], tensors_.offsets[text + 1]}; }

  bool kept(int64_t tensor) const { return tensors_.has_memory[tensors_.device[tensor]]; }

  // What a node reads, then what it writes of its inputs, then of its outputs.
  void take(uint32_t node) {
    Span taken = tensors_in(nodes_.inputs[node]), given = tensors_in(nodes_.outputs[node]);
    auto schema = static_cast<size_t>(nodes_.schema[node]);
    bool asking = nodes_.asking[node], generated = nodes_.generated[node];
    bool told = !generated && !asking, returns = false;
    size_t begin = found_.size();
    auto reads_and_writes = [&](int64_t tensor, bool& reads, bool& writes) {
      auto place = std::min(static_cast<size_t>(tensors_.argument[tensor]),
                            operators_.arguments - 1);
      reads = operators_.reads[schema * operators_.arguments + place];
      writes = operators_.writes[schema * operators_.arguments + place] ||
               nodes_.receiving[node] || generated;
      writes &= !asking || !reads;
    };
    bool reads, writes;
    for (int64_t tensor = taken.first; tensor < taken.last; ++tensor) {
      if (!kept(tensor)) continue;
      reads_and_writes(tensor, reads, writes);
      if (reads) add(node, tensor, false, false, true);
    }
    size_t first_write = found_.size();
    for (int64_t tensor = taken.first; tensor < taken.last; ++tensor) {
      if (!kept(tensor)) continue;
      reads_and_writes(tensor, reads, writes);
      if (writes) add(node, tensor, true, false, told);
    }
    for (int64_t tensor = given.first; tensor < given.last; ++tensor) {
      if (!kept(tensor)) continue;
      returns = true;
      bool renews = !nodes_.records[node] && !is_among(taken, tensors_.memory[tensor]);
      bool written = renews || nodes_.records[node] || operators_.in_place[schema];
      if (!written || asking) continue;
      add(node, tensor, true, renews, told && !(renews && operators_.allocates[schema]));
    }
    // What writes nothing, and returns what it was given, describes it anew.
    if (returns && !asking && found_.size() == first_write) found_.resize(begin);
  }

  bool is_among(Span tensors, int64_t memory) const {
    for (int64_t tensor = tensors.first; tensor < tensors.last; ++tensor) {
      if (tensors_.memory[tensor] == memory && kept(tensor)) return true;
    }
    return false;
  }

  void add(uint32_t node, int64_t tensor, bool writes, bool renews, bool told) {
    found_.push_back({node, static_cast<uint32_t>(tensor), writes, renews, told, false});
    found_.back().told &= !idle(found_.back());
  }

  bool seen(const Access& access) const { return work_known_ && on_device(access); }

  bool idle(const Access& access) const { return seen(access) && !nodes_.launches[access.node]; }

  // By memory, and so far in the order of places in the tree.
  void group_by_memory() {
    first_.assign(tensors_.memories + 1, 0);
    for (const Access& access : found_) ++first_[static_cast<size_t>(memory(access)) + 1];
    for (size_t memory = 0; memory < tensors_.memories; ++memory) {
      first_[memory + 1] += first_[memory];
    }
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    std::vector<Access> grouped(found_.size());
    for (const Access& access : found_) {
      grouped[next[static_cast<size_t>(memory(access))]++] = access;
    }
    found_.swap(grouped);
  }

  // Mark those that something which the operation calls makes for it.
  void drop_done_by_callees() {
    std::vector<bool> works(nodes_.size);
    mark_again_below(false, [&](const Access& read) { return !idle(read); },
                     [&](Access& read, bool below) {
                       read.done = below;
                       if (!below) works[read.node] = true;
                     });
    mark_again_below(true, [&](const Access& write) { return write.told; },
                     [&](Access& write, bool below) {
                       bool own = seen(write) ? nodes_.launches[write.node] : works[write.node];
                       write.done = below && !own;
                     });
  }

  // Whether one that counts, of something called, is to the same memory: the next one behind each.
  template <class Counts, class Mark>
  void mark_again_below(bool writes, Counts&& counts, Mark&& mark) {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    for (size_t memory = 0; memory < tensors_.memories; ++memory) {
      int64_t following = never, here = never, counted = never;
      for (size_t at = first_[memory + 1]; at-- > first_[memory];) {
        Access& access = found_[at];
        if (access.writes != writes) continue;
        int64_t position = nodes_.position[access.node];
        if (position != here) {
          following = std::min(following, counted);
          here = position;
        }
        if (counts(access)) counted = position;
        mark(access, following < nodes_.end[access.node]);
      }
    }
  }

  void put_in_order() {
    auto when = [&](const Access& access) {
      return access.writes ? 2 * nodes_.last_begun[access.node] + 1 : 2 * nodes_.begun[access.node];
    };
    auto earlier = [&](const Access& one, const Access& other) {
      int64_t mine = when(one), its = when(other);
      return mine != its ? mine < its : nodes_.begun[one.node] > nodes_.begun[other.node];
    };
    size_t end = 0;
    for (size_t memory = 0; memory < tensors_.memories; ++memory) {
      size_t begin = end;
      for (size_t at = first_[memory]; at < first_[memory + 1]; ++at) {
        const Access& access = found_[at];
        if ((access.writes || !idle(access)) && !access.done) found_[end++] = access;
      }
      auto from = found_.begin() + static_cast<std::ptrdiff_t>(begin);
      auto to = found_.begin() + static_cast<std::ptrdiff_t>(end);
      if (!std::is_sorted(from, to, earlier)) std::stable_sort(from, to, earlier);
    }
    found_.resize(end);
  }

  AccessNodes nodes_;
  AccessOperators operators_;
  AccessTensors tensors_;
  bool work_known_;
  std::vector<Access> found_;
  std::vector<size_t> first_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_ACCESSES_HPP
