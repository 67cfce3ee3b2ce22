// Members of a zip archive, stored as they are or deflated, each looked at without the others. After
// PKWARE's APPNOTE, with the fields of zip64.
#ifndef CHAKRA_ET_PACK_ZIP_HPP
#define CHAKRA_ET_PACK_ZIP_HPP

#include <array>
#include <map>
#include <string_view>

#include "../error.hpp"
#include "../pod_vector.hpp"
#include "../wire.hpp"
#ifdef CHAKRA_ET_WITH_ZLIB
#include <zlib.h>
#endif

namespace chakra_et {
namespace pack {

class Zip {
 public:
  // Reads the directory of an archive, which has to outlive this; false if that is damaged.
  bool open(wire::Span file) {
    file_ = file;
    uint64_t at = 0, count = 0;
    if (!find_directory(at, count)) return false;
    for (; count != 0; --count) {
      if (!has(at, 46) || number(at, 4) != 0x02014b50) return false;
      uint64_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
      if (!has(at + 46, name + extra + comment)) return false;
      Member member;
      member.is_plain = number(at + 10, 2) == 0 && (number(at + 8, 2) & 1) == 0;
      member.is_deflated = number(at + 10, 2) == 8 && (number(at + 8, 2) & 1) == 0;
      member.crc = static_cast<uint32_t>(number(at + 16, 4));
      uint64_t* told[] = {&member.whole, &member.size, &member.at};
      member.whole = number(at + 24, 4);
      member.size = number(at + 20, 4);
      member.at = number(at + 42, 4);
      read_long(at + 46 + name, extra, told);
      members_[text(at + 46, name)] = member;
      at += 46 + name + extra + comment;
    }
    return true;
  }

  bool has(std::string_view name) const { return members_.count(name) != 0; }

  // Finds a member; false if there is none, or it is not stored whole.
  bool find(std::string_view name, wire::Span& out) const {
    auto found = members_.find(name);
    return found != members_.end() && found->second.is_plain && found->second.whole == found->second.size &&
           content(found->second, out) && crc32(out) == found->second.crc;
  }

  // The content of a member of at most `most` bytes, which may be deflated.
  Error read(std::string_view name, uint64_t most, PodVector<wire::Byte>& out) const {
    wire::Span packed;
    auto found = members_.find(name);
    if (found == members_.end() || found->second.whole > most || !content(found->second, packed)) {
      return damaged();
    }
    const Member& member = found->second;
    if (member.is_plain) {
      out.clear();
      if (!out.append(packed.begin, packed.size())) return make_error(Code::out_of_memory);
    } else if (!member.is_deflated) {
      return damaged();
    } else if (Error error = inflate(packed, member.whole, out)) {
      return error;
    }
    bool whole = out.size() == member.whole && crc32({out.begin(), out.end()}) == member.crc;
    return whole ? Error{} : damaged();
  }

 private:
  struct Member {
    uint64_t at = 0, size = 0, whole = 0;
    uint32_t crc = 0;
    bool is_plain = false, is_deflated = false;
  };

  static Error damaged() {
    return make_error(Code::io, 0, 0, 0, "a member of the archive is damaged; copy it again");
  }

  // Where the bytes of a member stand, as they are kept.
  bool content(const Member& member, wire::Span& out) const {
    if (!has(member.at, 30) || number(member.at, 4) != 0x04034b50) return false;
    uint64_t start = member.at + 30 + number(member.at + 26, 2) + number(member.at + 28, 2);
    if (!has(start, member.size)) return false;
    out = wire::Span{file_.begin + start, file_.begin + start + member.size};
    return true;
  }

  static Error inflate(wire::Span packed, uint64_t whole, PodVector<wire::Byte>& out) {
#ifdef CHAKRA_ET_WITH_ZLIB
    if (packed.size() > UINT32_MAX || whole > UINT32_MAX) return damaged();
    if (!out.assign_zero(whole)) return make_error(Code::out_of_memory);
    z_stream z{};
    if (inflateInit2(&z, -15) != Z_OK) return make_error(Code::out_of_memory);
    z.next_in = const_cast<Bytef*>(packed.begin);
    z.avail_in = static_cast<uInt>(packed.size());
    z.next_out = out.data();
    z.avail_out = static_cast<uInt>(whole);
    int rc = ::inflate(&z, Z_FINISH);
    bool ended = rc == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    return ended ? Error{} : damaged();
#else
    (void)packed, (void)whole, (void)out;
    return make_error(Code::unsupported, 0, 0, 0, "a deflated member (CHAKRA_ET_WITH_ZLIB)");
#endif
  }

  bool has(uint64_t at, uint64_t size) const {
    return at <= file_.size() && size <= file_.size() - at;
  }
  uint64_t number(uint64_t at, unsigned width) const {
    return wire::load_fixed(file_.begin + at, width);
  }
  std::string_view text(uint64_t at, uint64_t size) const {
    return wire::Span{file_.begin + at, file_.begin + at + size}.text();
  }

  // Where the directory begins, and how many members it lists: that stands at the end of the file,
  // before a comment; with zip64 in another record before it.
  bool find_directory(uint64_t& at, uint64_t& count) const {
    for (uint64_t comment = 0; comment <= 0xffff && has(0, 22 + comment); ++comment) {
      uint64_t end = file_.size() - 22 - comment;
      if (number(end, 4) != 0x06054b50 || number(end + 20, 2) != comment) continue;
      count = number(end + 10, 2);
      at = number(end + 16, 4);
      if (end < 20 || number(end - 20, 4) != 0x07064b50) return true;
      uint64_t longer = number(end - 12, 8);
      if (!has(longer, 56) || number(longer, 4) != 0x06064b50) return false;
      count = number(longer + 32, 8);
      at = number(longer + 48, 8);
      return true;
    }
    return false;
  }

  // Takes numbers that need more than 32 bits from the field that has them, in its order.
  void read_long(uint64_t at, uint64_t size, uint64_t* (&told)[3]) const {
    uint64_t end = at + size;
    while (end - at >= 4) {
      uint64_t id = number(at, 2), length = number(at + 2, 2);
      at += 4;
      if (length > end - at) return;
      uint64_t here = at;
      for (uint64_t* wanted : told) {
        if (id != 1 || *wanted != 0xffffffff || at + length - here < 8) continue;
        *wanted = number(here, 8);
        here += 8;
      }
      at += length;
    }
  }

  static uint32_t crc32(wire::Span data) {
    static const std::array<uint32_t, 256> table = [] {
      std::array<uint32_t, 256> out{};
      for (uint32_t i = 0; i < 256; ++i) {
        out[i] = i;
        for (int bit = 0; bit < 8; ++bit) out[i] = out[i] >> 1 ^ (0xedb88320u & (0u - (out[i] & 1)));
      }
      return out;
    }();
    uint32_t crc = 0xffffffff;
    for (const wire::Byte* p = data.begin; p != data.end; ++p) crc = crc >> 8 ^ table[(crc ^ *p) & 0xff];
    return ~crc;
  }

  wire::Span file_;
  std::map<std::string_view, Member> members_;
};

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_ZIP_HPP
