// Nodes of PyTorch's host traces as columns: what `NestedColumns` in converters/pytorch/reader.py
// makes of the same pieces of a file.
#ifndef CHAKRA_ET_KERNEL_HOST_TABLE_HPP
#define CHAKRA_ET_KERNEL_HOST_TABLE_HPP

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "grown.hpp"
#include "known_texts.hpp"
#include "pool.hpp"

namespace chakra_et {
namespace kernel {

// Attributes that every node has, and their values where one has not.
struct CoreNumber {
  std::string_view name;
  int64_t absent;
};
constexpr std::array<CoreNumber, 6> core_numbers = {{
    {"rf_id", 0}, {"fw_parent", 0}, {"seq_id", -1}, {"scope", 0}, {"tid", 0}, {"fw_tid", 0}}};
constexpr std::string_view op_schema_name = "op_schema";

// The place of one of these, or their number for another attribute.
inline size_t core_place(std::string_view called) {
  size_t place = 0;
  while (place < core_numbers.size() && core_numbers[place].name != called) ++place;
  return place;
}

// Values, shapes, types and strides of inputs or outputs, as they stand in the file.
using OperandTexts = std::array<std::string_view, 4>;

// A whole number, which is that of `bits` as far as its kind says, or a text.
struct Value {
  enum Kind : uint8_t { signed_number, unsigned_number, text } kind = text;
  uint64_t bits = 0;
  std::string_view characters;
};

// An attribute that only some nodes have; a text stands in the table as its code.
struct ToldColumn {
  Grown<int64_t> rows;
  Grown<Value::Kind> kinds;
  Grown<uint64_t> values;
};

// What stands behind the values of inputs or outputs until these end.
struct BehindValues {
  struct Range {
    uint32_t begin = 0, size = 0;
  };
  std::array<Range, 4> texts;  // as `OperandTexts`; values are none of them
  std::array<int32_t, 4> codes = {-1, -1, -1, -1};  // of the texts in the table, once they are there
};

struct HostTable {
  using Parts = std::array<int32_t, 3>;
  Grown<uint64_t> id, parent;
  Grown<int32_t> name, schema;
  std::array<Grown<int32_t>, 2> operand, stride;  // of inputs and of outputs
  std::array<Grown<int64_t>, core_numbers.size()> numbers;
  KeptPool names, schemas, strides;
  std::array<KeptPool, 3> texts;    // values, shapes and types
  Pool<Parts, HashCodes> operands;  // codes of these
  KnownTexts<BehindValues> behind_values;
  KeptPool told_names, told_types, told_texts;
  std::vector<ToldColumn> told;  // by the codes of their names
  std::vector<int32_t> told_type;

  HostTable() { strides[""]; }  // of nodes that tell none

  ToldColumn& column(std::string_view called, std::string_view type) {
    auto code = static_cast<size_t>(told_names[called]);
    if (code == told.size()) {
      told.emplace_back();
      told_type.push_back(told_types[type]);
    }
    return told[code];
  }
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_HOST_TABLE_HPP
