// Records of profiles as columns.
#ifndef CHAKRA_ET_KERNEL_PROFILE_COLUMNS_HPP
#define CHAKRA_ET_KERNEL_PROFILE_COLUMNS_HPP

#include <array>
#include <cstdint>

#include "grown.hpp"
#include "profile_arguments.hpp"

namespace chakra_et {
namespace kernel {

// Columns of spans, in order; shapes are -1 for what is no operation.
struct Spans {
  Grown<uint8_t> role;
  Grown<int32_t> category, name, shapes;
  Grown<int64_t> pid, tid, start_ns, duration_ns;
  std::array<Grown<int64_t>, arguments.size()> numbers;

  // Each column with that of others.
  template <class Do>
  void each(Spans& other, Do&& act) {
    act(role, other.role);
    act(category, other.category);
    act(name, other.name);
    act(shapes, other.shapes);
    act(pid, other.pid);
    act(tid, other.tid);
    act(start_ns, other.start_ns);
    act(duration_ns, other.duration_ns);
    for (size_t a = 0; a < numbers.size(); ++a) act(numbers[a], other.numbers[a]);
  }
};

// Ends of arrows that are evidence.
struct Arrows {
  Grown<int32_t> category;
  Grown<int64_t> pid, tid, id, time_ns;

  template <class Do>
  void each(Arrows& other, Do&& act) {
    act(category, other.category);
    act(pid, other.pid);
    act(tid, other.tid);
    act(id, other.id);
    act(time_ns, other.time_ns);
  }
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PROFILE_COLUMNS_HPP
