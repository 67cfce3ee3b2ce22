// Which ids a window has read so far: bits in pages of 512 ids, so dense ids cost a bit each.
#ifndef CHAKRA_ET_SEEN_HPP
#define CHAKRA_ET_SEEN_HPP

#include <array>
#include <cstdint>
#include <unordered_map>

namespace chakra_et {

class Seen {
 public:
  bool contains(uint64_t id) const {
    auto page = pages_.find(id / 512);
    return page != pages_.end() && ((page->second[id / 64 % 8] >> (id % 64)) & 1) != 0;
  }
  void insert(uint64_t id) { pages_[id / 512][id / 64 % 8] |= uint64_t{1} << (id % 64); }
  void clear() { pages_.clear(); }
  size_t bytes() const { return pages_.size() * 96; }

 private:
  std::unordered_map<uint64_t, std::array<uint64_t, 8>> pages_;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_SEEN_HPP
