// Nodes of PyTorch's host traces, layouts B to E, in a piece of a file: read one by one, and put into
// the table when all of them are known to be as usual.
#ifndef CHAKRA_ET_KERNEL_HOST_NODES_HPP
#define CHAKRA_ET_KERNEL_HOST_NODES_HPP

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "attribute_lists.hpp"
#include "host_table.hpp"
#include "json.hpp"
#include "key_trail.hpp"

namespace chakra_et {
namespace kernel {

class HostNodes {
 public:
  // How many nodes were put into the table; -1, and none were, where one is not as usual.
  int64_t read(Piece& piece, HostTable& table) {
    piece_ = &piece;
    table_ = &table;
    nodes_.clear();
    lists_.begin();
    bool sound = each_object(
        piece, [this](const char* begin) { return take_plain(begin); },
        [this](od::document& document, od::object& node) { return take(document, node); });
    if (!sound) return -1;
    put_all();
    return static_cast<int64_t>(nodes_.size());
  }

 private:
  // Inputs or outputs. What stands behind their values may be a known text, which has a number.
  struct Operands {
    OperandTexts texts = {"[]", "[]", "[]", ""};
    int32_t known = -1;
  };
  struct Node {
    uint64_t id = 0, parent = 0;
    std::string_view name;
    uint32_t group, first;  // the group of nodes alike, and the first of its values
    std::array<Operands, 2> operands;
  };

  Node new_node() const {
    Node node;
    node.first = static_cast<uint32_t>(lists_.values.size());
    return node;
  }

  void put(const Node& node) {
    lists_.groups[node.group].places.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back(node);
  }

  // Behind a node of plain values whose attributes are written in a way that is known.
  const char* take_plain(const char* begin) {
    bool has_id = false, has_name = false, has_attributes = false;
    Node node = new_node();
    const char* end = node_keys_.behind_object(begin, node_key, [&](uint8_t key, const char* p) {
      bool is_told = false;
      switch (key) {
        case id_key:
          return behind_id(p, node.id, has_id);
        case name_key:
          has_name = *p == '"';
          return has_name ? piece_->behind_any_text(p + 1, node.name) : nullptr;
        case parent_key:
          return behind_id(p, node.parent, is_told);
        case inputs_key:
          return behind_operands(p, node.operands[0]);
        case outputs_key:
          return behind_operands(p, node.operands[1]);
        case attributes_key:
          lists_.values.resize(node.first);
          has_attributes = true;
          return lists_.read_known(p, *piece_, node.group);
        case duration_key:
          return static_cast<const char*>(nullptr);
        default:
          return behind_value(p, 0);
      }
    });
    if (end == nullptr || !has_id || !has_name || !has_attributes || !ends_element(end)) {
      lists_.values.resize(node.first);
      return nullptr;
    }
    put(node);
    return end;
  }

  enum NodeKey : uint8_t {
    id_key, name_key, parent_key, inputs_key, outputs_key, attributes_key, duration_key, other_key
  };

  static uint8_t node_key(std::string_view key) {
    if (is(key, "id")) return id_key;
    if (is(key, "name")) return name_key;
    if (is(key, "ctrl_deps")) return parent_key;
    if (is(key, "inputs")) return inputs_key;
    if (is(key, "outputs")) return outputs_key;
    if (is(key, "attrs")) return attributes_key;
    return is(key, "dur") ? duration_key : other_key;
  }

  static const char* behind_id(const char* p, uint64_t& out, bool& is_told) {
    p = behind_digits(p, out);
    is_told = p != nullptr;
    return p;
  }

  bool take(od::document& document, od::object& object) {
    bool has_id = false, has_name = false, has_attributes = false;
    Node node = new_node();
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key)) return false;
      if (is(key, "id")) {
        if (!integer_of(field.value(), node.id)) return false;
        has_id = true;
      } else if (is(key, "name")) {
        if (!text_of(field.value(), node.name)) return false;
        has_name = true;
      } else if (is(key, "ctrl_deps")) {
        if (!integer_of(field.value(), node.parent)) return false;
      } else if (is(key, "inputs") || is(key, "outputs")) {
        if (!take_operands(document, field.value(), node.operands[is(key, "outputs")])) return false;
      } else if (is(key, "attrs")) {
        lists_.values.resize(node.first);
        if (!lists_.read(field.value(), node.group)) return false;
        has_attributes = true;
      } else if (is(key, "dur") || !walk(field.value())) {
        return false;  // times that a tool has added are for others to read
      }
    }
    if (!has_id || !has_name) return false;
    if (!has_attributes) node.group = lists_.empty();
    put(node);
    return true;
  }

  // Which of the texts of inputs or outputs a key stands for; another number for none of them.
  static uint8_t operand_key(std::string_view key) {
    if (is(key, "values")) return 0;
    if (is(key, "shapes")) return 1;
    if (is(key, "types")) return 2;
    return is(key, "strides") ? 3 : 4;
  }

  static bool take_operands(od::document& document, simdjson::simdjson_result<od::value> found,
                            Operands& out) {
    od::object object;
    if (found.get_object().get(object)) return false;
    out = Operands();
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key)) return false;
      uint8_t place = operand_key(key);
      if (place == out.texts.size() ? !walk(field.value())
                                    : !carried(document, field.value(), out.texts[place])) {
        return false;
      }
    }
    return true;
  }

  // Behind inputs or outputs. Most begin with their values, which mostly differ; few texts stand behind
  // those.
  const char* behind_operands(const char* p, Operands& out) {
    if (*p != '{') return nullptr;
    out = Operands();
    const char* behind_values = nullptr;
    KeyTrail::Place place;
    for (bool is_first = true;; is_first = false) {
      p = operand_keys_.next(p, place, operand_key);
      if (p == nullptr || place.meaning == KeyTrail::at_end) break;
      const char* begin = p;
      if ((p = behind_value(p, 1)) == nullptr) return nullptr;
      if (place.meaning < out.texts.size()) {
        out.texts[place.meaning] = {begin, static_cast<size_t>(p - begin)};
      }
      if (place.meaning == 0) behind_values = is_first ? p : nullptr;
      if (behind_values != p) continue;
      if (const char* end = behind_known(p, out)) return end;
    }
    if (p != nullptr && behind_values != nullptr) learn(behind_values, p, out.texts);
    return p;
  }

  // Behind the operands whose values end at `p`, if what stands behind these is known.
  const char* behind_known(const char* p, Operands& out) {
    const char* brace = next_of<'}', '\0'>(p);
    if (*brace == '\0') return nullptr;
    out.known = table_->behind_values.find({p, static_cast<size_t>(brace + 1 - p)});
    if (out.known < 0) return nullptr;
    const BehindValues& behind = table_->behind_values[out.known];
    for (size_t k = 0; k < out.texts.size(); ++k) {
      const auto& [begin, size] = behind.texts[k];
      if (size > 0) out.texts[k] = {p + begin, size};
    }
    return brace + 1;
  }

  // Keep what stands behind values.
  void learn(const char* begin, const char* end, const OperandTexts& texts) {
    BehindValues behind;
    for (size_t k = 1; k < texts.size(); ++k) {
      const char* text = texts[k].data();
      if (std::less<>()(text, begin) || !std::less<>()(text, end)) continue;  // not told
      behind.texts[k] = {static_cast<uint32_t>(text - begin), static_cast<uint32_t>(texts[k].size())};
    }
    table_->behind_values.learn({begin, static_cast<size_t>(end - begin)}, behind);
  }

  // Codes are given in the order in which Python asks for them: column by column.
  void put_all() {
    HostTable& table = *table_;
    size_t before = table.id.size(), count = before + nodes_.size();
    for (const Node& node : nodes_) {
      table.id.push_back(node.id);
      table.parent.push_back(node.parent);
    }
    look_up(table.names, [](const Node& node) { return node.name; }, table.name);
    for (size_t side = 0; side < table.operand.size(); ++side) put_operands(side, table);
    for (size_t k = 0; k < core_numbers.size(); ++k) {
      table.numbers[k].resize(count, core_numbers[k].absent);
    }
    schema_of_.assign(nodes_.size(), {});
    for (uint32_t used : lists_.used) {
      const Alike& group = lists_.groups[used];
      for (size_t k = 0; k < group.names.size(); ++k) spread(group, k, before, table);
    }
    table.schemas.look_up(
        nodes_.size(), [this](size_t at) { return schema_of_[at]; },
        [&](size_t, int32_t code) { table.schema.push_back(code); });
  }

  void put_operands(size_t side, HostTable& table) {
    parts_[0].clear();
    look_up(table.texts[0], [=](const Node& node) { return node.operands[side].texts[0]; }, parts_[0]);
    for (size_t k : {1, 2}) {
      parts_[k].clear();
      put_behind_values(side, k, table.texts[k], parts_[k]);
    }
    put_behind_values(side, 3, table.strides, table.stride[side]);
    table.operands.look_up(
        nodes_.size(),
        [this](size_t at) -> HostTable::Parts { return {parts_[0][at], parts_[1][at], parts_[2][at]}; },
        [&](size_t, int32_t code) { table.operand[side].push_back(code); });
  }

  // Put the code of one of the texts behind the values of each node behind a column.
  void put_behind_values(size_t side, size_t k, KeptPool& pool, Grown<int32_t>& column) {
    for (const Node& node : nodes_) {
      const Operands& operands = node.operands[side];
      if (operands.known < 0) {
        column.push_back(pool[operands.texts[k]]);
        continue;
      }
      int32_t& code = table_->behind_values[operands.known].codes[k];
      if (code < 0) code = pool[operands.texts[k]];
      column.push_back(code);
    }
  }

  // Put the code of a text of each node behind a column.
  template <class Pool, class TextOf>
  void look_up(Pool& pool, TextOf&& text_of, Grown<int32_t>& column) const {
    pool.look_up(
        nodes_.size(), [&](size_t at) { return text_of(nodes_[at]); },
        [&](size_t, int32_t code) { column.push_back(code); });
  }

  // Put the values of one attribute of a group where they belong.
  void spread(const Alike& group, size_t k, size_t before, HostTable& table) {
    std::string_view called = group.names[k];
    size_t core = core_place(called);
    if (called == op_schema_name) {
      for (uint32_t place : group.places) schema_of_[place] = value_of(place, k).characters;
    } else if (core < core_numbers.size()) {
      for (uint32_t place : group.places) {
        table.numbers[core][before + place] = static_cast<int64_t>(value_of(place, k).bits);
      }
    } else {
      put_told(group, k, before, table);
    }
  }

  void put_told(const Alike& group, size_t k, size_t before, HostTable& table) const {
    ToldColumn* column = nullptr;
    for (uint32_t place : group.places) {
      const Value& value = value_of(place, k);
      bool is_text = value.kind == Value::text;
      // PyTorch writes an empty text where there is nothing to say.
      if (is_text && value.characters.empty()) continue;
      if (column == nullptr) column = &table.column(group.names[k], group.types[k]);
      column->rows.push_back(static_cast<int64_t>(before + place));
      column->kinds.push_back(value.kind);
      column->values.push_back(
          is_text ? static_cast<uint64_t>(table.told_texts[value.characters]) : value.bits);
    }
  }

  const Value& value_of(uint32_t place, size_t k) const {
    return lists_.values[nodes_[place].first + k];
  }

  Piece* piece_ = nullptr;      // the one that is read
  HostTable* table_ = nullptr;  // where its nodes belong
  KeyTrail node_keys_, operand_keys_;
  std::vector<Node> nodes_;
  AttributeLists lists_;
  std::vector<std::string_view> schema_of_;      // each node
  std::array<Grown<int32_t>, 3> parts_;          // codes of values, shapes and types of one side
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_HOST_NODES_HPP
