// Searches in ordered rows, and whose time each moment of a thread is: what `search_rows` in
// codes.py, `moments` and `owned_parts` in linker/time/owners.py, and `_latest` in
// linker/edges/thread/host_time.py do, which say how.
#ifndef CHAKRA_ET_KERNEL_TIMELINES_HPP
#define CHAKRA_ET_KERNEL_TIMELINES_HPP

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace chakra_et {
namespace kernel {

// Columns of rows, all of one length.
struct RowTable {
  std::vector<const int64_t*> columns;
  size_t size = 0;
};

// Searches ordered rows. Each search begins where the one before it ended and goes on in steps that
// double, as wanted rows are mostly nearly in order, too.
class RowSearch {
 public:
  explicit RowSearch(const RowTable& ordered) : ordered_(ordered) {}

  // How many rows come before row `row` of `wanted`, or are equal to it where `right`.
  size_t before(const RowTable& wanted, size_t row, bool right) {
    auto is_before = [&](size_t place) { return comes_before(place, wanted, row, right); };
    size_t low = at_, high = at_;
    if (at_ < ordered_.size && is_before(at_)) {
      for (size_t step = 1; high < ordered_.size && is_before(high); step *= 2) {
        low = high + 1;
        high = std::min(high + step, ordered_.size);
      }
    } else {
      for (size_t step = 1; low > 0 && !is_before(low - 1); step *= 2) {
        high = low - 1;
        low = low > step ? low - step : 0;
      }
    }
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (is_before(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return at_ = low;
  }

 private:
  bool comes_before(size_t place, const RowTable& wanted, size_t row, bool right) const {
    for (size_t k = 0; k < ordered_.columns.size(); ++k) {
      int64_t mine = ordered_.columns[k][place], other = wanted.columns[k][row];
      if (mine != other) return mine < other;
    }
    return right;
  }

  RowTable ordered_;
  size_t at_ = 0;
};

struct Activities {
  const int64_t *lane, *start, *end, *nested_in;
  size_t size;
};

struct Moments {
  std::vector<int64_t> lane, begin, owner;

  void reserve(size_t count) {
    for (auto* column : {&lane, &begin, &owner}) column->reserve(count);
  }

  void add(int64_t on, int64_t from, int64_t of) {
    lane.push_back(on);
    begin.push_back(from);
    owner.push_back(of);
  }
};

// Whose time the timelines of threads are, by rows in the order of lanes and starts. False for rows
// that there are none of.
inline bool moments(const Activities& all, const int64_t* order, size_t count, int64_t gap,
                    Moments& found) {
  constexpr int64_t ever = std::numeric_limits<int64_t>::min();
  constexpr int64_t never = std::numeric_limits<int64_t>::max();
  auto known = [&](int64_t row) { return row >= 0 && static_cast<uint64_t>(row) < all.size; };
  for (size_t i = 0; i < count; ++i) {
    if (!known(order[i])) return false;
  }
  found.reserve(2 * count);  // about one for each start and each end
  for (size_t i = 0; i < count; ++i) {
    int64_t owner = order[i], lane = all.lane[owner], now = all.start[owner];
    bool first = i == 0 || all.lane[order[i - 1]] != lane;
    bool last = i + 1 == count || all.lane[order[i + 1]] != lane;
    int64_t until = last ? never : all.start[order[i + 1]];
    if (first) found.add(lane, ever, gap);
    while (true) {
      // What is open when nothing else begins lasts to its end, then its caller has the time.
      int64_t end = known(owner) ? std::max(all.end[owner], now) : never;
      if (end > now) found.add(lane, now, known(owner) ? owner : gap);
      if (end >= until) break;
      owner = all.nested_in[owner];
      now = end;
    }
  }
  return true;
}

struct Parts {
  std::vector<int64_t> node, owner, ns;
};

// The parts of the own times of some rows that are others': lanes, begins and ends are by row of `wanted`.
inline Parts owned_parts(const RowTable& pieces, const int64_t* owner, const int64_t* rows,
                         const RowTable& begins, const RowTable& ends) {
  Parts found;
  for (auto* column : {&found.node, &found.owner, &found.ns}) column->reserve(begins.size);
  RowSearch search(pieces);
  const int64_t* begin = pieces.columns[1];
  for (size_t i = 0; i < begins.size; ++i) {
    size_t first = search.before(begins, i, true), after = search.before(ends, i, false);
    for (size_t piece = first == 0 ? 0 : first - 1; piece < after; ++piece) {
      if (owner[piece] == rows[i]) continue;
      int64_t until = piece + 1 == after ? ends.columns[1][i] : begin[piece + 1];
      int64_t ns = until - std::max(begin[piece], begins.columns[1][i]);
      if (ns <= 0) continue;
      found.node.push_back(rows[i]);
      found.owner.push_back(owner[piece]);
      found.ns.push_back(ns);
    }
  }
  return found;
}

// For each row the greatest value of its lane that is not above its limit, or the first time there
// is. Rows of a lane stand together, their limits ascend, and no value but that first time is below
// the limit of the row before it: what is to come is no less. False where that does not hold.
inline bool latest(const int64_t* lane, const int64_t* values, const int64_t* limits, size_t count,
                   std::vector<int64_t>& found) {
  constexpr int64_t ever = std::numeric_limits<int64_t>::min();
  found.resize(count);
  std::vector<int64_t> open;  // a heap with the least at its front
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && lane[end] == lane[begin]) ++end;
    open.clear();
    int64_t last = ever;
    for (size_t row = begin, next = begin; row < end; ++row) {
      if (row > begin && limits[row] < limits[row - 1]) return false;
      for (; next < end && (next == begin || limits[next - 1] <= limits[row]); ++next) {
        if (values[next] == ever) continue;
        if (next > begin && values[next] < limits[next - 1]) return false;
        open.push_back(values[next]);
        std::push_heap(open.begin(), open.end(), std::greater<>());
      }
      while (!open.empty() && open.front() <= limits[row]) {
        last = open.front();
        std::pop_heap(open.begin(), open.end(), std::greater<>());
        open.pop_back();
      }
      found[row] = last;
    }
  }
  return true;
}

// What the attribute `time_parts` says of a part, as `_in_words` in model/time_parts.py puts it.
inline void say_part(bool gap, uint64_t id, int64_t ns, std::string& text) {
  char digits[20];
  auto say = [&](auto number) {
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  };
  if (gap) {
    text += "gap";
  } else {
    say(id);
  }
  text += ':';
  say(ns);
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_TIMELINES_HPP
