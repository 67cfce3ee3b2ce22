// JSON as the readers of long arrays need it: exact, and strict also in what is carried as text.
//
// Objects of plain values are walked character by character, which is faster than anything that looks
// at them twice. From the first object on that is not plain, a piece is for simdjson's on-demand
// parser. That looks at what it is asked for, and passes over the rest, which here is carried as text:
// so it is walked, and a piece is read only if all of it is sound.
// A reader gives up (returns false) at anything that it does not know; then the one in Python decides.
#ifndef CHAKRA_ET_KERNEL_JSON_HPP
#define CHAKRA_ET_KERNEL_JSON_HPP

#include <simdjson.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "plain_json.hpp"

namespace chakra_et {
namespace kernel {

namespace od = simdjson::ondemand;

constexpr size_t longest_number = 40;  // longer ones are for those who know what they overflow

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' ||
                           text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

// A key, where it has no escapes: those are for others to read.
inline bool plain_key(simdjson::simdjson_result<od::field>& field, std::string_view& out) {
  od::raw_json_string key;
  if (field.key().get(key)) return false;
  const char* begin = key.raw();
  const char* p = begin;
  while (*p != '"') {
    if (*p == '\\') return false;
    ++p;
  }
  out = {begin, static_cast<size_t>(p - begin)};
  return true;
}

// Where a value of an object begins.
inline const char* start_of(od::value& value) { return std::string_view(value.raw_json_token()).data(); }

// Does a member of an object end before `p`?
inline bool ends_member(const char* p) {
  p = behind_blanks(p);
  return *p == ',' || *p == '}';
}

// The text of a value of an object, if that is plain.
inline bool plain_value(od::value& value, std::string_view& out) {
  const char* begin = start_of(value);
  const char* end = behind_value(begin, 0);
  if (end == nullptr || !ends_member(end)) return false;
  out = {begin, static_cast<size_t>(end - begin)};
  return true;
}

// Text; where it has escapes it lies in the parser, until that begins anew.
inline bool text_of(od::value value, std::string_view& out) {
  const char* begin = start_of(value);
  if (*begin != '"') return false;
  const char* end = behind_text(begin + 1, out);
  return (end != nullptr && ends_member(end)) || !value.get_string().get(out);
}

inline bool text_of(simdjson::simdjson_result<od::value> found, std::string_view& out) {
  od::value value;
  return !found.get(value) && text_of(value, out);
}

template <class T>
bool integer_of(simdjson::simdjson_result<od::value> found, T& out) {
  return !found.get(out);
}

inline bool is_number(std::string_view token) {
  return !token.empty() && (token.front() == '-' || (token.front() >= '0' && token.front() <= '9'));
}

// Walk a value to its end; whether it is sound.
inline bool walk(od::value value, int depth) {
  if (depth > deepest) return false;
  od::json_type type;
  if (value.type().get(type)) return false;
  switch (type) {
    case od::json_type::array: {
      od::array array;
      if (value.get_array().get(array)) return false;
      for (auto element : array) {
        od::value inner;
        if (element.get(inner) || !walk(inner, depth + 1)) return false;
      }
      return true;
    }
    case od::json_type::object: {
      od::object object;
      if (value.get_object().get(object)) return false;
      for (auto field : object) {
        std::string_view key;
        od::value inner;
        if (!plain_key(field, key) || field.value().get(inner) || !walk(inner, depth + 1)) {
          return false;
        }
      }
      return true;
    }
    case od::json_type::string: {
      std::string_view text;
      return !value.get_string().get(text);
    }
    case od::json_type::number: {
      std::string_view token = value.raw_json_token();
      double number;
      return is_number(token) && token.size() < longest_number && !value.get_double().get(number);
    }
    case od::json_type::boolean: {
      bool flag;
      return !value.get_bool().get(flag);
    }
    case od::json_type::null: {
      bool null;
      return !value.is_null().get(null) && null;
    }
  }
  return false;
}

inline bool walk(simdjson::simdjson_result<od::value> found) {
  od::value value;
  std::string_view text;
  return !found.get(value) && (plain_value(value, text) || walk(value, 0));
}

// The text of a value, as it stands in the file; it is walked.
inline bool carried(od::document& document, simdjson::simdjson_result<od::value> found,
                    std::string_view& out) {
  od::value value;
  if (found.get(value)) return false;
  if (plain_value(value, out)) return true;
  const char* begin = start_of(value);
  const char* end;
  if (!walk(value, 0) || document.current_location().get(end)) return false;
  out = trimmed({begin, static_cast<size_t>(end - begin)});
  return true;
}

// Does an element end before `p`: in front of another one, of the array's end or of that of the text?
inline bool ends_element(const char* p) {
  p = behind_blanks(p);
  return *p == ',' || *p == ']' || *p == '\0';
}

// Elements with commas between them, in a text that goes on behind them.
class Piece {
 public:
  static constexpr size_t spare = simdjson::SIMDJSON_PADDING;
  od::parser parser;  // used again

  // The elements are the first `count` bytes; false for a text without zeros at its end.
  bool take(const char* text, size_t size, size_t count) {
    constexpr std::array<char, spare> zeros{};
    if (size < spare || count > size - spare) return false;
    begin_ = text;
    limit_ = text + count;
    end_ = text + size - spare;
    unescaped_.clear();
    return std::memcmp(end_, zeros.data(), spare) == 0;
  }
  const char* begin() const { return begin_; }
  const char* limit() const { return limit_; }  // behind the elements
  const char* end() const { return end_; }      // of all text

  // Behind the quote that ends a text; `p` is behind the one that begins it. Where the text has
  // escapes, what they stand for lies here, until the next piece.
  const char* behind_any_text(const char* p, std::string_view& text) {
    const char* behind = behind_text(p, text);
    if (behind != nullptr || (behind = behind_text(p)) == nullptr) return behind;
    text = unescaped_.emplace_back(unescaped({p, static_cast<size_t>(behind - 1 - p)}));
    return behind;
  }

  // The elements from one on as an array, which is all text from then on.
  simdjson::padded_string_view array_from(const char* element) {
    auto count = static_cast<size_t>(limit_ - element);
    array_.assign(count + 2 + spare, '\0');
    array_[0] = '[';
    std::memcpy(array_.data() + 1, element, count);
    array_[count + 1] = ']';
    end_ = array_.data() + count + 2;
    return simdjson::padded_string_view(array_.data(), count + 2, array_.size());
  }

 private:
  const char *begin_ = nullptr, *limit_ = nullptr, *end_ = nullptr;
  std::vector<char> array_;
  std::deque<std::string> unescaped_;
};

// The elements of a piece from one on, each an object; `take_plain` is asked first, and simdjson
// passes over what it takes.
template <class TakePlain, class Take>
bool each_object_from(const char* first, Piece& piece, TakePlain&& take_plain, Take&& take) {
  od::document document;
  od::array array;
  if (piece.parser.iterate(piece.array_from(first)).get(document)) return false;
  if (document.get_array().get(array)) return false;
  for (auto element : array) {
    od::value value;
    od::object object;
    if (element.get(value)) return false;
    const char* begin = start_of(value);
    if (*begin == '{' && take_plain(begin) != nullptr) continue;
    if (value.get_object().get(object) || !take(document, object)) return false;
  }
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

// The elements of a piece, which are objects and nothing else: false where they are not, or where
// none takes one. `take_plain` is told where an object begins, and gives what is behind it; nullptr
// for one that is not plain.
template <class TakePlain, class Take>
bool each_object(Piece& piece, TakePlain&& take_plain, Take&& take) {
  const char* p = behind_blanks(piece.begin());
  if (p >= piece.limit()) return true;
  while (p < piece.limit() && *p == '{') {
    const char* behind = take_plain(p);
    if (behind == nullptr) return each_object_from(p, piece, take_plain, take);
    p = behind_blanks(behind);
    if (p >= piece.limit()) return behind <= piece.limit();
    if (*p != ',') return false;
    p = behind_blanks(p + 1);
  }
  return false;
}

constexpr int64_t latest_us = 9'000'000'000'000'000;  // in nanoseconds that still is an int64

// Decimal microseconds in nanoseconds, from the digits; false for what others must round or refuse.
inline bool nanoseconds(std::string_view token, int64_t& out) {
  token = trimmed(token);
  const char* p = token.data();
  const char* end = p + token.size();
  bool negative = p != end && *p == '-';
  if (negative) ++p;
  const char* digits = p;
  int64_t value = 0;
  while (p != end && *p >= '0' && *p <= '9' && p - digits < 17) value = 10 * value + (*p++ - '0');
  size_t whole = static_cast<size_t>(p - digits);
  if (whole == 0 || (whole > 1 && *digits == '0') || value > latest_us) return false;
  int decimals = 0;
  if (p != end && *p == '.') {
    for (++p; p != end && *p >= '0' && *p <= '9' && decimals < 3; ++decimals) {
      value = 10 * value + (*p++ - '0');
    }
    if (decimals == 0) return false;
    while (p != end && *p == '0') ++p;
  }
  if (p != end) return false;
  for (; decimals < 3; ++decimals) value *= 10;
  out = negative ? -value : value;
  return true;
}

// A time as it stands in a file, and in nanoseconds where it is plain.
struct Time {
  std::string_view token;
  int64_t ns = 0;
  bool is_plain = false;

  // False for what others must round or refuse.
  bool get(int64_t& out) const {
    if (is_plain) out = ns;
    return is_plain || nanoseconds(token, out);
  }
};

// Behind a value that is a time if it is a number: most are microseconds with up to three decimals.
inline const char* behind_time(const char* begin, Time& out) {
  const char* p = begin;
  uint64_t value = 0;
  while (are_eight_digits(p) && p - begin <= 8) {
    value = 100'000'000 * value + eight_digits(p);
    p += 8;
  }
  while (is_digit(*p)) value = 10 * value + static_cast<uint64_t>(*p++ - '0');
  auto whole = p - begin;
  bool fits = whole > 0 && whole <= 16 && (whole == 1 || *begin != '0') &&
              value <= static_cast<uint64_t>(latest_us);
  ptrdiff_t decimals = 0;
  if (*p == '.') {
    const char* point = p++;
    while (is_digit(*p) && p - point <= 3) value = 10 * value + static_cast<uint64_t>(*p++ - '0');
    decimals = p - point - 1;
    fits = fits && decimals > 0;
  }
  out.is_plain = fits && !is_digit(*p) && *p != '.' && *p != 'e' && *p != 'E';
  if (!out.is_plain && (p = behind_value(begin, 0)) == nullptr) return nullptr;
  for (; decimals < 3; ++decimals) value *= 10;
  out.ns = static_cast<int64_t>(value);
  out.token = {begin, static_cast<size_t>(p - begin)};
  return p;
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_JSON_HPP
