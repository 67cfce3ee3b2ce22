// The framing of a trace: a varint length before each record, the metadata first.
#ifndef CHAKRA_ET_FRAMES_HPP
#define CHAKRA_ET_FRAMES_HPP

#include "error.hpp"
#include "options.hpp"
#include "wire.hpp"

namespace chakra_et {
namespace frames {

// Cuts one record off the front of `rest`. `offset` is where it starts, for the error.
inline Error cut(wire::Span& rest, uint64_t offset, uint64_t max_record, wire::Span& record) {
  const wire::Byte* p = rest.begin;
  uint64_t length = 0;
  if (!wire::read_varint(p, rest.end, length)) {
    bool cut_short = rest.size() < 10;
    return cut_short ? make_error(Code::truncated, 0, 0, offset)
                     : make_error(Code::malformed, 0, 0, offset, "its length never ends");
  }
  if (length > max_record) return make_error(Code::too_large, 0, length, offset);
  if (length > static_cast<uint64_t>(rest.end - p)) {
    return make_error(Code::truncated, 0, 0, offset);
  }
  record = wire::Span{p, p + length};
  rest.begin = record.end;
  return Error{};
}

// What the first record is, by its first field; the rule stands in schema/README.md. A node is none
// of today's: the file has lost its metadata, or is of a schema before 0.0.4.
enum class First { metadata, node, old_schema, bad };

inline bool starts_with_name(wire::Span message) {
  return message.size() > 1 && message.begin[0] == 0x0a;
}

// Is it an attribute of today's schema rather than the name of a node? It begins with its name.
inline bool is_attr(wire::Span message) {
  if (!starts_with_name(message)) return false;
  Attr attr(message);
  return attr.is_whole() && !attr.name().empty();
}

// Metadata of summer 2023 kept its attributes where the version is now: messages of a name and more.
inline bool is_old_attr(wire::Span text) {
  const wire::Byte* p = text.begin;
  wire::Field field;
  wire::Step step;
  size_t count = 0;
  while ((step = wire::next_field(p, text.end, field)) == wire::Step::field) ++count;
  return step == wire::Step::end && count > 1 && starts_with_name(text);
}

// Does a record show that it is metadata, and no node? It begins with the version or an attribute.
inline bool is_metadata(wire::Span record) {
  const wire::Byte* p = record.begin;
  wire::Field field;
  if (wire::next_field(p, record.end, field) != wire::Step::field) return false;
  if (field.type != wire::bytes) return false;
  if (field.number == field::metadata_version) return !is_old_attr(field.data);
  return field.number == field::metadata_attr && is_attr(field.data);
}

// Are all fields of the metadata whole, and all of its attributes?
inline bool is_whole(wire::Span metadata) {
  const wire::Byte* p = metadata.begin;
  wire::Field field;
  wire::Step step;
  while ((step = wire::next_field(p, metadata.end, field)) == wire::Step::field) {
    bool is_attribute = field.number == field::metadata_attr && field.type == wire::bytes;
    if (is_attribute && !Attr(field.data).is_whole()) return false;
  }
  return step == wire::Step::end;
}

inline First classify(wire::Span record) {
  if (record.size() == 0) return First::metadata;
  const wire::Byte* p = record.begin;
  wire::Field field;
  if (wire::next_field(p, record.end, field) != wire::Step::field) return First::bad;
  if (!is_metadata(record)) {
    bool is_old = (field.number == field::id && field.type == wire::varint) ||
                  (field.number == field::metadata_version && field.type == wire::bytes);
    return is_old ? First::old_schema : First::node;
  }
  return is_whole(record) ? First::metadata : First::bad;
}

// The first record has to be the metadata.
inline Error require_metadata(wire::Span record, uint64_t offset) {
  switch (classify(record)) {
    case First::metadata: return Error{};
    case First::old_schema: return make_error(Code::old_schema);
    case First::node:
      return make_error(Code::malformed, 0, 0, offset, "a node, where the metadata has to be");
    case First::bad: break;
  }
  return make_error(Code::malformed, 0, 0, offset, "the metadata is damaged");
}

// No later record may be metadata.
inline Error require_node(wire::Span record, uint64_t offset) {
  bool may_be = record.size() > 1 && (*record.begin == 0x0a || *record.begin == 0x12);
  if (!may_be || !is_metadata(record)) return Error{};
  return make_error(Code::malformed, 0, 0, offset,
                    "metadata in place of a node, as where two files were joined");
}

}  // namespace frames

// The first record of a trace.
class MetadataView {
 public:
  MetadataView() = default;
  explicit MetadataView(wire::Span message) : message_(message) {}

  wire::Span message() const { return message_; }
  std::string_view version() const {
    std::string_view version;
    each([&](const wire::Field& field) {
      if (field.number == field::metadata_version) version = field.data.text();
    });
    return version;
  }
  Attr attr(std::string_view name) const {
    Attr found;
    each([&](const wire::Field& field) {
      if (field.number == field::metadata_attr && Attr::is_named(field.data, name)) found = Attr(field.data);
    });
    return found;
  }

 private:
  template <class Visit>
  void each(Visit visit) const {
    const wire::Byte* p = message_.begin;
    wire::Field field;
    while (wire::next_field(p, message_.end, field) == wire::Step::field) {
      if (field.type == wire::bytes) visit(field);
    }
  }

  wire::Span message_;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_FRAMES_HPP
