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

enum class First { metadata, node, old_schema, bad };

// Does a message look like an attribute of today's schema: a name first, then a value?
inline bool looks_like_attr(wire::Span message) {
  Attr attr(message);
  return !attr.malformed() && message.size() > 1 && message.begin[0] == 0x0a;
}

// Metadata of summer 2023 kept its attributes where the version is now.
inline bool is_embedded_attr(wire::Span text) {
  const wire::Byte* p = text.begin;
  wire::Field field;
  if (wire::next_field(p, text.end, field) != wire::Step::field) return false;
  if (field.number != 1 || field.type != wire::bytes || p == text.end) return false;
  wire::Step step;
  while ((step = wire::next_field(p, text.end, field)) == wire::Step::field) {
  }
  return step == wire::Step::end && text.begin[0] == 0x0a;
}

// A node of the schemas before 0.0.4 (July 2023 and earlier), which numbered fields otherwise.
inline bool looks_like_old_node(wire::Span message) {
  const wire::Byte* p = message.begin;
  wire::Field f;
  while (wire::next_field(p, message.end, f) == wire::Step::field) {
    bool is_number = f.type == wire::varint;
    if (f.number >= 13 && f.number <= 20) return true;
    if (is_number && (f.number == 4 || f.number == 5 || (f.number >= 8 && f.number <= 11))) {
      return true;
    }
    if (!is_number && f.type == wire::bytes && (f.number == 6 || f.number == 7)) return true;
    if (f.number == 11 && f.type == wire::bytes && f.data.size() > 1 && f.data.begin[0] == 0x0a) {
      return true;
    }
  }
  return false;
}

// What the first record is. A missing metadata record is accepted: nothing is swallowed.
inline First classify(wire::Span record) {
  if (record.size() == 0) return First::metadata;
  const wire::Byte* p = record.begin;
  wire::Field field;
  if (wire::next_field(p, record.end, field) != wire::Step::field) return First::bad;
  if (field.number == field::id && field.type == wire::varint) {
    return looks_like_old_node(record) ? First::old_schema : First::node;
  }
  if (field.number == field::metadata_version && field.type == wire::bytes) {
    return is_embedded_attr(field.data) ? First::old_schema : First::metadata;
  }
  if (field.number == field::metadata_attr && field.type == wire::bytes && looks_like_attr(field.data)) {
    return First::metadata;
  }
  return First::node;
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
