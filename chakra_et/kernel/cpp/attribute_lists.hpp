// The lists of attributes of host nodes: `[{"name": …, "type": …, "value": …}, …]`.
//
// Nearly all lists of a file are the same text but for the values. So each new way to write them is
// read by simdjson once, and what stands between its values is kept, from piece to piece: wherever the
// same stands between plain values again, they are all that need be looked at.
#ifndef CHAKRA_ET_KERNEL_ATTRIBUTE_LISTS_HPP
#define CHAKRA_ET_KERNEL_ATTRIBUTE_LISTS_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "host_table.hpp"
#include "json.hpp"

namespace chakra_et {
namespace kernel {

// Nodes that have the same attribute names in the same order; the types are those of the first node
// in the piece.
struct Alike {
  std::vector<std::string_view> names, types;
  std::vector<uint32_t> places;  // of the nodes in the piece
  bool is_used = false;          // in the piece
  bool are_distinct = true;      // the names
};

class AttributeLists {
 public:
  std::vector<Value> values;   // of all lists of the piece, one behind the other
  std::vector<Alike> groups;   // all that were seen
  std::vector<uint32_t> used;  // those that the piece has, in the order of their first nodes

  // Begin a piece: the values of the one before are forgotten, how its lists are written is not, as
  // long as that helps.
  void begin() {
    values.clear();
    for (uint32_t group : used) {
      groups[group].places.clear();
      groups[group].is_used = false;
    }
    used.clear();
    if (groups.size() > most_groups || lacked_room_) {
      groups.clear();
      ways_.clear();
      kept_.clear();
      last_ = 0;
      lacked_room_ = false;
    }
  }

  // Behind the list at `begin`, if it is written in a way that is known: then its values are put
  // behind the others.
  const char* read_known(const char* begin, Piece& piece, uint32_t& group) {
    for (size_t tried = 0; tried < ways_.size(); ++tried) {
      const char* behind = behind_list(ways_[last_], begin, piece);
      if (behind != nullptr) {
        group = ways_[last_].group;
        use(group, ways_[last_].types);
        return behind;
      }
      last_ = last_ + 1 == ways_.size() ? 0 : last_ + 1;
    }
    return nullptr;
  }

  // The same for any list; false for what is not as usual. So what is known is as usual, too: its
  // numbers have few digits.
  bool read(simdjson::simdjson_result<od::value> found, uint32_t& group) {
    od::value list;
    if (found.get(list)) return false;
    const char* begin = start_of(list);
    size_t before = values.size();
    seen_.clear();
    types_.clear();
    starts_.clear();
    od::array array;
    if (list.get_array().get(array)) return false;
    for (auto element : array) {
      od::object object;
      if (element.get_object().get(object) || !take(object)) return false;
    }
    group = group_of_seen();
    if (!are_usual(group, before)) return false;
    if (ways_.size() < most_ways) {
      learn(begin, before, group);
    } else {
      lacked_room_ = true;
    }
    return true;
  }

  // The group of a list that has no attributes.
  uint32_t empty() {
    seen_.clear();
    types_.clear();
    return group_of_seen();
  }

 private:
  // A value, and what stands before it.
  struct Step {
    std::string_view before;
    bool is_text;
  };
  // All values of a list, with their types, and what stands behind the last.
  struct Way {
    std::vector<Step> steps;
    std::vector<std::string_view> types;
    std::string_view end;
    uint32_t group;
  };
  static constexpr size_t most_ways = 8, most_groups = 64;

  // A text that lives on when its piece is gone.
  std::string_view keep(std::string_view text) {
    kept_.emplace_back(text);
    return kept_.back();
  }

  void use(uint32_t group, const std::vector<std::string_view>& types) {
    if (groups[group].is_used) return;
    groups[group].is_used = true;
    groups[group].types = types;
    used.push_back(group);
  }

  const char* behind_list(const Way& way, const char* p, Piece& piece) {
    size_t before = values.size();
    values.resize(before + way.steps.size());
    Value* value = values.data() + before;
    for (const Step& step : way.steps) {
      if ((p = behind_same(step.before, p, piece)) == nullptr) break;
      p = step.is_text ? behind_text_of(p, *value, piece) : behind_whole(p, *value);
      if (p == nullptr) break;
      ++value;
    }
    if (p != nullptr) p = behind_same(way.end, p, piece);
    if (p == nullptr) values.resize(before);
    return p;
  }

  static const char* behind_same(std::string_view text, const char* p, const Piece& piece) {
    bool same = text.size() <= static_cast<size_t>(piece.end() - p) &&
                std::memcmp(p, text.data(), text.size()) == 0;
    return same ? p + text.size() : nullptr;
  }

  static const char* behind_text_of(const char* p, Value& value, Piece& piece) {
    if (*p != '"') return nullptr;
    if (p[1] == '"') return p + 2;  // Most have nothing to say.
    return piece.behind_any_text(p + 1, value.characters);
  }

  static const char* behind_whole(const char* p, Value& value) {
    bool negative = *p == '-';
    p = behind_digits(p + negative, value.bits);
    if (negative) value.bits = uint64_t{0} - value.bits;
    value.kind = negative ? Value::signed_number : Value::unsigned_number;
    return p;
  }

  bool take(od::object& object) {
    std::string_view called, type;
    Value value;
    const char* start = nullptr;
    bool has_name = false;
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key)) return false;
      if (is(key, "name")) {
        if (!text_of(field.value(), called)) return false;
        has_name = true;
      } else if (is(key, "type")) {
        if (!text_of(field.value(), type)) return false;
      } else if (is(key, "value")) {
        if (!take_value(field.value(), value, start)) return false;
      } else if (!walk(field.value())) {
        return false;
      }
    }
    if (!has_name || start == nullptr) return false;
    seen_.push_back(called);
    types_.push_back(type);
    starts_.push_back(start);
    values.push_back(value);
    return true;
  }

  static bool take_value(simdjson::simdjson_result<od::value> found, Value& out,
                         const char*& start) {
    od::value value;
    if (found.get(value)) return false;
    start = start_of(value);
    if (*start == '"') {
      out = Value();
      return text_of(value, out.characters);
    }
    if (*start == '-') {
      int64_t number;
      if (value.get_int64().get(number)) return false;
      out = {Value::signed_number, static_cast<uint64_t>(number), {}};
      return true;
    }
    out = {Value::unsigned_number, 0, {}};
    return is_digit(*start) && !value.get_uint64().get(out.bits);
  }

  uint32_t group_of_seen() {
    uint32_t group = 0;
    while (group < groups.size() && groups[group].names != seen_) ++group;
    if (group == groups.size()) {
      groups.emplace_back();
      for (std::string_view name : seen_) groups[group].names.push_back(keep(name));
      std::vector<std::string_view> names = seen_;
      std::sort(names.begin(), names.end());
      groups[group].are_distinct = std::adjacent_find(names.begin(), names.end()) == names.end();
    }
    use(group, types_);
    return group;
  }

  // Is no attribute told twice, and have those that all nodes have the kinds that they should? The
  // values are the last ones.
  bool are_usual(uint32_t group, size_t first) const {
    for (size_t k = 0; k < seen_.size(); ++k) {
      const Value& value = values[first + k];
      if (seen_[k] == op_schema_name) {
        if (value.kind != Value::text) return false;
      } else if (core_place(seen_[k]) < core_numbers.size() && !fits(value)) {
        return false;
      }
    }
    return groups[group].are_distinct;
  }

  static bool fits(const Value& value) {
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return value.kind == Value::signed_number ||
           (value.kind == Value::unsigned_number && value.bits <= most);
  }

  // Keep how the list that was read last is written, if all of it is plain.
  void learn(const char* begin, size_t before, uint32_t group) {
    const char* end = behind_array(begin, 0);
    if (end == nullptr) return;
    Way way{{}, {}, {}, group};
    for (size_t k = 0; k < starts_.size(); ++k) {
      if (starts_[k] < begin) return;  // a member that comes twice
      way.steps.push_back({keep({begin, static_cast<size_t>(starts_[k] - begin)}),
                           values[before + k].kind == Value::text});
      way.types.push_back(keep(types_[k]));
      begin = behind_value(starts_[k], 0);
    }
    way.end = keep({begin, static_cast<size_t>(end - begin)});
    ways_.push_back(std::move(way));
    last_ = ways_.size() - 1;
  }

  std::vector<Way> ways_;
  size_t last_ = 0;
  bool lacked_room_ = false;      // for one more way
  std::deque<std::string> kept_;  // what groups and ways refer to
  std::vector<std::string_view> seen_, types_;  // of the list that was read anew last
  std::vector<const char*> starts_;             // of its values
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_ATTRIBUTE_LISTS_HPP
