// Tables of nodes, operators and tensors from Python, and the tree of calls and the accesses to memory
// found in them.
#ifndef CHAKRA_ET_KERNEL_ACCESSES_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_ACCESSES_TO_PYTHON_HPP

#include <initializer_list>
#include <memory>
#include <vector>

#include "accesses.hpp"
#include "call_tree.hpp"
#include "python.hpp"

namespace chakra_et {
namespace kernel {

// A table whose columns come by name, all as long as the first. It holds them: one of another type, or
// with gaps, is copied.
class NamedColumns {
 public:
  explicit NamedColumns(nb::dict table) : table_(table) {}

  template <class T>
  const T* of(const char* name, size_t size) {
    auto column = nb::cast<Column<T>>(table_[name]);
    if (column.size() != size) throw nb::value_error("columns of different lengths");
    held_.push_back(std::make_shared<Column<T>>(column));
    return column.data();
  }

  template <class T>
  size_t size_of(const char* name) {
    return nb::cast<Column<T>>(table_[name]).size();
  }

 private:
  nb::dict table_;
  std::vector<std::shared_ptr<void>> held_;
};

inline AccessNodes access_nodes(NamedColumns& table) {
  size_t size = table.size_of<int32_t>("schema");
  auto text = [&](const char* name) { return table.of<int32_t>(name, size); };
  auto mask = [&](const char* name) { return table.of<bool>(name, size); };
  auto rows = [&](const char* name) { return table.of<int64_t>(name, size); };
  return {text("inputs"),     text("outputs"),   text("schema"), mask("acting"),
          mask("records"),    mask("receiving"), mask("generated"), mask("asking"),
          mask("launches"),   rows("position"),  rows("end"), rows("begun"),
          rows("last_begun"), size};
}

inline AccessOperators access_operators(NamedColumns& table) {
  size_t size = table.size_of<bool>("in_place"), all = table.size_of<bool>("reads");
  size_t arguments = size == 0 ? 1 : all / size;
  if (arguments == 0) throw nb::value_error("operators without arguments");
  return {table.of<bool>("reads", size * arguments), table.of<bool>("writes", size * arguments),
          table.of<bool>("in_place", size), table.of<bool>("allocates", size), size, arguments};
}

inline AccessTensors access_tensors(NamedColumns& table, size_t memories) {
  size_t size = table.size_of<int64_t>("memory"), devices = table.size_of<bool>("has_memory");
  size_t borders = table.size_of<int64_t>("offsets");
  if (borders == 0) throw nb::value_error("no offsets");
  auto rows = [&](const char* name) { return table.of<int64_t>(name, size); };
  return {table.of<int64_t>("offsets", borders), rows("argument"), rows("memory"), rows("begin"),
          rows("end"), rows("device"), table.of<bool>("has_memory", devices),
          table.of<bool>("on_host", devices), borders - 1, size, memories, devices};
}

template <class T, class Field>
nb::object field_of(const std::vector<Access>& found, Field&& field) {
  std::vector<T> column(found.size());
  for (size_t at = 0; at < found.size(); ++at) column[at] = static_cast<T>(field(found[at]));
  return array(std::move(column));
}

inline nb::object call_tree_of(Column<int64_t> caller, Column<int64_t> begun) {
  if (begun.size() != caller.size()) throw nb::value_error("columns of different lengths");
  CallTree tree;
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = tree.find(caller.data(), begun.data(), caller.size());
  }
  if (!sound) return nb::none();
  return nb::make_tuple(array(std::move(tree.position)), array(std::move(tree.end)),
                        array(std::move(tree.last_begun)));
}

inline nb::tuple find_accesses(nb::dict nodes, nb::dict operators, nb::dict tensors,
                               size_t memories, bool work_known) {
  NamedColumns of_nodes(nodes), of_operators(operators), of_tensors(tensors);
  AccessFinder finder(access_nodes(of_nodes), access_operators(of_operators),
                      access_tensors(of_tensors, memories), work_known);
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = finder.find();
  }
  if (!sound) throw nb::index_error();
  const auto& found = finder.found();
  using A = const Access&;
  return nb::make_tuple(field_of<int64_t>(found, [](A a) { return a.node; }),
                        field_of<int64_t>(found, [&](A a) { return finder.memory(a); }),
                        field_of<int64_t>(found, [&](A a) { return finder.begin(a); }),
                        field_of<int64_t>(found, [&](A a) { return finder.end(a); }),
                        field_of<uint8_t>(found, [](A a) { return a.writes; }),
                        field_of<uint8_t>(found, [](A a) { return a.renews; }),
                        field_of<uint8_t>(found, [](A a) { return a.told; }),
                        field_of<uint8_t>(found, [&](A a) { return finder.on_device(a); }));
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_ACCESSES_TO_PYTHON_HPP
