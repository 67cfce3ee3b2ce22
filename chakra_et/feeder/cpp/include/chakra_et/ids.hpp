// From a node's id to its place in id order. Ids are mostly dense, so this is mostly a subtraction;
// else a bitmap with running counts; and for ids that are far apart a binary search.
#ifndef CHAKRA_ET_IDS_HPP
#define CHAKRA_ET_IDS_HPP

#include <algorithm>

#include "bit_tree.hpp"
#include "error.hpp"

namespace chakra_et {

class Ids {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // During the scan: ids in file order.
  bool push(uint64_t id) {
    if (dense_) {
      if (count_ == 0) first_ = id;
      if (id == first_ + count_ && id >= first_) {
        ++count_;
        return true;
      }
      if (!spell_out()) return false;
    }
    ++count_;
    return list_.push(id);
  }

  // Sorts. `place[i]` becomes the place in id order of the node that was i-th in the file; it stays
  // empty when the file was in id order already.
  Error finish(PodVector<uint32_t>& place) {
    place.release();
    if (dense_ || count_ == 0) return Error{};
    uint64_t low = UINT64_MAX, high = 0;
    bool ascending = true;
    for (uint64_t i = 0; i < count_; ++i) {
      ascending = ascending && (i == 0 || list_[i - 1] < list_[i]);
      low = std::min(low, list_[i]);
      high = std::max(high, list_[i]);
    }
    first_ = low;
    last_ = high;
    if ((high - low) / 64 <= count_) return finish_bitmap(place, ascending);
    return ascending ? Error{} : finish_sorted(place);
  }

  uint32_t find(uint64_t id) const {
    if (dense_) {
      uint64_t at = id - first_;
      return at < count_ ? static_cast<uint32_t>(at) : none;
    }
    if (count_ == 0 || id < first_ || id > last_) return none;
    if (!words_.empty()) {
      uint64_t at = id - first_, word = words_[at >> 6], bit = at & 63;
      if (((word >> bit) & 1) == 0) return none;
      return before_[at >> 6] + count_bits(word & ((uint64_t{1} << bit) - 1));
    }
    const uint64_t* found = std::lower_bound(list_.begin(), list_.end(), id);
    return found != list_.end() && *found == id ? static_cast<uint32_t>(found - list_.begin())
                                                : none;
  }

  uint64_t operator[](uint64_t place) const { return dense_ ? first_ + place : list_[place]; }
  uint64_t size() const { return count_; }
  size_t bytes() const { return list_.bytes() + words_.bytes() + before_.bytes(); }

 private:
  bool spell_out() {
    dense_ = false;
    if (!list_.reserve(count_ + 64)) return false;
    for (uint64_t i = 0; i < count_; ++i) list_.push(first_ + i);
    return true;
  }

  Error finish_bitmap(PodVector<uint32_t>& place, bool ascending) {
    uint64_t words = (last_ - first_) / 64 + 1;
    if (!words_.assign_zero(words) || !before_.assign_zero(words)) {
      return make_error(Code::out_of_memory);
    }
    for (uint64_t id : list_) {
      uint64_t at = id - first_, bit = uint64_t{1} << (at & 63);
      if ((words_[at >> 6] & bit) != 0) return make_error(Code::duplicate_id, id);
      words_[at >> 6] |= bit;
    }
    uint32_t running = 0;
    for (uint64_t w = 0; w < words; ++w) {
      before_[w] = running;
      running += count_bits(words_[w]);
    }
    if (!ascending) {
      if (!place.assign_zero(count_)) return make_error(Code::out_of_memory);
      for (uint64_t i = 0; i < count_; ++i) place[i] = find(list_[i]);
    }
    bool dense = last_ - first_ + 1 == count_;
    if (dense) {
      dense_ = true;
      list_.release();
      words_.release();
      before_.release();
      return Error{};
    }
    return reorder(place) ? Error{} : make_error(Code::out_of_memory);
  }

  Error finish_sorted(PodVector<uint32_t>& place) {
    PodVector<uint32_t> at;  // file positions in id order
    if (!at.assign_zero(count_) || !place.assign_zero(count_)) {
      return make_error(Code::out_of_memory);
    }
    for (uint64_t i = 0; i < count_; ++i) at[i] = static_cast<uint32_t>(i);
    std::sort(at.begin(), at.end(),
              [this](uint32_t a, uint32_t b) { return list_[a] < list_[b]; });
    for (uint64_t i = 0; i < count_; ++i) {
      if (i != 0 && list_[at[i]] == list_[at[i - 1]]) {
        return make_error(Code::duplicate_id, list_[at[i]]);
      }
      place[at[i]] = static_cast<uint32_t>(i);
    }
    return reorder(place) ? Error{} : make_error(Code::out_of_memory);
  }

  bool reorder(const PodVector<uint32_t>& place) {
    if (place.empty()) return true;
    PodVector<uint64_t> sorted;
    if (!sorted.assign_zero(count_)) return false;
    for (uint64_t i = 0; i < count_; ++i) sorted[place[i]] = list_[i];
    list_.swap(sorted);
    return true;
  }

  bool dense_ = true;
  uint64_t count_ = 0, first_ = 0, last_ = 0;
  PodVector<uint64_t> list_;    // the ids, in order; empty when dense
  PodVector<uint64_t> words_;   // bit i: is first_ + i an id?
  PodVector<uint32_t> before_;  // how many ids lie before each word
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_IDS_HPP
