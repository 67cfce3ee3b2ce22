// The compiled kernel as a module of Python. What each function means, _native.pyi says.
#include <algorithm>
#include <utility>
#include <vector>

#include "accesses_to_python.hpp"
#include "edges_to_python.hpp"
#include "et_to_python.hpp"
#include "feeder_to_python.hpp"
#include "json_to_python.hpp"
#include "python.hpp"
#include "replay_to_python.hpp"
#include "sequences.hpp"
#include "tensors.hpp"
#include "timelines_to_python.hpp"
#include "words.hpp"

using namespace nb::literals;

namespace chakra_et {
namespace kernel {
namespace {

nb::object enclosing_of(Column<int64_t> lane, Column<int64_t> start, Column<int64_t> end,
                        Column<int64_t> order, int64_t last) {
  if (start.size() != lane.size() || end.size() != lane.size()) {
    throw nb::value_error("columns of different lengths");
  }
  std::vector<int64_t> parents;
  Intervals intervals{lane.data(), start.data(), end.data(), lane.size()};
  if (!enclosing(intervals, order.data(), order.size(), last, parents)) throw nb::index_error();
  return array(std::move(parents));
}

nb::tuple shortest_edit(Column<int64_t> left, Column<int64_t> right, int64_t most) {
  Runs runs = ShortestEdit(left.data(), static_cast<int64_t>(left.size()), right.data(),
                           static_cast<int64_t>(right.size()))
                  .find(most);
  return nb::make_tuple(array(std::move(runs.left)), array(std::move(runs.right)),
                        array(std::move(runs.size)));
}

nb::object tensors_of(const std::vector<std::string_view>& texts) {
  TensorFinder found;
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = found.read(texts);
  }
  if (!sound) return nb::none();
  return nb::make_tuple(array(std::move(found.text)), array(std::move(found.argument)),
                        array(std::move(found.storage)), array(std::move(found.offset)),
                        array(std::move(found.count)), array(std::move(found.size)),
                        array(std::move(found.device)));
}

nb::object find_tensors(nb::list texts) {
  std::vector<std::string_view> given;
  for (nb::handle text : texts) given.push_back(raw(text));
  return tensors_of(given);
}

// The distinct parts between offsets, in order of first use, and the code of each part.
nb::tuple distinct_parts(Column<uint8_t> bytes, Column<int64_t> offsets) {
  TextPool pool;
  std::vector<int32_t> codes;
  for (std::string_view part : texts_between(bytes, offsets)) codes.push_back(pool[part]);
  return nb::make_tuple(array(std::move(codes)), list_of(pool.values(), bytes_of));
}

// Those of some rows whose texts hold any of some words; empty ones hold none.
nb::object containing(nb::list texts, Column<int64_t> rows, nb::sequence words) {
  std::vector<std::string_view> given, wanted;
  std::vector<int64_t> found;
  for (nb::handle word : words) wanted.push_back(utf8(word));
  for (size_t place = 0; place < rows.size(); ++place) {
    PyObject* text = PyList_GetItem(texts.ptr(), static_cast<Py_ssize_t>(rows(place)));
    if (text == nullptr) throw nb::python_error();
    std::string_view chars = utf8(text);
    if (chars.empty()) continue;
    given.push_back(chars);
    found.push_back(rows(place));
  }
  {
    nb::gil_scoped_release release;
    size_t kept = 0;
    for (size_t place = 0; place < given.size(); ++place) {
      bool any = std::any_of(wanted.begin(), wanted.end(), [&](std::string_view word) {
        return holds(given[place], word);
      });
      if (any) found[kept++] = found[place];
    }
    found.resize(kept);
  }
  return array(std::move(found));
}

nb::object find_tensors_at(Column<uint8_t> characters, Column<int64_t> offsets,
                           Column<int32_t> codes) {
  return tensors_of(taken(texts_between(characters, offsets), codes));
}

}  // namespace
}  // namespace kernel
}  // namespace chakra_et

NB_MODULE(_native, m) {
  using namespace chakra_et::kernel;
  m.attr("INTERFACE") = CHAKRA_ET_INTERFACE;
  m.attr("SIMD") = simdjson::get_active_implementation()->name();
  nb::class_<HostReader>(m, "HostReader")
      .def(nb::init<>())
      .def("read", &HostReader::read, "text"_a, "size"_a)
      .def("take", &HostReader::take);
  nb::class_<ProfileReader>(m, "ProfileReader")
      .def(nb::init<nb::dict, nb::object, nb::dict, int, int, nb::object, nb::object>(),
           "roles"_a, "left_out"_a, "arrows"_a, "op_role"_a, "no_role"_a, "kept_roles"_a,
           "tells"_a)
      .def("read", &ProfileReader::read, "text"_a, "size"_a)
      .def("take", &ProfileReader::take);
  nb::class_<NodeWriter>(m, "NodeWriter")
      .def(nb::init<nb::list, nb::object, nb::list, nb::list>(), "names"_a, "texts"_a, "layouts"_a,
           "tags"_a)
      .def("take", &NodeWriter::take, "columns"_a, "attributes"_a, "last"_a, "extra"_a)
      .def("write", &NodeWriter::write, "first"_a, "last"_a);
  m.def("enclosing", &enclosing_of, "lane"_a, "start"_a, "end"_a, "order"_a, "last"_a);
  m.def("shortest_edit", &shortest_edit, "left"_a, "right"_a, "most"_a);
  m.def("search_rows", &search_rows, "ordered"_a, "wanted"_a, "right"_a);
  m.def("moments", &moments_of, "order"_a, "table"_a, "gap"_a);
  m.def("owned_parts", &owned_parts_of, "pieces"_a, "rows"_a, "lane"_a, "begin"_a, "end"_a);
  m.def("latest", &latest_of, "lane"_a, "values"_a, "limits"_a);
  m.def("edges_in_rows", &edges_in_rows_of, "target"_a, "source"_a, "other"_a, "lesser"_a,
        "nodes"_a);
  m.def("chains", &chains_of, "nodes"_a, "source"_a, "target"_a, "in_order"_a);
  m.def("say_parts", &say_parts, "ids"_a, "gaps"_a, "ns"_a, "borders"_a);
  m.def("call_tree", &call_tree_of, "caller"_a, "begun"_a);
  m.def("find_accesses", &find_accesses, "nodes"_a, "operators"_a, "tensors"_a, "memories"_a,
        "work_known"_a);
  m.def("find_tensors", &find_tensors, "texts"_a);
  m.def("distinct_parts", &distinct_parts, "bytes"_a, "offsets"_a);
  m.def("containing", &containing, "texts"_a, "rows"_a, "words"_a);
  m.def("find_tensors_at", &find_tensors_at, "characters"_a, "offsets"_a, "codes"_a);
  m.def("read_nodes", &read_nodes, "data"_a, "first"_a, "piece"_a, "nodes"_a, "sources"_a,
        "operands"_a, "wire_types"_a);
  m.def("texts_at", &texts_at, "data"_a, "starts"_a, "lengths"_a, "kind"_a);
  m.def("pass_short", &pass_short_records, "data"_a, "at"_a);
  m.def("replay", &replay, "plan"_a);
  m.def("replay_resolving", &replay_resolving, "plan"_a, "waiting"_a, "many"_a);
  m.def("feeder_columns", &feeder_columns, "data"_a, "first"_a, "max_record"_a, "told"_a,
        "edge_kinds"_a, "edge_kinds_flag"_a, "odd_flag"_a);
}
