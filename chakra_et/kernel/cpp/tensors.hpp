// Tensors in the values of operations: what `_in_piece` in converters/pytorch/tensors.py finds in the
// same texts.
#ifndef CHAKRA_ET_KERNEL_TENSORS_HPP
#define CHAKRA_ET_KERNEL_TENSORS_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace chakra_et {
namespace kernel {

class TensorFinder {
 public:
  std::vector<int64_t> text, argument, storage, offset, count, size;
  std::vector<uint64_t> device;  // the last eight bytes of its name

  // False for a text that is no JSON: what it holds is for others to tell.
  bool read(const std::vector<std::string_view>& texts) {
    size_t bytes = 0;
    for (std::string_view some : texts) bytes += some.size();
    for (auto* column : {&text, &argument, &storage, &offset, &count, &size}) {
      column->reserve(bytes / usual);
    }
    device.reserve(bytes / usual);
    for (size_t number = 0; number < texts.size(); ++number) {
      strip(texts[number]);
      if (!find(static_cast<int64_t>(number))) return false;
    }
    return true;
  }

 private:
  static constexpr size_t marks = 9;  // of a tensor: [,,,,,""]
  static constexpr size_t usual = 32;  // bytes of a text for each tensor in it
  static constexpr size_t kept = 16;  // of all marks, the last ones
  static constexpr int64_t most = int64_t{1} << 48, widest = int64_t{1} << 12;
  static constexpr int64_t largest_head = 9'223'372'036'854'775'807 / 100'000'000;
  struct Mark {
    char what;
    size_t at;
  };

  // Drop blanks and escaped quotes, so that every quote begins or ends a string. Most texts have
  // none.
  void strip(std::string_view given) {
    plain_ = given;
    if (is_bare(given)) return;
    stripped_.clear();
    for (size_t i = 0; i < given.size(); ++i) {
      char c = given[i];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
      if (c == '\\' && i + 1 < given.size() && (given[i + 1] == '\\' || given[i + 1] == '"')) {
        ++i;
      } else {
        stripped_.push_back(c);
      }
    }
    plain_ = {stripped_.data(), stripped_.size()};
  }

  // Whether each character is above a blank, and no backslash; eight at once.
  static bool is_bare(std::string_view given) {
    constexpr uint64_t ones = 0x0101010101010101, tops = ones << 7;
    uint64_t odd = 0;
    size_t at = 0;
    for (; at + 8 <= given.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, given.data() + at, sizeof word);
      uint64_t slashed = word ^ ones * '\\';
      odd |= ((word - ones * (' ' + 1)) & ~word) | ((slashed - ones) & ~slashed);
    }
    bool bare = (odd & tops) == 0;
    for (; at < given.size(); ++at) {
      bare &= static_cast<unsigned char>(given[at]) > ' ' && given[at] != '\\';
    }
    return bare;
  }

  bool find(int64_t number) {
    bool inside = false;
    int depth = 0;
    int64_t commas = 0, begun = 0;  // outermost commas, and those before the last bracket
    size_t seen = 0;
    for (size_t at = 0; at < plain_.size(); ++at) {
      char c = plain_[at];
      if (c == '\0') return false;
      if (c != '[' && c != ']' && c != ',' && c != '"') continue;
      if (c == '[' && !inside) {
        if (size_t end = usual_at(at, number, commas)) {
          if (depth == 0) commas += 5;
          at = end;
          marks_[seen++ % kept] = {']', at};  // of which no other tensor has one before its end
          continue;
        }
      }
      marks_[seen++ % kept] = {c, at};
      if (c == '"') {
        inside = !inside;
      } else if (c == '[') {
        depth += !inside;
        begun = commas;
      } else if (c == ',') {
        commas += !inside && depth == 1;
      } else {
        depth -= !inside;
        if (seen >= marks && matches(seen)) take(number, begun, seen);
      }
    }
    return depth == 0 && !inside;
  }

  // The end of a tensor that begins here, which is taken; 0 for what is not as most tensors are.
  size_t usual_at(size_t at, int64_t number, int64_t place) {
    std::array<int64_t, 5> numbers;
    const char *p = plain_.data() + at + 1, *end = plain_.data() + plain_.size();
    for (int64_t& value : numbers) {
      const char* begin = p;
      for (value = 0; p < end && static_cast<unsigned char>(*p - '0') < 10; ++p) {
        if (p - begin == 18) return 0;
        value = 10 * value + (*p - '0');
      }
      if (p == begin || p == end || *p++ != ',') return 0;
    }
    if (p == end || *p++ != '"') return 0;
    const char* name = p;
    while (p < end && *p != '"' && *p != ',' && *p != '[' && *p != ']' && *p != '\0') ++p;
    if (end - p < 2 || p[0] != '"' || p[1] != ']' || !fit(numbers)) return 0;
    add(number, place, numbers, last_bytes(static_cast<size_t>(name - plain_.data()),
                                           static_cast<size_t>(p - plain_.data())));
    return static_cast<size_t>(p + 1 - plain_.data());
  }

  const Mark& mark(size_t seen, size_t k) const { return marks_[(seen - marks + k) % kept]; }

  bool matches(size_t seen) const {
    constexpr std::string_view pattern = "[,,,,,\"\"]";
    for (size_t k = 0; k < marks; ++k) {
      if (mark(seen, k).what != pattern[k]) return false;
    }
    // The device stands alone between its comma and the closing bracket.
    return mark(seen, 6).at == mark(seen, 5).at + 1 && mark(seen, 8).at == mark(seen, 7).at + 1;
  }

  void take(int64_t number, int64_t place, size_t seen) {
    std::array<int64_t, 5> numbers{};
    for (size_t k = 1; k < numbers.size(); ++k) {
      if (!whole(seen, k, numbers[k])) return;
    }
    if (!fit(numbers)) return;
    if (numbers[1] == 0 && !whole(seen, 0, numbers[0])) return;
    add(number, place, numbers, last_bytes(mark(seen, 6).at + 1, mark(seen, 7).at));
  }

  static bool fit(const std::array<int64_t, 5>& numbers) {
    return numbers[2] < most && numbers[3] < most && numbers[4] < widest;
  }

  void add(int64_t number, int64_t place, const std::array<int64_t, 5>& numbers, uint64_t name) {
    text.push_back(number);
    argument.push_back(place);
    storage.push_back(numbers[1] == 0 ? -numbers[0] : numbers[1]);
    offset.push_back(numbers[2]);
    count.push_back(numbers[3]);
    size.push_back(numbers[4]);
    device.push_back(name);
  }

  // The number behind mark k; false for what is none, or may exceed 63 bits.
  bool whole(size_t seen, size_t k, int64_t& out) const {
    size_t begin = mark(seen, k).at + 1, end = mark(seen, k + 1).at;
    if (begin == end || end - begin > 19) return false;
    out = 0;
    for (size_t at = begin; at < end; ++at) {
      if (plain_[at] < '0' || plain_[at] > '9') return false;
      if (end - at == 8 && out >= largest_head) return false;
      out = 10 * out + (plain_[at] - '0');
    }
    return true;
  }

  uint64_t last_bytes(size_t begin, size_t end) const {
    std::array<char, 8> bytes{};
    size_t length = end - begin < bytes.size() ? end - begin : bytes.size();
    std::memcpy(bytes.data() + bytes.size() - length, plain_.data() + end - length, length);
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }

  std::string_view plain_;
  std::vector<char> stripped_;
  std::array<Mark, kept> marks_{};
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_TENSORS_HPP
