// Two steps of the linker that go item by item: what `enclosing` in linker/joining/nesting.py and
// `_shortest_edit` in linker/joining/alignment.py do, which say how.
#ifndef CHAKRA_ET_KERNEL_SEQUENCES_HPP
#define CHAKRA_ET_KERNEL_SEQUENCES_HPP

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

namespace chakra_et {
namespace kernel {

struct Intervals {
  const int64_t* lane;
  const int64_t* start;
  const int64_t* end;
  size_t size;
};

// `time - by`, or the first or last time there is where that does not fit.
inline int64_t earlier(int64_t time, int64_t by) {
  constexpr int64_t first = std::numeric_limits<int64_t>::min();
  constexpr int64_t final = std::numeric_limits<int64_t>::max();
  if (by > 0 && time < first + by) return first;
  if (by < 0 && time > final + by) return final;
  return time - by;
}

// The innermost interval of the same lane that contains each; false for an order that is none.
inline bool enclosing(const Intervals& in, const int64_t* order, size_t count, int64_t last,
                      std::vector<int64_t>& parents) {
  parents.assign(in.size, -1);
  std::vector<size_t> open;
  for (size_t i = 0; i < count; ++i) {
    auto item = static_cast<size_t>(order[i]);
    if (order[i] < 0 || item >= in.size) return false;
    if (i > 0 && in.lane[item] != in.lane[static_cast<size_t>(order[i - 1])]) open.clear();
    while (!open.empty() && in.end[open.back()] <= in.start[item]) open.pop_back();
    if (!open.empty()) {
      // Ends fall from each open interval to the next one.
      int64_t least = earlier(in.end[item], last);
      auto behind = std::partition_point(open.begin(), open.end(),
                                         [&](size_t other) { return in.end[other] >= least; });
      parents[item] = static_cast<int64_t>(behind == open.begin() ? open.front() : *(behind - 1));
    }
    while (!open.empty() && in.end[open.back()] <= in.end[item]) open.pop_back();
    open.push_back(item);
  }
  return true;
}

struct Runs {
  std::vector<int64_t> left, right, size;
};

// Equal runs between the fewest items that either side has alone; none where that are too many.
class ShortestEdit {
 public:
  ShortestEdit(const int64_t* left, int64_t left_size, const int64_t* right, int64_t right_size)
      : left_(left), right_(right), left_size_(left_size), right_size_(right_size) {}

  Runs find(int64_t most) {
    if (std::abs(left_size_ - right_size_) > most) return {};
    most = std::min(most, left_size_ + right_size_);
    middle_ = most + 1;
    std::vector<int64_t> reach(static_cast<size_t>(2 * middle_ + 1), 0);
    for (int64_t gaps = 0; gaps <= most; ++gaps) {
      steps_.push_back(reach);
      for (int64_t diagonal = -gaps; diagonal <= gaps; diagonal += 2) {
        bool down = is_down(reach, gaps, diagonal);
        int64_t at = down ? of(reach, diagonal + 1) : of(reach, diagonal - 1) + 1;
        at += equal_from(at, at - diagonal);
        reach[static_cast<size_t>(diagonal + middle_)] = at;
        if (at >= left_size_ && at - diagonal >= right_size_) return way_back(diagonal, at);
      }
    }
    return {};
  }

 private:
  int64_t of(const std::vector<int64_t>& reach, int64_t diagonal) const {
    return reach[static_cast<size_t>(diagonal + middle_)];
  }

  bool is_down(const std::vector<int64_t>& reach, int64_t gaps, int64_t diagonal) const {
    return diagonal == -gaps ||
           (diagonal != gaps && of(reach, diagonal - 1) < of(reach, diagonal + 1));
  }

  int64_t equal_from(int64_t a, int64_t b) const {
    int64_t equal = 0;
    if (b < 0) return 0;
    while (a + equal < left_size_ && b + equal < right_size_ &&
           left_[a + equal] == right_[b + equal]) {
      ++equal;
    }
    return equal;
  }

  Runs way_back(int64_t diagonal, int64_t at) const {
    Runs runs;
    for (int64_t gaps = static_cast<int64_t>(steps_.size()) - 1; gaps >= 0; --gaps) {
      const auto& reach = steps_[static_cast<size_t>(gaps)];
      bool down = is_down(reach, gaps, diagonal);
      int64_t before = down ? diagonal + 1 : diagonal - 1;
      int64_t begin = down ? of(reach, before) : of(reach, before) + 1;
      if (at > begin) {
        runs.left.push_back(begin);
        runs.right.push_back(begin - diagonal);
        runs.size.push_back(at - begin);
      }
      diagonal = before;
      at = of(reach, before);
    }
    return runs;
  }

  const int64_t* left_;
  const int64_t* right_;
  int64_t left_size_, right_size_, middle_ = 0;
  std::vector<std::vector<int64_t>> steps_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_SEQUENCES_HPP
