// Words in texts.
#ifndef CHAKRA_ET_KERNEL_WORDS_HPP
#define CHAKRA_ET_KERNEL_WORDS_HPP

#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace chakra_et {
namespace kernel {

// Does a word stand in a text? Two characters within the word are looked for at sixteen places at a
// time: quotes, which begin and end many words, are in every text.
inline bool holds(std::string_view text, std::string_view word) {
  size_t at = 0;
#ifdef __SSE2__
  if (word.size() >= 4 && text.size() >= word.size()) {
    size_t last = word.size() - 2, places = text.size() - word.size() + 1;
    const __m128i early = _mm_set1_epi8(word[1]), late = _mm_set1_epi8(word[last]);
    for (; at + 16 <= places; at += 16) {
      auto load = [&](size_t behind) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at + behind));
      };
      __m128i both = _mm_and_si128(_mm_cmpeq_epi8(load(1), early), _mm_cmpeq_epi8(load(last), late));
      for (auto found = static_cast<unsigned>(_mm_movemask_epi8(both)); found != 0;
           found &= found - 1) {
        const char* begin = text.data() + at + static_cast<size_t>(__builtin_ctz(found));
        if (std::memcmp(begin, word.data(), word.size()) == 0) return true;
      }
    }
  }
#endif
  return text.find(word, at) != text.npos;
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_WORDS_HPP
