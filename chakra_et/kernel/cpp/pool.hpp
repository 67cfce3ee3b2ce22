// Distinct texts and their codes, in order of first use.
#ifndef CHAKRA_ET_KERNEL_POOL_HPP
#define CHAKRA_ET_KERNEL_POOL_HPP

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace chakra_et {
namespace kernel {

// The texts are not copied: they live as long as the piece that they stand in.
template <class Key, class Hash = std::hash<Key>>
class Pool {
 public:
  int32_t operator[](const Key& key) {
    if (2 * values_.size() >= slots_.size()) grow();
    size_t hash = Hash()(key);
    size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.code < 0) {
        slot = {static_cast<int32_t>(values_.size()), mark_of(hash)};
        values_.push_back(key);
        hashes_.push_back(hash);
        return slot.code;
      }
      if (slot.mark == mark_of(hash) && values_[static_cast<size_t>(slot.code)] == key) {
        return slot.code;
      }
    }
  }

  const std::vector<Key>& values() const { return values_; }

 private:
  // A part of the hash stands beside the code, so that few values are looked at in vain.
  struct Slot {
    int32_t code = -1;
    uint32_t mark = 0;
  };

  static uint32_t mark_of(size_t hash) {
    return static_cast<uint32_t>(static_cast<uint64_t>(hash) >> 32);
  }

  void grow() {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), Slot());
    size_t mask = slots_.size() - 1;
    for (size_t code = 0; code < values_.size(); ++code) {
      size_t at = hashes_[code] & mask;
      while (slots_[at].code >= 0) at = (at + 1) & mask;
      slots_[at] = {static_cast<int32_t>(code), mark_of(hashes_[code])};
    }
  }

  std::vector<Key> values_;
  std::vector<size_t> hashes_;
  std::vector<Slot> slots_;
};

using TextPool = Pool<std::string_view>;

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_POOL_HPP
