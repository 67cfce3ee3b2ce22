// What stands between the values of objects: commas, blanks, keys and colons.
//
// Most objects of a file are written as others were: the same keys in the same order, the same blanks. So
// what stood behind a value is kept, with what it means, and is compared at once where that value was
// told again.
#ifndef CHAKRA_ET_KERNEL_KEY_TRAIL_HPP
#define CHAKRA_ET_KERNEL_KEY_TRAIL_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "plain_json.hpp"

namespace chakra_et {
namespace kernel {

class KeyTrail {
 public:
  static constexpr uint8_t at_end = 255;  // what means the brace that ends an object
  static constexpr size_t most_steps = 256;

  // Where one is in an object: the step that was made last, and what its key means.
  struct Place {
    uint16_t step = at_begin;
    uint8_t meaning = 0;
  };

  // Behind an object; `take` is told what each key means and where its value begins, and gives what is
  // behind that.
  template <class MeaningOf, class Take>
  const char* behind_object(const char* p, MeaningOf&& meaning_of, Take&& take) {
    Place place;
    while ((p = next(p, place, meaning_of)) != nullptr && place.meaning != at_end) {
      if ((p = take(place.meaning, p)) == nullptr) return nullptr;
    }
    return p;
  }

  // From an opening brace, or from behind a value: where the next value begins, or what is behind the
  // object; nullptr for what is not plain. `meaning_of` says what a new key means.
  template <class MeaningOf>
  const char* next(const char* p, Place& place, MeaningOf&& meaning_of) {
    std::array<uint16_t, most_followers>& followers = steps_[place.step].followers;
    for (size_t k = 0; k < followers.size() && followers[k] != 0; ++k) {
      const Step& step = steps_[followers[k]];
      if (!step.begins(p)) continue;
      place = {followers[k], step.meaning};
      if (k > 0) std::swap(followers[k], followers[k - 1]);
      p += step.size;
      return step.meaning == at_end ? p : behind_blanks(p);
    }
    const char* behind = read(p, place.step == at_begin, place.meaning, meaning_of);
    if (behind != nullptr) learn({p, static_cast<size_t>(behind - p)}, place);
    return behind;
  }

 private:
  static constexpr size_t longest = 32, most_followers = 6;
  // Before the first step; and behind one that is not kept.
  static constexpr uint16_t at_begin = 0, behind_other = 1, first_kept = 2;
  struct alignas(64) Step {
    std::array<char, longest> text{};
    uint32_t others = ~uint32_t{0};  // bits of the characters behind the text
    uint8_t size = 0, meaning = 0;
    std::array<uint16_t, most_followers> followers{};

    // Does the text at `p` begin so? Zeros stand behind that.
    bool begins(const char* p) const {
#ifdef __SSE2__
      auto load = [](const char* bytes) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
      };
      auto same = [&](size_t at) {
        return static_cast<uint32_t>(
            _mm_movemask_epi8(_mm_cmpeq_epi8(load(p + at), load(text.data() + at))));
      };
      return (same(0) | same(16) << 16 | others) == ~uint32_t{0};
#else
      return std::memcmp(p, text.data(), size) == 0;
#endif
    }
  };

  template <class MeaningOf>
  static const char* read(const char* p, bool is_first, uint8_t& meaning, MeaningOf&& meaning_of) {
    p = behind_blanks(p);
    bool goes_on = *p == (is_first ? '{' : ',');
    if (goes_on) p = behind_blanks(p + 1);
    if (*p == '}' && goes_on == is_first) {
      meaning = at_end;
      return p + 1;
    }
    std::string_view key;
    if (!goes_on || (p = behind_key(p, key)) == nullptr) return nullptr;
    meaning = meaning_of(key);
    return p;
  }

  // Keep what was read behind a step.
  void learn(std::string_view text, Place& place) {
    if (count_ == most_steps) {
      steps_.fill(Step());
      count_ = first_kept;
      if (place.step != at_begin) place.step = behind_other;
    }
    auto& followers = steps_[place.step].followers;
    place.step = behind_other;
    if (text.size() > longest) return;
    size_t free = 0;
    while (free + 1 < followers.size() && followers[free] != 0) ++free;
    followers[free] = place.step = count_++;
    Step& step = steps_[place.step];
    std::memcpy(step.text.data(), text.data(), text.size());
    step.others = text.size() == longest ? 0 : ~uint32_t{0} << text.size();
    step.size = static_cast<uint8_t>(text.size());
    step.meaning = place.meaning;
  }

  std::array<Step, most_steps> steps_{};
  uint16_t count_ = first_kept;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_KEY_TRAIL_HPP
