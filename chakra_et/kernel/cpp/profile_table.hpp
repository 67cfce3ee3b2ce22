// Records of profiles as columns: what `Columns` in converters/kineto/reader.py makes of the same
// pieces of a file.
#ifndef CHAKRA_ET_KERNEL_PROFILE_TABLE_HPP
#define CHAKRA_ET_KERNEL_PROFILE_TABLE_HPP

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pool.hpp"
#include "profile_columns.hpp"

namespace chakra_et {
namespace kernel {

struct ProfileTable {
  Spans spans;
  std::array<Arrows, 2> arrows;  // beginnings and ends
  KeptPool categories, names, shape_texts, arrow_categories;
  // How many records of each category and phase there are, in order of the first.
  KeptPool kind_texts;
  Pool<std::array<int32_t, 2>, HashCodes> kinds;  // codes of these
  std::vector<int64_t> kind_counts;
  // Records that Python reads, with commas between them: names of rows, and halves of intervals.
  std::string others;

  ProfileTable() { shape_texts[""]; }  // of records that tell none

  // How much there is.
  struct Size {
    size_t spans, others;
    std::array<size_t, 2> arrows;
    std::array<size_t, 5> pools;
    std::vector<int64_t> kind_counts;
  };

  Size size() {
    Size now{spans.role.size(), others.size(), {}, {}, kind_counts};
    for (size_t side = 0; side < arrows.size(); ++side) now.arrows[side] = arrows[side].id.size();
    for (size_t k = 0; k < now.pools.size(); ++k) now.pools[k] = pools()[k]->size();
    return now;
  }

  // Forget what came since there was so much.
  void resize(const Size& to) {
    spans.each([&](auto& column) { column.resize(to.spans, {}); });
    for (size_t side = 0; side < arrows.size(); ++side) {
      arrows[side].each([&](auto& column) { column.resize(to.arrows[side], {}); });
    }
    for (size_t k = 0; k < to.pools.size(); ++k) pools()[k]->resize(to.pools[k]);
    kinds.resize(to.kind_counts.size());
    kind_counts = to.kind_counts;
    others.resize(to.others);
  }

 private:
  std::array<KeptPool*, 5> pools() {
    return {&categories, &names, &shape_texts, &arrow_categories, &kind_texts};
  }
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PROFILE_TABLE_HPP
