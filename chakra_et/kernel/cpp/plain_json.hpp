// Values of JSON passed over character by character, where they are plain: numbers that a double
// surely holds, texts without surrogates, and what is made of these. Most are; all others are for
// simdjson. What is passed over is sound: JSON in UTF-8. Zeros stand behind the text, sixteen at least.
#ifndef CHAKRA_ET_KERNEL_PLAIN_JSON_HPP
#define CHAKRA_ET_KERNEL_PLAIN_JSON_HPP

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace chakra_et {
namespace kernel {

constexpr int deepest = 64;               // Python's readers give up somewhere behind that
constexpr int longest_plain_number = 32;  // in characters
constexpr int longest_plain_exponent = 2;
constexpr int most_digits = 18;           // of a whole number that surely fits

// Each function takes the first character, and gives the one behind; nullptr for what is not plain.

inline const char* behind_blanks(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
  return p;
}

// Where any of some characters stands next.
template <char... characters>
const char* next_of(const char* p) {
#ifdef __SSE2__
  for (;; p += 16) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), found = _mm_setzero_si128();
    ((found = _mm_or_si128(found, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(characters)))), ...);
    int places = _mm_movemask_epi8(found);
    if (places != 0) return p + __builtin_ctz(static_cast<unsigned>(places));
  }
#else
  while (((*p != characters) && ...)) ++p;
  return p;
#endif
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Is a character of a text more than itself: one that ends it or stands for others, or that UTF-8
// makes of several bytes, or a control character, which must not be there?
inline bool is_mark(char c) { return c == '"' || c == '\\' || static_cast<signed char>(c) < ' '; }

// Where the next of these stands.
inline const char* next_mark(const char* p) {
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  const __m128i blank = _mm_set1_epi8(' ');
  for (;; p += 16) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
    int marks = _mm_movemask_epi8(_mm_or_si128(ends, _mm_cmplt_epi8(bytes, blank)));
    if (marks != 0) return p + __builtin_ctz(static_cast<unsigned>(marks));
  }
#else
  while (!is_mark(*p)) ++p;
  return p;
#endif
}

// Behind a character of several bytes.
inline const char* behind_character(const char* p) {
  auto lead = static_cast<uint8_t>(*p), next = static_cast<uint8_t>(p[1]);
  int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  // The shortest form is the only one; surrogates, and what is beyond Unicode, have none.
  uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (lead < 0xc2 || lead > 0xf4 || next < least || next > most) return nullptr;
  for (int k = 2; k <= more; ++k) {
    if ((static_cast<uint8_t>(p[k]) & 0xc0) != 0x80) return nullptr;
  }
  return p + more + 1;
}

constexpr uint32_t no_number = 0xffffffff;

// The number of four hexadecimal digits.
inline uint32_t hexadecimal(const char* p) {
  uint32_t number = 0;
  for (int k = 0; k < 4; ++k) {
    char letter = static_cast<char>(p[k] | 0x20);
    if (!is_digit(p[k]) && (letter < 'a' || letter > 'f')) return no_number;
    number = 16 * number + static_cast<uint32_t>(is_digit(p[k]) ? p[k] - '0' : letter - 'a' + 10);
  }
  return number;
}

// Behind an escaped character; `p` is at the backslash.
inline const char* behind_escape(const char* p) {
  if (*++p != 'u') return *p != 0 && std::strchr("\"\\/bfnrt", *p) != nullptr ? p + 1 : nullptr;
  uint32_t code = hexadecimal(p + 1);
  return code == no_number || (code >= 0xd800 && code < 0xe000) ? nullptr : p + 5;
}

// Behind the quote that ends a text; `p` is behind the one that begins it.
inline const char* behind_text(const char* p) {
  while (p != nullptr && *(p = next_mark(p)) != '"') {
    p = *p == '\\' ? behind_escape(p) : static_cast<signed char>(*p) < 0 ? behind_character(p) : nullptr;
  }
  return p == nullptr ? nullptr : p + 1;
}

// The same for a text without escapes, which it gives.
inline const char* behind_text(const char* p, std::string_view& text) {
  const char* begin = p;
  while (p != nullptr && *(p = next_mark(p)) != '"') {
    p = static_cast<signed char>(*p) < 0 ? behind_character(p) : nullptr;
  }
  if (p == nullptr) return nullptr;
  text = {begin, static_cast<size_t>(p - begin)};
  return p + 1;
}

inline void add_character(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  } else {
    out += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
            static_cast<char>(0x80 | (code & 0x3f))};
  }
}

// What the characters of a text with escapes stand for.
inline std::string unescaped(std::string_view text) {
  constexpr std::string_view letters = "bfnrt", meant = "\b\f\n\r\t";
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out += text[at];
    } else if (text[++at] == 'u') {
      add_character(hexadecimal(text.data() + at + 1), out);
      at += 4;
    } else {
      size_t letter = letters.find(text[at]);
      out += letter == letters.npos ? text[at] : meant[letter];
    }
  }
  return out;
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
  if (*p == 'e' || *p == 'E') {
    ++p;
    if (*p == '-' || *p == '+') ++p;
    digits = p;
    while (is_digit(*p)) ++p;
    if (p == digits || p - digits > longest_plain_exponent) return nullptr;
  }
  return p - begin > longest_plain_number ? nullptr : p;
}

// Are the next eight characters digits? Eight are as soon looked at as one.
inline bool are_eight_digits(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  // A digit is 0x30 to 0x39: it keeps its upper half, also when 6 is added.
  constexpr uint64_t halves = 0xf0f0f0f0f0f0f0f0, sixes = 0x0606060606060606;
  return ((word & halves) | ((word + sixes) & halves) >> 4) == 0x3333333333333333;
}

// The number of eight digits.
inline uint64_t eight_digits(const char* p) {
  uint64_t number = 0;
  for (int k = 0; k < 8; ++k) number = 10 * number + static_cast<uint64_t>(p[k] - '0');
  return number;
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

// Most elements are whole numbers with a comma behind them.
inline const char* behind_array(const char* p, int depth) {
  p = behind_blanks(p + 1);
  if (*p == ']') return p + 1;
  for (;;) {
    const char* digits = p;
    while (is_digit(*p)) ++p;
    bool is_whole = (*p == ',' || *p == ']') && p != digits && (*digits != '0' || p - digits == 1) &&
                    p - digits <= longest_plain_number;
    if (!is_whole) {
      if ((p = behind_value(digits, depth + 1)) == nullptr) return nullptr;
      p = behind_blanks(p);
    }
    if (*p == ']') return p + 1;
    if (*p != ',') return nullptr;
    p = behind_blanks(p + 1);
  }
}

// Is a key this word? The length of the word is known when this is compiled, so nothing is called.
template <size_t size>
bool is(std::string_view key, const char (&word)[size]) {
  return key.size() == size - 1 && std::memcmp(key.data(), word, size - 1) == 0;
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
