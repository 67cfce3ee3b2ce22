// Texts of a file that come again and again: what is equal to one that was sound before is sound, and
// holds the same.
#ifndef CHAKRA_ET_KERNEL_KNOWN_TEXTS_HPP
#define CHAKRA_ET_KERNEL_KNOWN_TEXTS_HPP

#include <cstdint>
#include <string_view>
#include <vector>

#include "pool.hpp"

namespace chakra_et {
namespace kernel {

// `Facts` are what a text holds.
template <class Facts>
class KnownTexts {
 public:
  static constexpr size_t longest = 4096;

  // The number of a text, -1 for one that is not known.
  int32_t find(std::string_view text) const { return text.size() > longest ? -1 : texts_.find(text); }
  std::string_view text(int32_t number) const {
    return texts_.values()[static_cast<size_t>(number)];
  }
  Facts& operator[](int32_t number) { return facts_[static_cast<size_t>(number)]; }

  // Keep a new text, as long as there is room.
  void learn(std::string_view text, const Facts& facts) {
    if (facts_.size() == most || text.size() > longest) return;
    if (static_cast<size_t>(texts_[text]) == facts_.size()) facts_.push_back(facts);
  }

 private:
  static constexpr size_t most = 1024;
  KeptPool texts_;
  std::vector<Facts> facts_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_KNOWN_TEXTS_HPP
