// Values of msgpack, as its specification has them. Texts point into the bytes that are read.
#ifndef CHAKRA_ET_PACK_MSGPACK_HPP
#define CHAKRA_ET_PACK_MSGPACK_HPP

#include <string_view>
#include <vector>

#include "../wire.hpp"

namespace chakra_et {
namespace pack {

struct Value {
  enum Type : uint8_t { nil, boolean, integer, real, text, bytes, list, map };

  Type type = nil;
  uint64_t bits = 0;         // of a whole number (two's complement), a bool, or a double
  std::string_view data;     // of a text, or of bytes
  std::vector<Value> items;  // of a list; of a map its keys and values, in turn

  const Value* find(std::string_view key) const {
    for (size_t i = 0; type == map && i + 1 < items.size(); i += 2) {
      if (items[i].type == text && items[i].data == key) return &items[i + 1];
    }
    return nullptr;
  }
};

class MsgpackReader {
 public:
  explicit MsgpackReader(wire::Span data) : at_(data.begin), end_(data.end) {}

  // Reads one value that is all there is; false for anything else.
  bool read(Value& out) { return value(out, 0) && at_ == end_; }

 private:
  static constexpr unsigned deepest = 16;

  bool value(Value& out, unsigned depth) {
    if (at_ == end_ || depth > deepest) return false;
    unsigned head = *at_++;
    if (head < 0x80) return number(out, head);
    if (head >= 0xe0) return number(out, static_cast<uint64_t>(static_cast<int8_t>(head)));
    if (head < 0x90) return items(out, Value::map, head & 15, depth);
    if (head < 0xa0) return items(out, Value::list, head & 15, depth);
    if (head < 0xc0) return characters(out, Value::text, head & 31);
    uint64_t big = 0;
    switch (head) {
      case 0xc0: return true;
      case 0xc2: case 0xc3:
        out.type = Value::boolean;
        out.bits = head & 1;
        return true;
      case 0xc4: case 0xc5: case 0xc6:
        return raw(1u << (head - 0xc4), big) && characters(out, Value::bytes, big);
      case 0xcb:
        out.type = Value::real;
        return raw(8, out.bits);
      case 0xcc: case 0xcd: case 0xce: case 0xcf:
        return raw(1u << (head - 0xcc), big) && number(out, big);
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: {
        unsigned width = 1u << (head - 0xd0);
        if (!raw(width, big)) return false;
        unsigned shift = 64 - 8 * width;
        return number(out, static_cast<uint64_t>(static_cast<int64_t>(big << shift) >> shift));
      }
      case 0xd9: case 0xda: case 0xdb:
        return raw(1u << (head - 0xd9), big) && characters(out, Value::text, big);
      case 0xdc: case 0xdd:
        return raw(head == 0xdc ? 2 : 4, big) && items(out, Value::list, big, depth);
      case 0xde: case 0xdf:
        return raw(head == 0xde ? 2 : 4, big) && items(out, Value::map, big, depth);
      default: return false;
    }
  }

  bool number(Value& out, uint64_t bits) {
    out.type = Value::integer;
    out.bits = bits;
    return true;
  }

  // A number of some bytes, the first of which counts most.
  bool raw(unsigned width, uint64_t& out) {
    if (static_cast<size_t>(end_ - at_) < width) return false;
    out = 0;
    for (unsigned i = 0; i < width; ++i) out = out << 8 | *at_++;
    return true;
  }

  bool characters(Value& out, Value::Type type, uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) return false;
    out.type = type;
    out.data = wire::Span{at_, at_ + size}.text();
    at_ += size;
    return true;
  }

  bool items(Value& out, Value::Type type, uint64_t count, unsigned depth) {
    out.type = type;
    if (type == Value::map) count *= 2;
    if (count > static_cast<uint64_t>(end_ - at_)) return false;  // each takes a byte at least
    out.items.resize(count);
    for (Value& item : out.items) {
      if (!value(item, depth + 1)) return false;
    }
    return true;
  }

  const wire::Byte* at_;
  const wire::Byte* end_;
};

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_MSGPACK_HPP
