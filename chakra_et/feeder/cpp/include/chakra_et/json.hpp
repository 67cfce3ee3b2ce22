// Just enough JSON to read lists of ranks: one pass over the text, bounded depth, no allocation
// beyond the strings that are asked for.
#ifndef CHAKRA_ET_JSON_HPP
#define CHAKRA_ET_JSON_HPP

#include <cstring>
#include <string>

#include "wire.hpp"

namespace chakra_et {

// Every call reads one thing and says whether it was there. After the first that was not, all calls
// fail, and problem() and offset() say what was wrong and where.
class JsonReader {
 public:
  explicit JsonReader(wire::Span text) : begin_(text.begin), at_(text.begin), end_(text.end) {}

  const char* problem() const { return problem_; }
  uint64_t offset() const { return static_cast<uint64_t>(at_ - begin_); }

  bool fail(const char* problem) {
    if (problem_ == nullptr) problem_ = problem;
    return false;
  }

  // Steps over `c` if it comes next.
  bool accept(char c) {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
    if (problem_ != nullptr || at_ == end_ || *at_ != static_cast<wire::Byte>(c)) return false;
    ++at_;
    return true;
  }

  bool end() {
    accept('\0');  // steps over space
    return at_ == end_ || fail("text after the end");
  }

  // visit() for each item between `open` and `close`, with commas between them.
  template <class Visit>
  bool each(char open, char close, const char* expected, Visit visit) {
    if (!accept(open)) return fail(expected);
    if (accept(close)) return true;
    do {
      if (!visit()) return false;
    } while (accept(','));
    return accept(close) || fail(close == ']' ? "a comma or ] is missing" : "a comma or } is missing");
  }

  // visit(key) for each member of an object; it has to read the value.
  template <class Visit>
  bool each_member(const char* expected, Visit visit) {
    return each('{', '}', expected, [&] {
      std::string key;
      if (!string(key)) return false;
      return accept(':') ? visit(key) : fail("a colon is missing");
    });
  }

  bool number(uint64_t& out) {
    accept('\0');
    const wire::Byte* first = at_;
    out = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      uint64_t digit = *at_ - wire::Byte{'0'};
      if (out > (UINT64_MAX - digit) / 10) return fail("a number is too large");
      out = out * 10 + digit;
    }
    bool whole = at_ != first && (at_ - first == 1 || *first != '0') &&
                 (at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E'));
    return problem_ == nullptr && (whole || fail("a rank must be a whole number"));
  }

  bool string(std::string& out) {
    if (!accept('"')) return fail("a text is missing");
    out.clear();
    while (at_ != end_ && *at_ != '"') {
      if (*at_ < 0x20) return fail("a control character in a string");
      if (*at_ == '\\') {
        if (!escape(out)) return false;
      } else {
        out += static_cast<char>(*at_++);
      }
    }
    return accept('"') || fail("an unterminated string");
  }

  // Steps over null if it comes next.
  bool null() {
    accept('\0');
    if (problem_ != nullptr || end_ - at_ < 4 || std::memcmp(at_, "null", 4) != 0) return false;
    at_ += 4;
    return true;
  }

  // Steps over any value.
  bool skip(unsigned depth = 0) {
    if (depth > 64) return fail("nested too deeply");
    accept('\0');
    if (at_ == end_ || problem_ != nullptr) return fail("a value is missing");
    std::string text;
    if (*at_ == '"') return string(text);
    if (*at_ == '[') return each('[', ']', "", [&] { return skip(depth + 1); });
    if (*at_ == '{') return each_member("", [&](const std::string&) { return skip(depth + 1); });
    const wire::Byte* first = at_;
    while (at_ != end_ && std::strchr("+-.0123456789Eaeflnrstu", *at_) != nullptr && *at_ != 0) ++at_;
    return at_ != first || fail("a value is missing");
  }

 private:
  bool escape(std::string& out) {
    if (++at_ == end_) return fail("an unterminated string");
    auto c = static_cast<char>(*at_++);
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (const char* found = c == 0 ? nullptr : std::strchr(from, c)) {
      out += to[found - from];
      return true;
    }
    uint32_t code = 0, low = 0;
    if (c != 'u' || !hex(code)) return fail("an unknown escape in a string");
    if (code >= 0xd800 && code < 0xdc00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
      const wire::Byte* before = at_;
      at_ += 2;
      if (!hex(low)) return fail("an unknown escape in a string");
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else {
        at_ = before;  // two characters that are no pair
      }
    }
    append_utf8(code, out);
    return true;
  }

  bool hex(uint32_t& code) {
    if (end_ - at_ < 4) return false;
    for (int i = 0; i < 4; ++i) {
      unsigned c = *at_++;
      if (c >= '0' && c <= '9') c -= '0';
      else if (c >= 'a' && c <= 'f') c -= 'a' - 10u;
      else if (c >= 'A' && c <= 'F') c -= 'A' - 10u;
      else return false;
      code = code << 4 | c;
    }
    return true;
  }

  static void append_utf8(uint32_t code, std::string& out) {
    auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xc0 | code >> 6);
      add(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      add(0xe0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3f));
      add(0x80 | (code & 0x3f));
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
      add(0x80 | (code >> 6 & 0x3f));
      add(0x80 | (code & 0x3f));
    }
  }

  const wire::Byte* begin_;
  const wire::Byte* at_;
  const wire::Byte* end_;
  const char* problem_ = nullptr;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_JSON_HPP
