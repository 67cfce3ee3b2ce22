// Text that comes from files, as people may see it: names can hold line ends and sequences that
// steer a terminal.
#ifndef CHAKRA_ET_SHOWN_HPP
#define CHAKRA_ET_SHOWN_HPP

#include <cstddef>
#include <string>
#include <string_view>

namespace chakra_et {

// A text as one line: control characters, and separators of lines, are written as escapes.
inline std::string shown(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  auto at = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = at(i), next = at(i + 1);
    if (byte == '\n' || byte == '\r' || byte == '\t') {
      out += byte == '\n' ? "\\n" : byte == '\r' ? "\\r" : "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // controls of ISO 8859
      out += std::string("\\x") + digits[next >> 4] + digits[next & 15];
      ++i;
    } else if (byte == 0xe2 && next == 0x80 && (at(i + 2) == 0xa8 || at(i + 2) == 0xa9)) {
      out += at(i + 2) == 0xa8 ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace chakra_et

#endif  // CHAKRA_ET_SHOWN_HPP
