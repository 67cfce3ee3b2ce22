// Plans from Python, and their times.
#ifndef CHAKRA_ET_KERNEL_REPLAY_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_REPLAY_TO_PYTHON_HPP

#include "python.hpp"
#include "replay.hpp"
#include "resolving_replay.hpp"

namespace chakra_et {
namespace kernel {

inline void same_size(std::initializer_list<size_t> sizes) {
  for (size_t size : sizes) {
    if (size != *sizes.begin()) throw nb::value_error("columns of different lengths");
  }
}

inline Plan plan_of(const nb::tuple& columns, std::vector<Column<int64_t>>& kept) {
  if (columns.size() != 5) throw nb::value_error("a plan has five columns");
  for (nb::handle column : columns) kept.push_back(nb::cast<Column<int64_t>>(column));
  same_size({kept[0].size(), kept[1].size(), kept[2].size()});
  same_size({kept[3].size(), kept[4].size()});
  return {kept[0].data(), kept[1].data(), kept[2].data(), kept[0].size(),
          kept[3].data(), kept[4].data(), kept[3].size()};
}

inline Waiting waiting_of(const nb::tuple& columns, size_t many,
                          std::vector<Column<int64_t>>& kept) {
  if (columns.size() != 7) throw nb::value_error("what waits has seven columns");
  for (nb::handle column : columns) kept.push_back(nb::cast<Column<int64_t>>(column));
  same_size({kept[0].size() + 1, kept[1].size()});
  same_size({kept[3].size(), kept[4].size(), kept[5].size(), kept[6].size()});
  return {kept[0].data(), kept[1].data(), kept[2].data(), kept[0].size(), kept[2].size(),
          kept[3].data(), kept[4].data(), kept[5].data(), kept[6].data(), kept[3].size(), many};
}

inline nb::object replay(nb::tuple plan) {
  std::vector<Column<int64_t>> kept;
  Replay times(plan_of(plan, kept));
  bool fits;
  {
    nb::gil_scoped_release release;
    fits = times.run();
  }
  if (!fits) return nb::none();
  return nb::make_tuple(array(std::move(times.start)), array(std::move(times.end)),
                        array(std::move(times.done)), times.followed);
}

inline nb::object replay_resolving(nb::tuple plan, nb::tuple waiting, size_t many) {
  std::vector<Column<int64_t>> kept, kept_waiting;
  ResolvingReplay times(plan_of(plan, kept), waiting_of(waiting, many, kept_waiting));
  bool fits;
  {
    nb::gil_scoped_release release;
    fits = times.run();
  }
  if (!fits) return nb::none();
  return nb::make_tuple(array(std::move(times.start)), array(std::move(times.end)),
                        array(std::move(times.done)), array(std::move(times.found_target)),
                        array(std::move(times.found_call)), times.picked, times.followed);
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_REPLAY_TO_PYTHON_HPP
