// Records of profiles as columns: what `Columns` in converters/kineto/reader.py makes of the same
// pieces of a file.
#ifndef CHAKRA_ET_KERNEL_PROFILE_TABLE_HPP
#define CHAKRA_ET_KERNEL_PROFILE_TABLE_HPP

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool.hpp"
#include "profile_records.hpp"

namespace chakra_et {
namespace kernel {

struct ProfileTable {
  Spans spans;
  std::array<Arrows, 2> arrows;
  KeptPool categories, names, shape_texts, arrow_categories;
  // How many records of each category and phase there are, in order of the first.
  KeptPool kind_texts;
  Pool<std::array<int32_t, 2>, HashCodes> kinds;  // codes of these
  std::vector<int64_t> kind_counts;
  std::string others;

  // Put the records of a piece behind the others.
  void put(ProfileRecords& piece) {
    append(spans, piece.spans);
    recode(spans.category, piece.spans.category.size(), codes_of(piece.categories, categories));
    recode(spans.name, piece.spans.name.size(), codes_of(piece.names, names));
    recode(spans.shapes, piece.spans.shapes.size(), codes_of(piece.shape_texts, shape_texts));
    std::vector<int32_t> arrow_codes = codes_of(piece.arrow_categories, arrow_categories);
    for (size_t side = 0; side < arrows.size(); ++side) {
      append(arrows[side], piece.arrows[side]);
      recode(arrows[side].category, piece.arrows[side].category.size(), arrow_codes);
    }
    for (size_t i = 0; i < piece.kind_counts.size(); ++i) {
      const auto& [category, phase] = piece.kinds.values()[i];
      auto code = static_cast<size_t>(kinds[{kind_texts[category], kind_texts[phase]}]);
      if (code == kind_counts.size()) kind_counts.push_back(0);
      kind_counts[code] += piece.kind_counts[i];
    }
    if (!piece.others.empty()) {
      if (!others.empty()) others += ',';
      others += piece.others;
    }
  }

 private:
  static std::vector<int32_t> codes_of(const TextPool& of_piece, KeptPool& all) {
    std::vector<int32_t> codes;
    for (std::string_view text : of_piece.values()) codes.push_back(all[text]);
    return codes;
  }

  // The last codes of a column are into a piece; what is no code stays.
  static void recode(Grown<int32_t>& column, size_t last, const std::vector<int32_t>& codes) {
    for (size_t at = column.size() - last; at < column.size(); ++at) {
      if (column[at] >= 0) column[at] = codes[static_cast<size_t>(column[at])];
    }
  }

  template <class Columns>
  static void append(Columns& to, Columns& from) {
    to.each(from, [](auto& mine, auto& other) { mine.append(other); });
  }
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PROFILE_TABLE_HPP
