// One attribute of many nodes, from columns to the fields of their records: what
// converters/et/attribute_codec.py writes.
#ifndef CHAKRA_ET_PACK_ATTRIBUTES_HPP
#define CHAKRA_ET_PACK_ATTRIBUTES_HPP

#include <deque>
#include <string>

#include "../attr.hpp"
#include "../records.hpp"
#include "columns.hpp"

namespace chakra_et {
namespace pack {

using records::Bytes;

inline void add_tag(Bytes& out, unsigned field, unsigned type) {
  out.add_varint(uint64_t{field} << 3 | type);
}

inline void add_bytes(Bytes& out, unsigned field, std::string_view payload) {
  add_tag(out, field, wire::bytes);
  out.add_varint(payload.size());
  out.add(payload);
}

inline void add_fixed(Bytes& out, uint64_t bits, unsigned width) {
  char bytes[8];
  for (unsigned i = 0; i < width; ++i) bytes[i] = static_cast<char>(bits >> 8 * i);
  out.add({bytes, width});
}

// What tells one attribute from another: name, kind, occurrence, doc, and fields nobody knows.
struct Key {
  std::string_view name, doc, extra;
  Kind kind = Kind::none;

  bool read(const Value& kept) {
    if (kept.type != Value::list || kept.items.size() != 5) return false;
    const Value &told = kept.items[1], &bytes = kept.items[4];
    if (told.type == Value::integer && (told.bits < 3 || told.bits > 32)) return false;
    if (told.type == Value::integer) kind = static_cast<Kind>(told.bits);
    name = kept.items[0].data;
    doc = kept.items[3].data;
    extra = bytes.data;
    return told.type == Value::integer || told.type == Value::nil;
  }

  bool is(std::string_view wanted, Kind of) const {
    return name == wanted && kind == of && doc.empty() && extra.empty();
  }

  // Does each value stand behind the same bytes, as a varint or a text?
  bool is_plain() const {
    bool is_short = kind == Kind::int32 || kind == Kind::int64 || kind == Kind::uint32 ||
                    kind == Kind::uint64 || kind == Kind::bool_ || kind == Kind::string;
    return is_short && extra.empty();
  }

  void add_head(Bytes& out) const {
    if (!name.empty()) add_bytes(out, field::attribute_name, name);
    if (!doc.empty()) add_bytes(out, field::attribute_doc_string, doc);
  }

  // What stands before each value of a plain column.
  std::string before() const {
    Bytes out;
    add_head(out);
    add_tag(out, static_cast<unsigned>(kind), Attr::wire_type(kind));
    return std::string(out.view());
  }
};

// A value without its tag; false if it is none of the kind.
inline bool add_scalar(Bytes& out, Kind kind, const Value& value) {
  if (kind == Kind::string || kind == Kind::bytes) {
    if (value.type != (kind == Kind::string ? Value::text : Value::bytes)) return false;
    out.add(value.data);
    return true;
  }
  if (kind == Kind::double_ || kind == Kind::float_) {
    if (value.type != Value::real) return false;
    if (kind == Kind::double_) {
      add_fixed(out, value.bits, 8);
      return true;
    }
    auto narrow = static_cast<float>(wire::as_double(value.bits));
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    add_fixed(out, bits, 4);
    return true;
  }
  if (value.type != Value::integer && value.type != Value::boolean) return false;
  if (Attr::wire_type(kind) == wire::fixed32) {
    add_fixed(out, value.bits, 4);
  } else if (Attr::wire_type(kind) == wire::fixed64) {
    add_fixed(out, value.bits, 8);
  } else if (kind == Kind::sint32 || kind == Kind::sint64) {
    out.add_varint(value.bits << 1 ^ (0 - (value.bits >> 63)));
  } else {
    out.add_varint(kind == Kind::bool_ ? value.bits != 0 : value.bits);
  }
  return true;
}

inline bool add_list(Bytes& out, Kind kind, const Value& values) {
  auto item = static_cast<Kind>(static_cast<unsigned>(kind) - 1);
  if (values.type != Value::list) return false;
  bool apart = Attr::wire_type(item) == wire::bytes;
  Bytes items, list;
  for (const Value& value : values.items) {
    if (apart) items.clear();
    if (!add_scalar(items, item, value)) return false;
    if (apart) add_bytes(list, 1, items.view());
  }
  if (!apart && !values.items.empty()) add_bytes(list, 1, items.view());
  add_bytes(out, static_cast<unsigned>(kind), list.view());
  return true;
}

// A value with its tag; none of an attribute without a kind.
inline bool add_value(Bytes& out, Kind kind, const Value& value) {
  if (kind == Kind::none) return value.type == Value::nil;
  if (Attr::is_list(kind)) return add_list(out, kind, value);
  if (Attr::wire_type(kind) != wire::bytes) {
    add_tag(out, static_cast<unsigned>(kind), Attr::wire_type(kind));
    return add_scalar(out, kind, value);
  }
  Bytes payload;
  if (!add_scalar(payload, kind, value)) return false;
  add_bytes(out, static_cast<unsigned>(kind), payload.view());
  return true;
}

// The values of an attribute, of which the column is a list or numbers.
class Values {
 public:
  explicit Values(const Column& column) : column_(column) {}

  size_t size() const {
    if (column_.kind != 0) return column_.bits.size();
    return column_.other->type == Value::list ? column_.other->items.size() : 0;
  }

  // A value, its tag before it.
  bool add(Bytes& out, Kind kind, size_t at) const {
    if (column_.kind == 0) return add_value(out, kind, column_.other->items[at]);
    if (column_.kind == 'f') {  // every NaN keeps its bits
      if (column_.width != (kind == Kind::double_ ? 8u : 4u)) return false;
      if (kind != Kind::double_ && kind != Kind::float_) return false;
      add_tag(out, static_cast<unsigned>(kind), Attr::wire_type(kind));
      add_fixed(out, column_.bits[at], column_.width);
      return true;
    }
    Value value;
    value.type = Value::integer;
    value.bits = column_.whole(at);
    return add_value(out, kind, value);
  }

 private:
  const Column& column_;
};

// Makes attributes of columns, and keeps what these look at.
class AttributeMaker {
 public:
  // False where the column does not fit its key.
  bool make(const Key& key, const Column& rows, const Column& values, records::Attribute& out) {
    if (rows.kind != 'i' || rows.width != 8 || Values(values).size() != rows.bits.size()) return false;
    out.rows = {reinterpret_cast<const int64_t*>(rows.bits.data()), rows.bits.size()};
    if (!key.is_plain()) return make_fields(key, values, out);
    texts_.push_back(key.before());
    out.before = texts_.back();
    if (key.kind == Kind::string) return take_texts(values, out);
    if (values.kind == 0 || values.kind == 'f') return false;
    numbers_.emplace_back(values.bits.size());
    for (size_t i = 0; i < values.bits.size(); ++i) numbers_.back()[i] = values.whole(i);
    out.numbers = {numbers_.back().data(), numbers_.back().size()};
    out.is_number = true;
    return true;
  }

 private:
  static bool take_texts(const Column& values, records::Attribute& out) {
    if (values.kind != 0) return false;
    for (const Value& value : values.other->items) {
      if (value.type != Value::text) return false;
      out.texts.push_back(value.data);
    }
    return true;
  }

  // Each value as a whole field of a node.
  bool make_fields(const Key& key, const Column& values, records::Attribute& out) {
    Bytes fields, payload;
    std::vector<size_t> ends;
    for (size_t at = 0; at < out.rows.size; ++at) {
      payload.clear();
      key.add_head(payload);
      if (!Values(values).add(payload, key.kind, at)) return false;
      payload.add(key.extra);
      add_bytes(fields, field::attr, payload.view());
      ends.push_back(fields.view().size());
    }
    texts_.emplace_back(fields.view());
    std::string_view all = texts_.back();
    size_t begin = 0;
    for (size_t end : ends) {
      out.texts.push_back(all.substr(begin, end - begin));
      begin = end;
    }
    out.is_whole = true;
    return true;
  }

  std::deque<std::string> texts_;
  std::deque<std::vector<uint64_t>> numbers_;
};

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_ATTRIBUTES_HPP
