// Values of JSON passed over character by character, where they are plain: whole numbers and decimals,
// texts without surrogates, and what is made of these. Most are; all others are for simdjson.
//
// The text around is one that simdjson has looked through: its characters are UTF-8, its texts have
// ends and no control characters. A zero stands behind it.
#ifndef CHAKRA_ET_KERNEL_PLAIN_JSON_HPP
#define CHAKRA_ET_KERNEL_PLAIN_JSON_HPP

#include <cstdint>
#include <cstring>
#include <string_view>

namespace chakra_et {
namespace kernel {

constexpr int deepest = 64;               // Python's readers give up somewhere behind that
constexpr int longest_plain_number = 32;  // in characters
constexpr int most_digits = 18;           // of a whole number that surely fits

// Each function takes the first character, and gives the one behind; nullptr for what is not plain.

inline const char* behind_blanks(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
  return p;
}

inline uint64_t zeros_in(uint64_t word) {
  return (word - 0x0101010101010101) & ~word & 0x8080808080808080;
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Where the next quote or backslash stands.
inline const char* next_mark(const char* p) {
  for (;; p += 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    if (zeros_in(word ^ 0x2222222222222222) | zeros_in(word ^ 0x5c5c5c5c5c5c5c5c)) break;
  }
  while (*p != '"' && *p != '\\') ++p;
  return p;
}

// Behind an escaped character; `p` is at the backslash.
inline const char* behind_escape(const char* p) {
  if (*++p != 'u') return *p != 0 && std::strchr("\"\\/bfnrt", *p) != nullptr ? p + 1 : nullptr;
  uint32_t code = 0;
  for (int k = 0; k < 4; ++k) {
    char c = *++p;
    char letter = static_cast<char>(c | 0x20);
    if (!is_digit(c) && (letter < 'a' || letter > 'f')) return nullptr;
    code = 16 * code + static_cast<uint32_t>(is_digit(c) ? c - '0' : letter - 'a' + 10);
  }
  return code >= 0xd800 && code < 0xe000 ? nullptr : p + 1;
}

// Behind the quote that ends a text; `p` is behind the one that begins it.
inline const char* behind_text(const char* p) {
  while (p != nullptr && *(p = next_mark(p)) == '\\') p = behind_escape(p);
  return p == nullptr ? nullptr : p + 1;
}

// The same for a text without escapes, which it gives.
inline const char* behind_text(const char* p, std::string_view& text) {
  const char* end = next_mark(p);
  text = {p, static_cast<size_t>(end - p)};
  return *end == '"' ? end + 1 : nullptr;
}

inline const char* behind_number(const char* p) {
  const char* begin = p;
  if (*p == '-') ++p;
  const char* digits = p;
  while (is_digit(*p)) ++p;
  if (p == digits || (*digits == '0' && p - digits > 1)) return nullptr;
  if (*p == '.') {
    digits = ++p;
    while (is_digit(*p)) ++p;
    if (p == digits) return nullptr;
  }
  return *p == 'e' || *p == 'E' || p - begin > longest_plain_number ? nullptr : p;
}

// A whole number of few digits.
inline const char* behind_digits(const char* p, uint64_t& out) {
  const char* digits = p;
  out = 0;
  while (is_digit(*p)) out = 10 * out + static_cast<uint64_t>(*p++ - '0');
  bool is_plain = p != digits && p - digits <= most_digits && (*digits != '0' || p - digits == 1);
  return is_plain ? p : nullptr;
}

inline const char* behind_value(const char* p, int depth);

inline const char* behind_array(const char* p, int depth) {
  p = behind_blanks(p + 1);
  if (*p == ']') return p + 1;
  while ((p = behind_value(p, depth + 1)) != nullptr) {
    p = behind_blanks(p);
    if (*p == ']') return p + 1;
    if (*p != ',') return nullptr;
    p = behind_blanks(p + 1);
  }
  return nullptr;
}

// Behind a key and its colon, and blanks.
inline const char* behind_key(const char* p, std::string_view& key) {
  if (*p != '"' || (p = behind_text(p + 1, key)) == nullptr) return nullptr;
  p = behind_blanks(p);
  return *p == ':' ? behind_blanks(p + 1) : nullptr;
}

// Behind an object; `take` is told the key of each member and where its value begins, and gives what
// is behind that.
template <class Take>
const char* behind_members(const char* p, Take&& take) {
  std::string_view key;
  p = behind_blanks(p + 1);
  if (*p == '}') return p + 1;
  while ((p = behind_key(p, key)) != nullptr && (p = take(key, p)) != nullptr) {
    p = behind_blanks(p);
    if (*p == '}') return p + 1;
    if (*p != ',') return nullptr;
    p = behind_blanks(p + 1);
  }
  return nullptr;
}

inline const char* behind_object(const char* p, int depth) {
  return behind_members(
      p, [depth](std::string_view, const char* value) { return behind_value(value, depth + 1); });
}

inline const char* behind_value(const char* p, int depth) {
  if (depth > deepest) return nullptr;
  switch (*p) {
    case '"':
      return behind_text(p + 1);
    case '[':
      return behind_array(p, depth);
    case '{':
      return behind_object(p, depth);
    case 't':
      return std::strncmp(p, "true", 4) == 0 ? p + 4 : nullptr;
    case 'f':
      return std::strncmp(p, "false", 5) == 0 ? p + 5 : nullptr;
    case 'n':
      return std::strncmp(p, "null", 4) == 0 ? p + 4 : nullptr;
    default:
      return behind_number(p);
  }
}

// Behind a value, and the number where it is a whole one; numbers of more digits are not plain.
inline const char* behind_integer(const char* p, int64_t& out, bool& is_integer) {
  bool negative = *p == '-';
  const char* digits = p + negative;
  uint64_t size;
  const char* end = behind_digits(digits, size);
  is_integer = end != nullptr && *end != '.' && *end != 'e' && *end != 'E';
  if (!is_integer) return end == nullptr && is_digit(*digits) ? nullptr : behind_value(p, 0);
  out = negative ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
  return end;
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PLAIN_JSON_HPP
