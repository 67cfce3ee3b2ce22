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
    for (size_t number = 0; number < texts.size(); ++number) {
      strip(texts[number]);
      if (!find(static_cast<int64_t>(number))) return false;
    }
    return true;
  }

 private:
  static constexpr size_t marks = 9;  // of a tensor: [,,,,,""]
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
    bool bare = true;
    for (char c : given) bare &= static_cast<unsigned char>(c) > ' ' && c != '\\';
    plain_ = given;
    if (bare) return;
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

  bool find(int64_t number) {
    bool inside = false;
    int depth = 0;
    int64_t commas = 0, begun = 0;  // outermost commas, and those before the last bracket
    size_t seen = 0;
    for (size_t at = 0; at < plain_.size(); ++at) {
      char c = plain_[at];
      if (c == '\0') return false;
      if (c != '[' && c != ']' && c != ',' && c != '"') continue;
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
    if (numbers[2] >= most || numbers[3] >= most || numbers[4] >= widest) return;
    if (numbers[1] == 0) {
      if (!whole(seen, 0, numbers[0])) return;
      numbers[1] = -numbers[0];
    }
    text.push_back(number);
    argument.push_back(place);
    storage.push_back(numbers[1]);
    offset.push_back(numbers[2]);
    count.push_back(numbers[3]);
    size.push_back(numbers[4]);
    device.push_back(last_bytes(mark(seen, 6).at + 1, mark(seen, 7).at));
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
