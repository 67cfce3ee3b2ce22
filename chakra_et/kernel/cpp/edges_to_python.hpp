// Edges from Python, and what is found in them.
#ifndef CHAKRA_ET_KERNEL_EDGES_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_EDGES_TO_PYTHON_HPP

#include <limits>

#include "edges.hpp"
#include "python.hpp"

namespace chakra_et {
namespace kernel {

// Places of edges are kept in 32 bits.
inline void check_edges(size_t count, std::initializer_list<size_t> sizes) {
  for (size_t size : sizes) {
    if (size != count) throw nb::value_error("columns of different lengths");
  }
  if (count > std::numeric_limits<uint32_t>::max()) throw nb::value_error("too many edges");
}

inline nb::object edges_in_rows_of(Column<int64_t> target, Column<uint64_t> source,
                                   Column<bool> other, Column<bool> lesser, size_t nodes) {
  check_edges(target.size(), {source.size(), other.size(), lesser.size()});
  std::vector<int64_t> places;
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = edges_in_rows({target.data(), source.data(), other.data(), lesser.data(),
                           target.size()}, nodes, places);
  }
  if (!sound) return nb::none();
  return array(std::move(places));
}

inline nb::object chains_of(size_t nodes, Column<int64_t> source, Column<int64_t> target,
                           Column<bool> in_order) {
  check_edges(target.size(), {source.size(), in_order.size()});
  Chains found;
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = find_chains(source.data(), target.data(), in_order.data(), target.size(), nodes, found);
  }
  if (!sound) return nb::none();
  return nb::make_tuple(array(std::move(found.chain)), array(std::move(found.linked)));
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_EDGES_TO_PYTHON_HPP
