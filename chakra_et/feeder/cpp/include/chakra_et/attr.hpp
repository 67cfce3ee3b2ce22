// One attribute of a node: its kind, and its value as the type that the reader wants.
#ifndef CHAKRA_ET_ATTR_HPP
#define CHAKRA_ET_ATTR_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "numbers.hpp"
#include "wire.hpp"

namespace chakra_et {

class Attr {
 public:
  Attr() = default;

  // Reads an AttributeProto; `malformed()` afterwards if it is none.
  explicit Attr(wire::Span message) : message_(message) {
    const wire::Byte* p = message.begin;
    wire::Field field;
    wire::Step step;
    while ((step = wire::next_field(p, message.end, field)) == wire::Step::field) {
      if (field.number == field::attribute_name && field.type == wire::bytes) {
        name_ = field.data.text();
      } else if (field.number >= 3 && field.number <= 32 &&
                 field.type == wire_type(static_cast<Kind>(field.number))) {
        kind_ = static_cast<Kind>(field.number);
        value_ = field.value;
        data_ = field.data;
      }
    }
    malformed_ = step == wire::Step::bad;
  }

  // Is it the attribute called `name`? Cheaper than reading the whole, as the name comes first.
  static bool is_named(wire::Span message, std::string_view name) {
    const wire::Byte* p = message.begin;
    if (message.size() > name.size() + 1 && name.size() < 0x80 && p[0] == 0x0a &&
        p[1] == name.size()) {
      return std::memcmp(p + 2, name.data(), name.size()) == 0;
    }
    return message.size() != 0 && p[0] != 0x0a && Attr(message).name() == name;
  }

  static bool is_list(Kind kind) { return kind != Kind::none && static_cast<unsigned>(kind) % 2 == 0; }
  static unsigned wire_type(Kind kind) {
    if (is_list(kind)) return wire::bytes;
    switch (kind) {
      case Kind::double_: case Kind::fixed64: case Kind::sfixed64: return wire::fixed64;
      case Kind::float_: case Kind::fixed32: case Kind::sfixed32: return wire::fixed32;
      case Kind::string: case Kind::bytes: return wire::bytes;
      default: return wire::varint;
    }
  }

  std::string_view name() const { return name_; }
  Kind kind() const { return kind_; }
  bool malformed() const { return malformed_; }
  wire::Span message() const { return message_; }
  // Are all its fields whole, and the items of its list?
  bool is_whole() const {
    return !malformed_ && (!is_list(kind_) || each_item([](const wire::Field&) {}));
  }

  // Any whole number or bool, whichever kind it was written in.
  std::optional<int64_t> as_int() const {
    if (auto n = integer(kind_, value_)) return static_cast<int64_t>(*n);
    return std::nullopt;
  }
  std::optional<uint64_t> as_uint() const { return integer(kind_, value_); }
  std::optional<bool> as_bool() const {
    if (auto n = integer(kind_, value_)) return *n != 0;
    return std::nullopt;
  }
  std::optional<double> as_double() const {
    if (kind_ == Kind::double_) return wire::as_double(value_);
    if (kind_ == Kind::float_) return static_cast<double>(wire::as_float(value_));
    if (!integer(kind_, value_)) return std::nullopt;
    bool is_unsigned = kind_ == Kind::uint64 || kind_ == Kind::fixed64;
    return is_unsigned ? static_cast<double>(*as_uint()) : static_cast<double>(*as_int());
  }
  std::optional<std::string_view> as_string() const {
    if (kind_ != Kind::string && kind_ != Kind::bytes) return std::nullopt;
    return data_.text();
  }

  std::optional<std::vector<int64_t>> as_ints() const {
    Kind item = item_kind();
    if (item == Kind::none || item == Kind::double_ || item == Kind::float_ ||
        wire_type(item) == wire::bytes) {
      return std::nullopt;
    }
    std::vector<int64_t> out;
    bool ok = each_item([&](const wire::Field& field) {
      out.push_back(static_cast<int64_t>(*integer(item, field.value)));
    });
    return ok ? std::optional<std::vector<int64_t>>(std::move(out)) : std::nullopt;
  }
  std::optional<std::vector<double>> as_doubles() const {
    Kind item = item_kind();
    if (item != Kind::double_ && item != Kind::float_) return std::nullopt;
    std::vector<double> out;
    bool ok = each_item([&](const wire::Field& field) {
      out.push_back(item == Kind::double_ ? wire::as_double(field.value)
                                          : static_cast<double>(wire::as_float(field.value)));
    });
    return ok ? std::optional<std::vector<double>>(std::move(out)) : std::nullopt;
  }
  std::optional<std::vector<std::string_view>> as_strings() const {
    if (kind_ != Kind::string_list && kind_ != Kind::bytes_list) return std::nullopt;
    std::vector<std::string_view> out;
    bool ok = each_item([&](const wire::Field& field) { out.push_back(field.data.text()); });
    return ok ? std::optional<std::vector<std::string_view>>(std::move(out)) : std::nullopt;
  }

 private:
  Kind item_kind() const {
    return is_list(kind_) ? static_cast<Kind>(static_cast<unsigned>(kind_) - 1) : Kind::none;
  }

  // The number in 64 bits (two's complement when signed), or nothing if `kind` is no whole number.
  static std::optional<uint64_t> integer(Kind kind, uint64_t raw) {
    auto widen = [](uint64_t low) {
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(low)));
    };
    switch (kind) {
      case Kind::int64: case Kind::uint64: case Kind::fixed64: case Kind::sfixed64: return raw;
      case Kind::int32: case Kind::sfixed32: return widen(raw);
      case Kind::uint32: case Kind::fixed32: return raw & 0xffffffff;
      case Kind::sint32: return widen(static_cast<uint64_t>(wire::zigzag(raw & 0xffffffff)));
      case Kind::sint64: return static_cast<uint64_t>(wire::zigzag(raw));
      case Kind::bool_: return raw != 0;
      default: return std::nullopt;
    }
  }

  template <class Visit>
  bool each_item(Visit visit) const {
    unsigned item_type = wire_type(item_kind());
    const wire::Byte* p = data_.begin;
    wire::Field field;
    wire::Step step;
    while ((step = wire::next_field(p, data_.end, field)) == wire::Step::field) {
      if (field.number != 1 || (field.type != item_type && field.type != wire::bytes)) return false;
      if (field.type == item_type) {
        visit(field);
      } else if (!each_packed(field.data, item_type, visit)) {
        return false;
      }
    }
    return step == wire::Step::end;
  }

  template <class Visit>
  static bool each_packed(wire::Span packed, unsigned item_type, Visit& visit) {
    wire::Field field;
    for (const wire::Byte* p = packed.begin; p != packed.end;) {
      if (item_type == wire::varint) {
        if (!wire::read_varint(p, packed.end, field.value)) return false;
      } else {
        size_t width = item_type == wire::fixed32 ? 4 : 8;
        if (static_cast<size_t>(packed.end - p) < width) return false;
        field.value = wire::load_fixed(p, static_cast<unsigned>(width));
        p += width;
      }
      visit(field);
    }
    return true;
  }

  std::string_view name_;
  Kind kind_ = Kind::none;
  bool malformed_ = false;
  uint64_t value_ = 0;
  wire::Span data_;
  wire::Span message_;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_ATTR_HPP
