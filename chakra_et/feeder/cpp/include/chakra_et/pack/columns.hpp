// The columns of a class of ranks, and of one of them: what pack/differences.py writes.
#ifndef CHAKRA_ET_PACK_COLUMNS_HPP
#define CHAKRA_ET_PACK_COLUMNS_HPP

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "msgpack.hpp"

namespace chakra_et {
namespace pack {

// Numbers of one type, or what msgpack holds.
struct Column {
  char kind = 0;                // of numbers: i, u, f or b, as NumPy names them
  unsigned width = 0;           // bytes of each
  std::vector<uint64_t> bits;   // of each, in its lowest bytes
  const Value* other = nullptr;

  // A whole number in 64 bits, two's complement when signed.
  uint64_t whole(size_t at) const {
    unsigned shift = 64 - 8 * width;
    if (kind != 'i' || shift == 0) return bits[at];
    return static_cast<uint64_t>(static_cast<int64_t>(bits[at] << shift) >> shift);
  }
};

// By name. A rank has those of its class, as far as it does not differ; both live as long as what
// was read, into which they point.
using Columns = std::map<std::string_view, std::shared_ptr<const Column>>;

// Numbers of `width` bytes whose first bytes stand before all second ones, and so on.
inline bool from_planes(std::string_view planes, unsigned width, std::vector<uint64_t>& out) {
  if (planes.size() % width != 0) return false;
  size_t count = planes.size() / width;
  out.assign(count, 0);
  for (unsigned plane = 0; plane < width; ++plane) {
    const char* from = planes.data() + plane * count;
    for (size_t i = 0; i < count; ++i) {
      out[i] |= uint64_t{static_cast<unsigned char>(from[i])} << 8 * plane;
    }
  }
  return true;
}

inline bool is_numbers(const Value& kept) {
  return kept.type == Value::list && !kept.items.empty() && kept.items[0].type == Value::text &&
         kept.items[0].data == "#";
}

// A column that is kept whole: ["#", type, planes], or any other value as it is.
inline bool decode_whole(const Value& kept, Column& out) {
  out.other = &kept;
  if (!is_numbers(kept)) return true;
  if (kept.items.size() != 3 || kept.items[1].type != Value::text ||
      kept.items[2].type != Value::bytes || kept.items[1].data.size() != 3) {
    return false;
  }
  std::string_view type = kept.items[1].data;
  out.kind = type[1];
  out.width = static_cast<unsigned>(type[2] - '0');
  bool is_known = type == "|b1" || type == "|u1" || type == "|i1" ||
                  (type[0] == '<' && (out.kind == 'i' || out.kind == 'u' || out.kind == 'f') &&
                   (out.width == 2 || out.width == 4 || out.width == 8));
  return is_known && from_planes(kept.items[2].data, out.width, out.bits);
}

// A column that differs from that of the class: ["#", way, width, planes].
inline bool decode_difference(const Value& kept, const Column* common, Column& out) {
  if (!is_numbers(kept) || kept.items.size() == 3) return decode_whole(kept, out);
  if (kept.items.size() != 4 || common == nullptr || common->kind == 0) return false;
  const Value &way = kept.items[1], &width = kept.items[2], &planes = kept.items[3];
  bool fits = way.type == Value::integer && (way.bits == 1 || way.bits == 2) &&
              width.type == Value::integer && planes.type == Value::bytes &&
              (width.bits == 1 || width.bits == 2 || width.bits == 4 || width.bits == 8);
  if (!fits || !from_planes(planes.data, static_cast<unsigned>(width.bits), out.bits)) return false;
  if (out.bits.size() != common->bits.size()) return false;
  out.kind = common->kind;
  out.width = common->width;
  uint64_t mask = out.width == 8 ? UINT64_MAX : (uint64_t{1} << 8 * out.width) - 1, sum = 0;
  for (size_t i = 0; i < out.bits.size(); ++i) {
    auto difference = static_cast<uint64_t>(wire::zigzag(out.bits[i]));
    sum = way.bits == 2 ? sum + difference : difference;
    out.bits[i] = (common->bits[i] + sum) & mask;
  }
  return true;
}

inline bool decode_class(const Value& kept, Columns& out) {
  if (kept.type != Value::map) return false;
  for (size_t i = 0; i < kept.items.size(); i += 2) {
    auto column = std::make_shared<Column>();
    if (kept.items[i].type != Value::text || !decode_whole(kept.items[i + 1], *column)) return false;
    out[kept.items[i].data] = std::move(column);
  }
  return true;
}

// `kept` is a pair: the columns that differ, and the names of those that the rank lacks.
inline bool decode_rank(const Value& kept, const Columns& common, Columns& out) {
  if (kept.type != Value::list || kept.items.size() != 2 || kept.items[0].type != Value::map ||
      kept.items[1].type != Value::list) {
    return false;
  }
  out = common;
  for (const Value& name : kept.items[1].items) out.erase(name.data);
  const std::vector<Value>& differ = kept.items[0].items;
  for (size_t i = 0; i < differ.size(); i += 2) {
    auto beside = common.find(differ[i].data);
    auto column = std::make_shared<Column>();
    const Column* known = beside == common.end() ? nullptr : beside->second.get();
    if (differ[i].type != Value::text || !decode_difference(differ[i + 1], known, *column)) return false;
    out[differ[i].data] = std::move(column);
  }
  return true;
}

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_COLUMNS_HPP
