// Nodes of PyTorch's host traces, layouts B to E, as columns: what `NestedColumns` in
// converters/pytorch/reader.py makes of the same piece.
#ifndef CHAKRA_ET_KERNEL_HOST_NODES_HPP
#define CHAKRA_ET_KERNEL_HOST_NODES_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
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

// Values, shapes, types and strides of inputs or outputs, as they stand in the file.
struct Operands {
  std::array<std::string_view, 4> texts = {"[]", "[]", "[]", ""};
  bool operator==(const Operands& other) const { return texts == other.texts; }
};

struct HashOperands {
  size_t operator()(const Operands& operands) const {
    size_t hash = 0;
    for (std::string_view text : operands.texts) {
      hash = hash * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(text);
    }
    return hash;
  }
};

// A whole number, which is that of `bits` as far as `is_signed` says, or a text.
struct Value {
  enum Kind : uint8_t { signed_number, unsigned_number, text } kind = text;
  uint64_t bits = 0;
  std::string_view characters;
};

// Nodes that have the same attribute names in the same order; the types are those of the first.
struct Alike {
  std::vector<std::string_view> names;
  std::vector<std::string_view> types;
  std::vector<uint32_t> places;  // of the nodes in the piece
};

// The values of one attribute in one group of nodes that are alike.
struct Told {
  std::string_view name, type;
  std::vector<int64_t> rows;
  std::vector<Value> values;
};

class HostNodes {
 public:
  std::vector<uint64_t> id, parent;
  std::vector<int32_t> name, schema, inputs, outputs;
  std::array<std::vector<int64_t>, core_numbers.size()> numbers;
  std::vector<Told> told;
  TextPool names, schemas;
  Pool<Operands, HashOperands> operands;

  bool read(od::parser& parser, simdjson::padded_string_view text) {
    bool sound = each_object(parser, text, [this](od::document& document, od::object& node) {
      return take(document, node);
    });
    return sound && finish();
  }

 private:
  struct Node {
    uint32_t group, first;  // the group of nodes alike, and the first of its values
    Operands in, out;
  };

  bool take(od::document& document, od::object& object) {
    uint64_t number = 0, caller = 0;
    bool has_id = false, has_name = false;
    std::string_view called;
    Node node{0, static_cast<uint32_t>(values_.size()), {}, {}};
    seen_.clear();
    seen_types_.clear();
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key)) return false;
      if (key == "id") {
        if (!integer_of(field.value(), number)) return false;
        has_id = true;
      } else if (key == "name") {
        if (!text_of(field.value(), called)) return false;
        has_name = true;
      } else if (key == "ctrl_deps") {
        if (!integer_of(field.value(), caller)) return false;
      } else if (key == "inputs") {
        if (!take_operands(document, field.value(), node.in)) return false;
      } else if (key == "outputs") {
        if (!take_operands(document, field.value(), node.out)) return false;
      } else if (key == "attrs") {
        values_.resize(node.first);
        if (!take_attributes(field.value())) return false;
      } else if (key == "dur" || !walk(field.value())) {
        return false;  // times that a tool has added are for others to read
      }
    }
    if (!has_id || !has_name) return false;
    node.group = group();
    groups_[node.group].places.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back(node);
    id.push_back(number);
    parent.push_back(caller);
    name.push_back(names[called]);
    return true;
  }

  static bool take_operands(od::document& document, simdjson::simdjson_result<od::value> found,
                            Operands& out) {
    constexpr std::array<std::string_view, 4> keys = {"values", "shapes", "types", "strides"};
    od::object object;
    if (found.get_object().get(object)) return false;
    out = Operands();
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key)) return false;
      size_t k = 0;
      while (k < keys.size() && keys[k] != key) ++k;
      if (k == keys.size() ? !walk(field.value())
                           : !carried(document, field.value(), out.texts[k])) {
        return false;
      }
    }
    return true;
  }

  bool take_attributes(simdjson::simdjson_result<od::value> found) {
    od::array array;
    if (found.get_array().get(array)) return false;
    seen_.clear();
    seen_types_.clear();
    for (auto element : array) {
      od::object object;
      if (element.get_object().get(object)) return false;
      std::string_view called, type;
      Value value;
      bool has_name = false, has_value = false;
      for (auto field : object) {
        std::string_view key;
        if (!plain_key(field, key)) return false;
        if (key == "name") {
          if (!text_of(field.value(), called)) return false;
          has_name = true;
        } else if (key == "type") {
          if (!text_of(field.value(), type)) return false;
        } else if (key == "value") {
          if (!take_value(field.value(), value)) return false;
          has_value = true;
        } else if (!walk(field.value())) {
          return false;
        }
      }
      if (!has_name || !has_value) return false;
      seen_.push_back(called);
      seen_types_.push_back(type);
      values_.push_back(value);
    }
    return true;
  }

  static bool take_value(simdjson::simdjson_result<od::value> found, Value& out) {
    od::value value;
    if (found.get(value)) return false;
    std::string_view token = value.raw_json_token();
    if (token.empty()) return false;
    if (token.front() == '"') {
      out.kind = Value::text;
      return !value.get_string().get(out.characters);
    }
    if (token.front() == '-') {
      int64_t number;
      if (value.get_int64().get(number)) return false;
      out = {Value::signed_number, static_cast<uint64_t>(number), {}};
      return true;
    }
    out.kind = Value::unsigned_number;
    return is_number(token) && !value.get_uint64().get(out.bits);
  }

  // The group of the node whose attributes were seen last; most are like the one before.
  uint32_t group() {
    if (!groups_.empty() && groups_[last_].names == seen_) return last_;
    for (last_ = 0; last_ < groups_.size(); ++last_) {
      if (groups_[last_].names == seen_) return last_;
    }
    groups_.push_back({seen_, seen_types_, {}});
    return last_;
  }

  bool finish() {
    // Codes are given in the order in which Python asks for them: column by column.
    for (const Node& node : nodes_) inputs.push_back(operands[node.in]);
    for (const Node& node : nodes_) outputs.push_back(operands[node.out]);
    for (size_t k = 0; k < core_numbers.size(); ++k) {
      numbers[k].assign(nodes_.size(), core_numbers[k].absent);
    }
    std::vector<std::string_view> schema_of(nodes_.size());
    for (const Alike& group : groups_) {
      if (!are_distinct(group.names)) return false;  // a node has one twice
      for (size_t k = 0; k < group.names.size(); ++k) {
        if (!spread(group, k, schema_of)) return false;
      }
    }
    for (std::string_view text : schema_of) schema.push_back(schemas[text]);
    return true;
  }

  static bool are_distinct(std::vector<std::string_view> names) {
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) == names.end();
  }

  // Put the values of one attribute of a group where they belong.
  bool spread(const Alike& group, size_t k, std::vector<std::string_view>& schema_of) {
    std::string_view called = group.names[k];
    if (called == op_schema_name) {
      for (uint32_t place : group.places) {
        const Value& value = value_of(place, k);
        if (value.kind != Value::text) return false;
        schema_of[place] = value.characters;
      }
      return true;
    }
    for (size_t n = 0; n < core_numbers.size(); ++n) {
      if (core_numbers[n].name != called) continue;
      for (uint32_t place : group.places) {
        const Value& value = value_of(place, k);
        if (value.kind == Value::text ||
            (value.kind == Value::unsigned_number &&
             value.bits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
          return false;
        }
        numbers[n][place] = static_cast<int64_t>(value.bits);
      }
      return true;
    }
    Told found{called, group.types[k], {}, {}};
    for (uint32_t place : group.places) {
      const Value& value = value_of(place, k);
      // PyTorch writes an empty text where there is nothing to say.
      if (value.kind == Value::text && value.characters.empty()) continue;
      found.rows.push_back(place);
      found.values.push_back(value);
    }
    if (!found.rows.empty()) told.push_back(std::move(found));
    return true;
  }

  const Value& value_of(uint32_t place, size_t k) const { return values_[nodes_[place].first + k]; }

  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<Alike> groups_;
  std::vector<std::string_view> seen_, seen_types_;
  uint32_t last_ = 0;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_HOST_NODES_HPP
