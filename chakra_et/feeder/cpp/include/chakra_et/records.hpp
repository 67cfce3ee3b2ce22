// Nodes of a trace as records of an ET: what `encode_et` in converters/et/encoder.py makes of them.
// The compiled kernel writes by it, and what reads packed ETs.
#ifndef CHAKRA_ET_RECORDS_HPP
#define CHAKRA_ET_RECORDS_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace chakra_et {
namespace records {

// Bytes that grow; room for what comes is asked for once for each field.
class Bytes {
 public:
  char* room(size_t more) {
    if (size_ + more > data_.size()) data_.resize(2 * (size_ + more));
    return data_.data() + size_;
  }
  void add(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void add_varint(uint64_t value) {
    char* p = room(10);
    while (value >= 0x80) {
      *p++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *p++ = static_cast<char>(value);
    size_ = static_cast<size_t>(p - data_.data());
  }
  void clear() { size_ = 0; }
  std::string_view view() const { return {data_.data(), size_}; }

 private:
  std::vector<char> data_;
  size_t size_ = 0;
};

inline size_t varint_size(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

inline void add_field(Bytes& out, std::string_view tag, std::string_view payload) {
  out.add(tag);
  out.add_varint(payload.size());
  out.add(payload);
}

template <class T>
struct View {
  const T* data = nullptr;
  size_t size = 0;
};

// One attribute of many nodes, whose rows ascend. `before` stands before each value in the
// attribute's message; where `is_whole`, each text is the field as it is, tags and all.
struct Attribute {
  View<int64_t> rows;
  View<uint64_t> numbers;
  std::vector<std::string_view> texts;
  std::string_view before;
  bool is_number = false, is_whole = false;
  size_t next = 0;  // the first of its rows that is not written yet

  bool write(Bytes& out, std::string_view outer, int64_t row) {
    if (next >= rows.size || rows.data[next] != row) return false;
    size_t at = next++;
    if (is_number) {
      uint64_t value = numbers.data[at];
      out.add(outer);
      out.add_varint(before.size() + varint_size(value));
      out.add(before);
      out.add_varint(value);
    } else if (is_whole) {
      out.add(texts[at]);
    } else {
      size_t length = texts[at].size();
      out.add(outer);
      out.add_varint(before.size() + varint_size(length) + length);
      out.add(before);
      out.add_varint(length);
      out.add(texts[at]);
    }
    return true;
  }
};

// The tags of a node's fields, in the order in which they are written.
struct Tags {
  std::string_view id, name, type, ctrl_deps, data_deps, start, duration, inputs, outputs;
  std::array<std::string_view, 3> operands;
  std::string_view attribute;
};

struct Nodes {
  View<uint64_t> id, start_us, duration_us, source;
  View<int32_t> name, type, inputs, outputs, layout;
  View<int64_t> offsets;
  View<uint8_t> is_call;                               // for each edge
  std::vector<std::string_view> names;                 // as UTF-8
  // Values, shapes, types and further fields of text t stand from text_offsets[t] on.
  std::vector<std::string_view> texts;
  std::vector<size_t> text_offsets = {0};
  std::vector<std::vector<uint32_t>> layouts;          // the attributes of each layout, in order
  std::vector<Attribute> attributes;
  std::vector<uint32_t> last;                          // attributes that stand last, where they are told
  std::vector<std::pair<int64_t, std::string_view>> extra;  // fields that nobody knows, by row

  // Do columns of nodes and of edges have the lengths that they need, and offsets ascend? What codes
  // refer to is looked at where they are used.
  bool fit() const {
    size_t count = id.size, edges = source.size < is_call.size ? source.size : is_call.size;
    for (size_t size : {start_us.size, duration_us.size, name.size, type.size, inputs.size,
                        outputs.size, layout.size}) {
      if (size != count) return false;
    }
    if (offsets.size != count + 1 || offsets.data[0] < 0) return false;
    for (size_t row = 0; row < count; ++row) {
      if (offsets.data[row] > offsets.data[row + 1]) return false;
    }
    return static_cast<uint64_t>(offsets.data[count]) <= edges;
  }
};

class EtRecords {
 public:
  EtRecords(Nodes& nodes, const Tags& tags) : nodes_(nodes), tags_(tags) {}

  // Write some nodes, each with its length before it; false where the columns do not fit together.
  bool write(size_t first, size_t last, Bytes& out) {
    for (size_t row = first; row < last; ++row) {
      body_.clear();
      if (!write_node(row)) return false;
      out.add_varint(body_.view().size());
      out.add(body_.view());
    }
    return true;
  }

 private:
  bool write_node(size_t row) {
    add_number(tags_.id, nodes_.id.data[row]);
    if (!add_name(nodes_.name.data[row])) return false;
    add_number(tags_.type, static_cast<uint64_t>(static_cast<int64_t>(nodes_.type.data[row])));
    add_ids(tags_.ctrl_deps, row, true);
    add_ids(tags_.data_deps, row, false);
    add_number(tags_.start, nodes_.start_us.data[row]);
    add_number(tags_.duration, nodes_.duration_us.data[row]);
    if (!add_texts(tags_.inputs, nodes_.inputs.data[row])) return false;
    if (!add_texts(tags_.outputs, nodes_.outputs.data[row])) return false;
    auto layout = static_cast<size_t>(nodes_.layout.data[row]);
    if (layout >= nodes_.layouts.size()) return false;
    auto number = static_cast<int64_t>(row);
    for (uint32_t at : nodes_.layouts[layout]) {
      if (!nodes_.attributes[at].write(body_, tags_.attribute, number)) return false;
    }
    for (uint32_t at : nodes_.last) nodes_.attributes[at].write(body_, tags_.attribute, number);
    if (extra_ < nodes_.extra.size() && nodes_.extra[extra_].first == number) {
      body_.add(nodes_.extra[extra_++].second);
    }
    return true;
  }

  // Zero is left out, as proto3 wants.
  void add_number(std::string_view tag, uint64_t value) {
    if (value == 0) return;
    body_.add(tag);
    body_.add_varint(value);
  }

  bool add_name(int32_t code) {
    if (static_cast<size_t>(code) >= nodes_.names.size()) return false;
    std::string_view name = nodes_.names[static_cast<size_t>(code)];
    if (!name.empty()) add_field(body_, tags_.name, name);
    return true;
  }

  void add_ids(std::string_view tag, size_t row, bool calls) {
    inner_.clear();
    for (int64_t at = nodes_.offsets.data[row]; at < nodes_.offsets.data[row + 1]; ++at) {
      if ((nodes_.is_call.data[at] != 0) == calls) inner_.add_varint(nodes_.source.data[at]);
    }
    if (!inner_.view().empty()) add_field(body_, tag, inner_.view());
  }

  bool add_texts(std::string_view tag, int32_t code) {
    if (code < 0) return true;
    auto at = static_cast<size_t>(code);
    if (at + 1 >= nodes_.text_offsets.size()) return false;
    const std::string_view* text = nodes_.texts.data() + nodes_.text_offsets[at];
    size_t count = nodes_.text_offsets[at + 1] - nodes_.text_offsets[at];
    if (count < tags_.operands.size()) return false;
    inner_.clear();
    for (size_t k = 0; k < count; ++k) {
      if (k >= tags_.operands.size()) {
        inner_.add(text[k]);
      } else if (!text[k].empty()) {
        add_field(inner_, tags_.operands[k], text[k]);
      }
    }
    add_field(body_, tag, inner_.view());
    return true;
  }

  Nodes& nodes_;
  const Tags& tags_;
  Bytes body_, inner_;
  size_t extra_ = 0;
};

}  // namespace records
}  // namespace chakra_et

#endif  // CHAKRA_ET_RECORDS_HPP
