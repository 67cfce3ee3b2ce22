// Distinct values and their codes, in order of first use.
#ifndef CHAKRA_ET_KERNEL_POOL_HPP
#define CHAKRA_ET_KERNEL_POOL_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "grown.hpp"

namespace chakra_et {
namespace kernel {

// Have memory ready that is looked at soon.
inline void fetch(const void* place) {
#ifdef __GNUC__
  __builtin_prefetch(place);
#else
  (void)place;
#endif
}

// Sixteen bytes at a time, in two halves that do not wait for each other; the last ones may overlap
// those before them.
struct HashText {
  size_t operator()(std::string_view text) const {
    const char* bytes = text.data();
    size_t size = text.size();
    uint64_t hash = size, other = 0;
    if (size < 8) return finished(mixed(hash, word(bytes, size)));
    for (; size > 16; size -= 16, bytes += 16) {
      hash = mixed(hash, word(bytes, 8));
      other = mixed(other, word(bytes + 8, 8));
    }
    if (size > 8) hash = mixed(hash, word(bytes, 8));
    return finished(mixed(hash ^ (other << 1 | other >> 63), word(bytes + size - 8, 8)));
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
  Grown<char> characters;
  Grown<int64_t> offsets;

  KeptTexts() { offsets.push_back(0); }
  void push_back(std::string_view text) {
    characters.append(text.data(), text.size());
    offsets.push_back(static_cast<int64_t>(characters.size()));
  }
  std::string_view operator[](size_t at) const {
    auto begin = static_cast<size_t>(offsets[at]), end = static_cast<size_t>(offsets[at + 1]);
    return {characters.data() + begin, end - begin};
  }
  size_t size() const { return offsets.size() - 1; }
  // Forget all but the first ones.
  void resize(size_t count) {
    characters.resize(static_cast<size_t>(offsets[count]), '\0');
    offsets.resize(count + 1, 0);
  }
};

// `Values` keeps the distinct ones. Views of texts live as long as the piece that they stand in.
template <class Key, class Hash, class Values = std::vector<Key>>
class Pool {
 public:
  int32_t operator[](const Key& key) { return code_of(key, Hash()(key)); }

  // The code of a key, -1 for one that is not there.
  int32_t find(const Key& key) const {
    if (slots_.empty()) return -1;
    size_t hash = Hash()(key), mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.code < 0 || is_of(slot, key, hash)) return slot.code;
    }
  }

  // Forget all, but not the room for it.
  void clear() {
    values_.clear();
    hashes_.clear();
    slots_.assign(slots_.size(), Slot());
  }

  // Forget all but the first keys.
  void resize(size_t count) {
    if (count == hashes_.size()) return;
    values_.resize(count);
    hashes_.resize(count);
    fill_slots();
  }

  size_t size() const { return hashes_.size(); }

  // The codes of many keys: `key_at` gives each, `put` gets its place and code. They are looked at
  // twice, so that those that lie far apart in memory do not wait for each other.
  template <class KeyAt, class Put>
  void look_up(size_t count, KeyAt&& key_at, Put&& put) {
    expected_.resize(count);
    for (size_t place = 0; place < count; ++place) {
      expected_[place] = Hash()(key_at(place));
      if (!slots_.empty()) fetch(&slots_[expected_[place] & (slots_.size() - 1)]);
    }
    for (size_t place = 0; place < count; ++place) {
      put(place, code_of(key_at(place), expected_[place]));
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

  bool is_of(const Slot& slot, const Key& key, size_t hash) const {
    return slot.mark == mark_of(hash) && values_[static_cast<size_t>(slot.code)] == key;
  }

  int32_t code_of(const Key& key, size_t hash) {
    if (2 * hashes_.size() >= slots_.size()) grow();
    size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.code < 0) {
        slot = {static_cast<int32_t>(hashes_.size()), mark_of(hash)};
        values_.push_back(key);
        hashes_.push_back(hash);
        return slot.code;
      }
      if (is_of(slot, key, hash)) return slot.code;
    }
  }

  void grow() {
    slots_.resize(slots_.empty() ? 64 : 2 * slots_.size());
    fill_slots();
  }

  void fill_slots() {
    slots_.assign(slots_.size(), Slot());
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
  std::vector<size_t> expected_;  // hashes of what is looked up
};

using TextPool = Pool<std::string_view, HashText>;
using KeptPool = Pool<std::string_view, HashText, KeptTexts>;

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_POOL_HPP
