// Distinct values and their codes, in order of first use.
#ifndef CHAKRA_ET_KERNEL_POOL_HPP
#define CHAKRA_ET_KERNEL_POOL_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

namespace chakra_et {
namespace kernel {

// Eight bytes at a time; the last eight may overlap those before them.
struct HashText {
  size_t operator()(std::string_view text) const {
    uint64_t hash = text.size();
    if (text.size() < 8) return finished(mixed(hash, word(text.data(), text.size())));
    for (size_t at = 0; at + 8 < text.size(); at += 8) hash = mixed(hash, word(text.data() + at, 8));
    return finished(mixed(hash, word(text.data() + text.size() - 8, 8)));
  }

 private:
  static uint64_t word(const char* bytes, size_t count) {
    uint64_t word = 0;
    if (count > 0) std::memcpy(&word, bytes, count);
    return word;
  }
  static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
  }
  static size_t finished(uint64_t hash) { return static_cast<size_t>(hash ^ hash >> 32); }
};

// Of some codes that belong together.
struct HashCodes {
  template <size_t count>
  size_t operator()(const std::array<int32_t, count>& codes) const {
    uint64_t hash = 0;
    for (int32_t code : codes) {
      hash = (hash ^ static_cast<uint32_t>(code)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29;
    }
    return static_cast<size_t>(hash ^ hash >> 32);
  }
};

// Texts that are kept, one behind the other.
class KeptTexts {
 public:
  std::vector<char> characters;
  std::vector<int64_t> offsets = {0};

  void push_back(std::string_view text) {
    characters.insert(characters.end(), text.begin(), text.end());
    offsets.push_back(static_cast<int64_t>(characters.size()));
  }
  std::string_view operator[](size_t at) const {
    auto begin = static_cast<size_t>(offsets[at]), end = static_cast<size_t>(offsets[at + 1]);
    return {characters.data() + begin, end - begin};
  }
  size_t size() const { return offsets.size() - 1; }
};

// `Values` keeps the distinct ones. Views of texts live as long as the piece that they stand in.
template <class Key, class Hash, class Values = std::vector<Key>>
class Pool {
 public:
  int32_t operator[](const Key& key) {
    if (2 * hashes_.size() >= slots_.size()) grow();
    size_t hash = Hash()(key);
    size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.code < 0) {
        slot = {static_cast<int32_t>(hashes_.size()), mark_of(hash)};
        values_.push_back(key);
        hashes_.push_back(hash);
        return slot.code;
      }
      if (slot.mark == mark_of(hash) && values_[static_cast<size_t>(slot.code)] == key) {
        return slot.code;
      }
    }
  }

  const Values& values() const { return values_; }
  Values& values() { return values_; }

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
    for (size_t code = 0; code < hashes_.size(); ++code) {
      size_t at = hashes_[code] & mask;
      while (slots_[at].code >= 0) at = (at + 1) & mask;
      slots_[at] = {static_cast<int32_t>(code), mark_of(hashes_[code])};
    }
  }

  Values values_;
  std::vector<size_t> hashes_;
  std::vector<Slot> slots_;
};

using TextPool = Pool<std::string_view, HashText>;
using KeptPool = Pool<std::string_view, HashText, KeptTexts>;

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_POOL_HPP
