// Attributes that tell columns of a trace, exact times and kinds of edges: what
// converters/et/columns_in_attributes.py and edge_kinds.py write.
#ifndef CHAKRA_ET_PACK_TOLD_HPP
#define CHAKRA_ET_PACK_TOLD_HPP

#include <string>
#include <vector>

#include "attributes.hpp"

namespace chakra_et {
namespace pack {

constexpr int64_t unknown_ns = INT64_MIN;
constexpr std::string_view start_name = "start_time_ns", duration_name = "duration_ns",
                           kinds_name = "edge_kinds";

// Rounded once, half to even; 0 where the time is not known.
inline uint64_t microseconds(int64_t time_ns) {
  if (time_ns == unknown_ns) return 0;
  int64_t whole = time_ns / 1000, rest = time_ns % 1000;
  if (rest < 0) {
    rest += 1000;
    --whole;
  }
  bool up = rest > 500 || (rest == 500 && (whole & 1) != 0);
  return static_cast<uint64_t>(whole + up);
}

// May microseconds be what a time in ns was rounded to?
inline bool agree_in_time(int64_t exact, uint64_t micros) {
  if (micros > INT64_MAX / 1000 + 1 || exact < -500) return false;
  auto difference = static_cast<int64_t>(static_cast<uint64_t>(exact) - micros * 1000);
  return difference >= -500 && difference <= 500;
}

// An attribute of a trace before it is one of records.
struct Raw {
  Key key;
  const Column* rows;
  const Column* values;
};

// Marks rows whose attribute would be taken for the exact time.
inline void mark_taken(const std::vector<Raw>& all, std::string_view name,
                       const std::vector<int64_t>& times, std::vector<bool>& told) {
  for (const Raw& raw : all) {
    if (!raw.key.is(name, Kind::int64)) continue;
    for (size_t i = 0; i < raw.rows->bits.size(); ++i) {
      size_t row = raw.rows->bits[i];
      auto exact = static_cast<int64_t>(raw.values->whole(i));
      if (row < times.size() && agree_in_time(exact, microseconds(times[row]))) told[row] = true;
    }
  }
}

// The edges of a node that are no calls: their kinds, and whether each is inferred.
using Marks = std::string;

inline bool is_plain(const Marks& marks) {
  constexpr char plain = 7 << 1;
  static_assert(edge_kind_names[7] == "data");
  return marks.find_first_not_of(plain) == Marks::npos;
}

// Their text, as in `program,launch?`.
inline std::string text_of(const Marks& marks) {
  std::string out;
  for (char mark : marks) {
    auto kind = static_cast<unsigned char>(mark) >> 1;
    if (!out.empty()) out += ',';
    out += edge_kind_names[kind];
    if (mark & 1) out += '?';
  }
  return out;
}

// Is a text about the kinds of so many edges?
inline bool tells_kinds(std::string_view text, size_t count) {
  size_t words = 0;
  for (;;) {
    size_t end = text.find(',');
    std::string_view word = text.substr(0, end);
    if (!word.empty() && word.back() == '?') word.remove_suffix(1);
    bool known = false;
    for (size_t kind = 1; kind < std::size(edge_kind_names); ++kind) {
      known = known || word == edge_kind_names[kind];
    }
    if (!known) return false;
    ++words;
    if (end == std::string_view::npos) return words == count;
    text.remove_prefix(end + 1);
  }
}

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_TOLD_HPP
