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
      if (slots_[at] < 0) {
        slots_[at] = static_cast<int32_t>(values_.size());
        values_.push_back(key);
        hashes_.push_back(hash);
        return slots_[at];
      }
      auto code = static_cast<size_t>(slots_[at]);
      if (hashes_[code] == hash && values_[code] == key) return slots_[at];
    }
  }

  const std::vector<Key>& values() const { return values_; }

 private:
  void grow() {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), -1);
    size_t mask = slots_.size() - 1;
    for (size_t code = 0; code < values_.size(); ++code) {
      size_t at = hashes_[code] & mask;
      while (slots_[at] >= 0) at = (at + 1) & mask;
      slots_[at] = static_cast<int32_t>(code);
    }
  }

  std::vector<Key> values_;
  std::vector<size_t> hashes_;
  std::vector<int32_t> slots_;
};

using TextPool = Pool<std::string_view>;

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_POOL_HPP
