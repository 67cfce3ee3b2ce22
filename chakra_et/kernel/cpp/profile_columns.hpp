// Records of profiles as columns.
#ifndef CHAKRA_ET_KERNEL_PROFILE_COLUMNS_HPP
#define CHAKRA_ET_KERNEL_PROFILE_COLUMNS_HPP

#include <array>
#include <cstdint>

#include "grown.hpp"
#include "profile_arguments.hpp"

namespace chakra_et {
namespace kernel {

// Columns of spans, in order; what is no operation tells no shapes.
struct Spans {
  Grown<uint8_t> role;
  Grown<int32_t> category, name, shapes;
  Grown<int64_t> pid, tid, start_ns, duration_ns;
  std::array<Grown<int64_t>, arguments.size()> numbers;

  template <class Do>
  void each(Do&& act) {
    act(role);
    for (auto* column : {&category, &name, &shapes}) act(*column);
    for (auto* column : {&pid, &tid, &start_ns, &duration_ns}) act(*column);
    for (auto& column : numbers) act(column);
  }
};

// Ends of arrows that are evidence.
struct Arrows {
  Grown<int32_t> category;
  Grown<int64_t> pid, tid, id, time_ns;

  template <class Do>
  void each(Do&& act) {
    act(category);
    for (auto* column : {&pid, &tid, &id, &time_ns}) act(*column);
  }
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PROFILE_COLUMNS_HPP
