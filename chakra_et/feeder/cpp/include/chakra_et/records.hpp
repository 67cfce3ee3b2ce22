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

constexpr size_t longest_varint = 10;

// Each puts bytes at a place where there is room, and gives the place behind.
inline char* put(char* p, std::string_view bytes) {
  std::memcpy(p, bytes.data(), bytes.size());
  return p + bytes.size();
}

inline char* put_varint(char* p, uint64_t value) {
  while (value >= 0x80) {
    *p++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *p++ = static_cast<char>(value);
  return p;
}

inline size_t varint_size(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

// Bytes that grow; room for what comes is asked for once for each field.
class Bytes {
 public:
  char* room(size_t more) {
    if (size_ + more > data_.size()) data_.resize(2 * (size_ + more));
    return data_.data() + size_;
  }
  // What was put into the room ends here.
  void end(const char* behind) { size_ = static_cast<size_t>(behind - data_.data()); }
  void add(std::string_view bytes) {
    if (!bytes.empty()) end(put(room(bytes.size()), bytes));
  }
  void add_varint(uint64_t value) { end(put_varint(room(longest_varint), value)); }
  // Leave a gap for a length, and put it there when what it is of has been added; gives that length.
  size_t leave(size_t gap) {
    end(room(gap) + gap);
    return size_;
  }
  size_t tell_length(size_t begin, size_t gap) {
    size_t length = size_ - begin, size = varint_size(length);
    room(size);
    char* p = data_.data() + begin - gap;
    if (size != gap) std::memmove(p + size, p + gap, length);
    put_varint(p, length);
    size_ += size - gap;
    return length;
  }
  void drop(size_t count) { size_ -= count; }
  void clear() { size_ = 0; }
  std::string_view view() const { return {data_.data(), size_}; }

 private:
  std::vector<char> data_;
  size_t size_ = 0;
};

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

// What stands before the value of an attribute, with its length: copied whole, as far as it is short.
class Head {
 public:
  static constexpr size_t longest = 64;

  // `width` is that of the length as a varint.
  Head(std::string_view outer, std::string_view before, size_t width)
      : outer_(outer), before_(before), size_(outer.size() + width + before.size()) {
    if (size_ <= longest) put(put(bytes_.data(), outer) + width, before);
  }

  // `p` has room for this and for `longest` bytes; `length` is that of the message.
  char* put_before(char* p, size_t length) const {
    if (size_ > longest) return put(put_varint(put(p, outer_), length), before_);
    std::memcpy(p, bytes_.data(), longest);
    put_varint(p + outer_.size(), length);
    return p + size_;
  }

 private:
  std::string_view outer_, before_;
  size_t size_;
  std::array<char, longest> bytes_{};
};

// One attribute of many nodes, whose rows ascend. `before` stands before each value in the
// attribute's message; where `is_whole`, each text is the field as it is, tags and all; where
// `is_coded`, the texts are the distinct ones.
struct Attribute {
  View<int64_t> rows;
  View<uint64_t> numbers;
  View<int32_t> codes;
  std::vector<std::string_view> texts;
  std::string_view before;
  bool is_number = false, is_whole = false, is_coded = false;
  size_t next = 0;  // the first of its rows that is not written yet

  bool write(Bytes& out, std::string_view outer, int64_t row) {
    if (next >= rows.size || rows.data[next] != row) return false;
    size_t at = next++;
    fetch(rows.data, rows.size);
    if (is_number) {
      fetch(numbers.data, numbers.size);
    } else if (is_coded) {
      fetch(codes.data, codes.size);
      at = static_cast<size_t>(codes.data[at]);
    } else {
      fetch(texts.data(), texts.size());
    }
    if (is_whole) {
      out.add(texts[at]);
      return true;
    }
    std::string_view text = is_number ? std::string_view() : texts[at];
    uint64_t number = is_number ? numbers.data[at] : text.size();
    size_t length = before.size() + varint_size(number) + text.size();
    char* p = out.room(outer.size() + length + longest_varint + Head::longest);
    p = put_varint(head(outer, varint_size(length)).put_before(p, length), number);
    out.end(text.empty() ? p : put(p, text));
    return true;
  }

 private:
  // Have what comes soon ready: many columns are read side by side, more than a processor foresees.
  template <class T>
  void fetch(const T* column, size_t size) const {
#ifdef __GNUC__
    constexpr size_t ahead = 24;
    if (next + ahead < size) __builtin_prefetch(column + next + ahead);
#endif
  }

  const Head& head(std::string_view outer, size_t width) {
    while (heads_.size() < width) heads_.emplace_back(outer, before, heads_.size() + 1);
    return heads_[width - 1];
  }

  std::vector<Head> heads_;  // by the width of the length
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
    out_ = &out;
    for (size_t row = first; row < last; ++row) {
      size_t begin = out.leave(usual_width);
      if (!write_node(row)) return false;
      out.tell_length(begin, usual_width);
    }
    return true;
  }

 private:
  static constexpr size_t usual_width = 2;  // of the length of a node

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
      if (!nodes_.attributes[at].write(*out_, tags_.attribute, number)) return false;
    }
    for (uint32_t at : nodes_.last) nodes_.attributes[at].write(*out_, tags_.attribute, number);
    if (extra_ < nodes_.extra.size() && nodes_.extra[extra_].first == number) {
      out_->add(nodes_.extra[extra_++].second);
    }
    return true;
  }

  // Zero is left out, as proto3 wants.
  void add_number(std::string_view tag, uint64_t value) {
    if (value == 0) return;
    out_->end(put_varint(put(out_->room(tag.size() + longest_varint), tag), value));
  }

  bool add_name(int32_t code) {
    if (static_cast<size_t>(code) >= nodes_.names.size()) return false;
    std::string_view name = nodes_.names[static_cast<size_t>(code)];
    if (!name.empty()) add_field(*out_, tags_.name, name);
    return true;
  }

  void add_ids(std::string_view tag, size_t row, bool calls) {
    out_->add(tag);
    size_t begin = out_->leave(1);
    for (int64_t at = nodes_.offsets.data[row]; at < nodes_.offsets.data[row + 1]; ++at) {
      if ((nodes_.is_call.data[at] != 0) == calls) out_->add_varint(nodes_.source.data[at]);
    }
    if (out_->tell_length(begin, 1) == 0) out_->drop(tag.size() + 1);
  }

  bool add_texts(std::string_view tag, int32_t code) {
    if (code < 0) return true;
    auto at = static_cast<size_t>(code);
    if (at + 1 >= nodes_.text_offsets.size()) return false;
    const std::string_view* text = nodes_.texts.data() + nodes_.text_offsets[at];
    size_t count = nodes_.text_offsets[at + 1] - nodes_.text_offsets[at];
    if (count < tags_.operands.size()) return false;
    size_t length = 0;
    for (size_t k = 0; k < count; ++k) {
      length += text[k].size();
      if (has_tag(text[k], k)) length += tags_.operands[k].size() + varint_size(text[k].size());
    }
    out_->add(tag);
    out_->add_varint(length);
    for (size_t k = 0; k < count; ++k) {
      if (has_tag(text[k], k)) out_->add(tags_.operands[k]);
      if (has_tag(text[k], k)) out_->add_varint(text[k].size());
      out_->add(text[k]);
    }
    return true;
  }

  // Is a text of a node a field of its own? What stands behind these is whole fields.
  bool has_tag(std::string_view text, size_t k) const {
    return k < tags_.operands.size() && !text.empty();
  }

  Nodes& nodes_;
  const Tags& tags_;
  Bytes* out_ = nullptr;
  size_t extra_ = 0;
};

}  // namespace records
}  // namespace chakra_et

#endif  // CHAKRA_ET_RECORDS_HPP
