// The protobuf wire format: varints, fields, length-delimited frames. Bounds are always checked.
#ifndef CHAKRA_ET_WIRE_HPP
#define CHAKRA_ET_WIRE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace chakra_et {
namespace wire {

using Byte = unsigned char;

enum Type : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Span {
  const Byte* begin = nullptr;
  const Byte* end = nullptr;
  size_t size() const { return static_cast<size_t>(end - begin); }
  std::string_view text() const {
    return begin == nullptr ? std::string_view()
                            : std::string_view(reinterpret_cast<const char*>(begin), size());
  }
};

inline bool read_varint_slow(const Byte*& p, const Byte* end, uint64_t& out) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p == end) return false;
    Byte byte = *p++;
    value |= static_cast<uint64_t>(byte & 0x7f) << (shift < 64 ? shift : 63);
    if (byte < 0x80) {
      out = value;
      return true;
    }
  }
  return false;  // more than ten bytes
}

inline bool read_varint(const Byte*& p, const Byte* end, uint64_t& out) {
  if (p != end && *p < 0x80) {
    out = *p++;
    return true;
  }
  return read_varint_slow(p, end, out);
}

inline bool read_length(const Byte*& p, const Byte* end, Span& out) {
  uint64_t length = 0;
  if (!read_varint(p, end, length) || length > static_cast<uint64_t>(end - p)) return false;
  out.begin = p;
  p += length;
  out.end = p;
  return true;
}

inline uint64_t load_fixed(const Byte* p, unsigned count) {
  uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i) value |= static_cast<uint64_t>(p[i]) << (8 * i);
  return value;
}

struct Field {
  uint32_t number = 0;
  unsigned type = 0;
  uint64_t value = 0;  // of a varint or a fixed number
  Span data;           // of a length-delimited field
};

enum class Step { field, end, bad };

inline Step next_field(const Byte*& p, const Byte* end, Field& out) {
  if (p == end) return Step::end;
  uint64_t tag = 0;
  if (!read_varint(p, end, tag) || (tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return Step::bad;
  out.number = static_cast<uint32_t>(tag >> 3);
  out.type = static_cast<unsigned>(tag & 7);
  switch (out.type) {
    case varint:
      return read_varint(p, end, out.value) ? Step::field : Step::bad;
    case bytes:
      return read_length(p, end, out.data) ? Step::field : Step::bad;
    case fixed32:
    case fixed64: {
      unsigned width = out.type == fixed32 ? 4 : 8;
      if (static_cast<size_t>(end - p) < width) return Step::bad;
      out.value = load_fixed(p, width);
      p += width;
      return Step::field;
    }
    default:
      return Step::bad;
  }
}

inline int64_t zigzag(uint64_t n) { return static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1); }

inline double as_double(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float as_float(uint64_t bits) {
  auto narrow = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &narrow, sizeof value);
  return value;
}

}  // namespace wire
}  // namespace chakra_et

#endif  // CHAKRA_ET_WIRE_HPP
