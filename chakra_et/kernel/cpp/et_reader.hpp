// Records of an ET as columns: what `BlockReader` in converters/et/block_reader.py makes of a file,
// or nothing where a file holds anything that is not as usual.
#ifndef CHAKRA_ET_KERNEL_ET_READER_HPP
#define CHAKRA_ET_KERNEL_ET_READER_HPP

#include <array>
#include <chakra_et/numbers.hpp>
#include <chakra_et/wire.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pool.hpp"

namespace chakra_et {
namespace kernel {

// What the schema says of numbers, given by Python.
struct EtTags {
  uint8_t id, name, type, start, duration, inputs, outputs, attribute;
  std::array<uint8_t, 4> sources;   // control, then data dependencies: packed or not
  std::array<uint8_t, 3> operands;  // values, shapes, types
  std::vector<int> wire_types;      // of an attribute's value by its field number, -1: none is one
};

// What tells attributes apart.
struct EtKey {
  std::string_view name;
  uint32_t kind;
  bool operator==(const EtKey& other) const { return kind == other.kind && name == other.name; }
};

struct HashEtKey {
  size_t operator()(const EtKey& key) const {
    return std::hash<std::string_view>()(key.name) * 31 + key.kind;
  }
};

// The texts in the message of a list; false where it holds anything else.
inline bool take_texts(std::string_view list, std::vector<std::string_view>& texts) {
  auto* p = reinterpret_cast<const wire::Byte*>(list.data());
  const wire::Byte* end = p + list.size();
  while (p < end) {
    wire::Field field;
    if (wire::next_field(p, end, field) != wire::Step::field) return false;
    if (field.number != 1 || field.type != wire::bytes) return false;
    texts.push_back(field.data.text());
  }
  return true;
}

// The values of one attribute, which all stand behind the same bytes.
struct EtColumn {
  EtKey key{};
  unsigned wire_type = 0;
  std::vector<int64_t> rows;
  std::vector<uint64_t> numbers;  // varints, and the bits of what has a fixed width
  std::vector<int32_t> codes;     // of texts, bytes and lists
  TextPool contents;
  std::vector<std::string_view> apart;  // in place of both, where most texts are distinct

  // False for a list of texts that is damaged.
  bool take(std::string_view content) {
    if (is_texts() && !is_sound(content)) return false;
    if (!apart.empty()) {
      apart.push_back(content);
      return true;
    }
    codes.push_back(contents[content]);
    if (codes.size() == most_tried && 2 * contents.values().size() > most_tried) set_apart();
    return true;
  }

 private:
  static constexpr size_t most_tried = 1 << 16;
  std::vector<std::string_view> parts_;

  bool is_texts() const { return static_cast<Kind>(key.kind) == Kind::string_list; }

  bool is_sound(std::string_view content) {
    parts_.clear();
    return take_texts(content, parts_);
  }

  // To find equal ones takes longer than all else, and gains little.
  void set_apart() {
    if (!is_texts() && static_cast<Kind>(key.kind) != Kind::string) return;
    for (int32_t code : codes) apart.push_back(contents.values()[static_cast<size_t>(code)]);
    codes = {};
    contents = {};
  }
};

// Passes whole records with a length of one or two bytes that is not 0; how many that are.
inline size_t pass_short(std::string_view data, size_t& at) {
  size_t count = 0;
  while (at + 2 < data.size()) {
    auto low = static_cast<wire::Byte>(data[at]), high = static_cast<wire::Byte>(data[at + 1]);
    size_t head = low < 0x80 ? 1 : 2;
    size_t length = low < 0x80 ? low : (low & 0x7fu) | static_cast<size_t>(high) << 7;
    if ((head == 1 ? low : high) == 0 || (head == 2 && high >= 0x80)) break;
    if (length > data.size() - at - head) break;
    at += head + length;
    ++count;
  }
  return count;
}

class EtReader {
 public:
  std::vector<int64_t> at, ctrl_count, data_count;
  std::vector<uint64_t> id, start_us, duration_us, sources;
  std::vector<int32_t> type, name, inputs, outputs, layout;
  std::vector<std::pair<int64_t, std::string_view>> unknown;  // fields that nobody knows, by row
  std::vector<EtColumn> columns;
  std::vector<std::vector<int32_t>> layouts = {{}};
  TextPool names, texts;
  std::vector<std::array<std::string_view, 3>> operands;  // of the texts

  EtReader(const EtTags& tags, std::string_view data, size_t piece)
      : tags_(tags),
        begin_(reinterpret_cast<const wire::Byte*>(data.data())),
        end_(begin_ + data.size()),
        piece_(piece) {
    names[std::string_view()];
    for (uint8_t tag : {tags.id, tags.name, tags.type, tags.start, tags.duration, tags.inputs,
                        tags.outputs, tags.attribute}) {
      known_[tag & 0x7f] = true;
    }
    for (uint8_t tag : tags.sources) known_[tag & 0x7f] = true;
  }

  // False where the file is for the reader in Python.
  bool read(size_t first) {
    const wire::Byte* p = begin_ + first;
    while (p < end_) {
      // Codes are given piece by piece, field by field, as in Python.
      const wire::Byte* stop = static_cast<size_t>(end_ - p) > piece_ ? p + piece_ : end_;
      pending_.clear();
      size_t empty = 0;
      while (p < stop) {
        wire::Span record;
        if (!wire::read_length(p, end_, record) || !take_node(record)) return false;
        if (record.size() == 0 && ++empty > most_empty) return false;
      }
      if (!intern_texts()) return false;
    }
    return true;
  }

 private:
  static constexpr size_t most_empty = 1 << 16;
  struct Pending {
    wire::Span name, inputs, outputs;
    bool has_inputs = false, has_outputs = false;
  };

  bool take_node(const wire::Span& record) {
    if (shows_metadata(record)) return false;
    Pending texts;
    uint64_t number_id = 0, number_type = 0, start = 0, duration = 0;
    own_layout_.clear();
    own_sources_[0].clear();
    own_sources_[1].clear();
    const wire::Byte* p = record.begin;
    while (p < record.end) {
      const wire::Byte* field_at = p;
      uint8_t tag = *p;
      wire::Field field;
      if (wire::next_field(p, record.end, field) != wire::Step::field) return false;
      // A tag with more bytes than it needs is not as usual.
      bool known = field.number < 16 && known_[field.number << 3 | field.type];
      if (known && tag >= 0x80) return false;
      if (!known) {
        unknown.emplace_back(static_cast<int64_t>(at.size()),
                             std::string_view(reinterpret_cast<const char*>(field_at),
                                              static_cast<size_t>(p - field_at)));
      } else if (tag == tags_.id) {
        number_id = field.value;
      } else if (tag == tags_.type) {
        number_type = field.value;
      } else if (tag == tags_.start) {
        start = field.value;
      } else if (tag == tags_.duration) {
        duration = field.value;
      } else if (tag == tags_.name) {
        texts.name = field.data;
      } else if (tag == tags_.inputs) {
        texts.inputs = field.data;
        texts.has_inputs = true;
      } else if (tag == tags_.outputs) {
        texts.outputs = field.data;
        texts.has_outputs = true;
      } else if (tag == tags_.attribute) {
        if (!take_attribute(field.data)) return false;
      } else if (!take_sources(tag, field)) {
        return false;
      }
    }
    id.push_back(number_id);
    type.push_back(static_cast<int32_t>(static_cast<uint32_t>(number_type)));
    start_us.push_back(start);
    duration_us.push_back(duration);
    ctrl_count.push_back(static_cast<int64_t>(own_sources_[0].size()));
    data_count.push_back(static_cast<int64_t>(own_sources_[1].size()));
    for (const auto& own : own_sources_) sources.insert(sources.end(), own.begin(), own.end());
    at.push_back(record.begin - begin_);
    layout.push_back(layout_code());
    pending_.push_back(texts);
    return layout.back() >= 0;
  }

  // Whether a record may be metadata and no node: Python looks closer.
  static bool shows_metadata(const wire::Span& record) {
    constexpr uint8_t first = 1 << 3 | wire::bytes, second = 2 << 3 | wire::bytes;
    if (record.size() == 0) return false;
    if (*record.begin == first) return true;
    if (*record.begin != second) return false;
    const wire::Byte* p = record.begin + 1;
    wire::Span content;
    return wire::read_length(p, record.end, content) && content.size() > 0 &&
           *content.begin == first;
  }


  bool take_sources(uint8_t tag, const wire::Field& field) {
    auto& own = own_sources_[tag == tags_.sources[2] || tag == tags_.sources[3]];
    if (field.type == wire::varint) {
      own.push_back(field.value);
      return true;
    }
    const wire::Byte* p = field.data.begin;
    while (p < field.data.end) {
      uint64_t source;
      if (!wire::read_varint(p, field.data.end, source)) return false;
      own.push_back(source);
    }
    return true;
  }

  // An attribute that reads: its name, the tag of its value, and the value up to its end.
  bool take_attribute(const wire::Span& whole) {
    const wire::Byte* p = whole.begin;
    constexpr uint8_t named = 1 << 3 | wire::bytes;
    if (whole.size() < 4 || p[0] != named || p[1] == 0 || p[1] >= 0x80) return false;
    wire::Span name{p + 2, p + 2 + p[1]};
    if (name.end >= whole.end) return false;
    p = name.end;
    uint32_t tag = *p++;
    if (tag >= 0x80) {
      if (p == whole.end || *p == 0 || *p >= 0x80) return false;
      tag = (tag & 0x7f) | static_cast<uint32_t>(*p++) << 7;
    }
    uint32_t kind = tag >> 3;
    if (kind >= tags_.wire_types.size() || tags_.wire_types[kind] != static_cast<int>(tag & 7)) {
      return false;
    }
    int32_t place = column_of({name.text(), kind});
    EtColumn& column = columns[static_cast<size_t>(place)];
    auto row = static_cast<int64_t>(at.size());
    if (!column.rows.empty() && column.rows.back() == row) return false;  // a node has it twice
    own_layout_.push_back(place);
    column.rows.push_back(row);
    if (column.wire_type == wire::varint) {
      uint64_t value;
      if (!wire::read_varint(p, whole.end, value)) return false;
      column.numbers.push_back(value);
    } else if (column.wire_type == wire::bytes) {
      wire::Span content;
      if (!wire::read_length(p, whole.end, content)) return false;
      if (!column.take(content.text())) return false;
    } else {
      unsigned width = column.wire_type == wire::fixed32 ? 4 : 8;
      if (static_cast<size_t>(whole.end - p) != width) return false;
      column.numbers.push_back(wire::load_fixed(p, width));
      p += width;
    }
    return p == whole.end;
  }

  // Where nodes are alike, an attribute follows the same one as before.
  int32_t column_of(const EtKey& key) {
    size_t guess = own_layout_.size() < last_layout_.size()
                       ? static_cast<size_t>(last_layout_[own_layout_.size()])
                       : columns.size();
    if (guess < columns.size() && columns[guess].key == key) return static_cast<int32_t>(guess);
    int32_t place = keys_[key];
    if (static_cast<size_t>(place) == columns.size()) {
      columns.emplace_back();
      columns.back().key = key;
      columns.back().wire_type = static_cast<unsigned>(tags_.wire_types[key.kind]);
    }
    return place;
  }

  int32_t layout_code() {
    if (own_layout_ == last_layout_ && last_code_ >= 0) return last_code_;
    last_layout_ = own_layout_;
    std::string key(reinterpret_cast<const char*>(own_layout_.data()),
                    own_layout_.size() * sizeof(int32_t));
    if (own_layout_.empty()) return last_code_ = 0;
    auto [found, is_new] = layout_codes_.emplace(std::move(key), layouts.size());
    if (is_new) layouts.push_back(own_layout_);
    return last_code_ = static_cast<int32_t>(found->second);
  }

  bool intern_texts() {
    for (const Pending& node : pending_) name.push_back(names[node.name.text()]);
    for (const Pending& node : pending_) {
      inputs.push_back(node.has_inputs ? texts[node.inputs.text()] : -1);
    }
    for (const Pending& node : pending_) {
      outputs.push_back(node.has_outputs ? texts[node.outputs.text()] : -1);
    }
    while (operands.size() < texts.values().size()) {
      std::string_view text = texts.values()[operands.size()];
      operands.emplace_back();
      if (!take_operands(text, operands.back())) return false;
    }
    return true;
  }

  bool take_operands(std::string_view text, std::array<std::string_view, 3>& out) const {
    auto p = reinterpret_cast<const wire::Byte*>(text.data());
    const wire::Byte* end = p + text.size();
    while (p < end) {
      uint8_t tag = *p;
      wire::Field field;
      if (wire::next_field(p, end, field) != wire::Step::field) return false;
      size_t k = 0;
      while (k < out.size() && tags_.operands[k] != tag) ++k;
      if (k == out.size()) return false;
      out[k] = field.data.text();
    }
    return true;
  }

  const EtTags& tags_;
  std::array<bool, 128> known_{};  // tags of one byte
  const wire::Byte* begin_;
  const wire::Byte* end_;
  size_t piece_;
  Pool<EtKey, HashEtKey> keys_;  // of the columns
  std::vector<Pending> pending_;
  std::vector<int32_t> own_layout_, last_layout_;
  std::array<std::vector<uint64_t>, 2> own_sources_;
  std::unordered_map<std::string, size_t> layout_codes_;
  int32_t last_code_ = -1;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_ET_READER_HPP
