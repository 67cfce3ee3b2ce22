// The compiled kernel as a module of Python. What each function means, _native.pyi says.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "et_reader.hpp"
#include "et_records.hpp"
#include "host_nodes.hpp"
#include "profile_records.hpp"
#include "sequences.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace chakra_et {
namespace kernel {
namespace {

template <class T>
nb::object array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  kept->reserve(1);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  size_t size = kept->size();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {size}, owner));
}

nb::object bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

nb::object str_of(std::string_view text) { return nb::str(text.data(), text.size()); }

template <class Texts, class Make>
nb::list list_of(const Texts& texts, Make&& make) {
  nb::list out;
  for (const auto& text : texts) out.append(make(text));
  return out;
}

// A piece of text where simdjson may read beyond its end; it and the parser are used again.
class Piece {
 public:
  simdjson::padded_string_view take(std::string_view text) {
    size_t wanted = text.size() + simdjson::SIMDJSON_PADDING;
    if (data_.size() < wanted) data_.resize(wanted);
    std::memcpy(data_.data(), text.data(), text.size());
    std::memset(data_.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    return simdjson::padded_string_view(data_.data(), text.size(), data_.size());
  }
  od::parser parser;

 private:
  std::vector<char> data_;
};

std::string_view view_of(nb::bytes text) { return {text.c_str(), text.size()}; }

class HostReader {
 public:
  nb::object read(nb::bytes text) {
    HostNodes nodes;
    std::string_view given = view_of(text);
    bool sound;
    {
      nb::gil_scoped_release release;
      sound = nodes.read(piece_.parser, piece_.take(given));
    }
    if (!sound) return nb::none();
    nb::dict out;
    out["id"] = array(std::move(nodes.id));
    out["parent"] = array(std::move(nodes.parent));
    for (size_t k = 0; k < core_numbers.size(); ++k) {
      out[str_of(core_numbers[k].name)] = array(std::move(nodes.numbers[k]));
    }
    out["name"] = array(std::move(nodes.name));
    out["op_schema"] = array(std::move(nodes.schema));
    out["inputs"] = array(std::move(nodes.inputs));
    out["outputs"] = array(std::move(nodes.outputs));
    nb::list told;
    for (Told& part : nodes.told) told.append(told_of(part));
    return nb::make_tuple(out, list_of(nodes.names.values(), str_of),
                          list_of(nodes.schemas.values(), str_of),
                          list_of(nodes.operands.values(), joined), told);
  }

 private:
  static nb::object joined(const Operands& operands) {
    size_t size = operands.texts.size() - 1;
    for (std::string_view text : operands.texts) size += text.size();
    nb::object out = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!out.is_valid()) throw nb::python_error();
    char* p = PyBytes_AsString(out.ptr());
    for (size_t k = 0; k < operands.texts.size(); ++k) {
      if (k > 0) *p++ = '\0';
      std::memcpy(p, operands.texts[k].data(), operands.texts[k].size());
      p += operands.texts[k].size();
    }
    return out;
  }

  static nb::object told_of(Told& part) {
    nb::list values;
    for (const Value& value : part.values) {
      if (value.kind == Value::text) {
        values.append(str_of(value.characters));
      } else if (value.kind == Value::signed_number) {
        values.append(nb::int_(static_cast<int64_t>(value.bits)));
      } else {
        values.append(nb::int_(value.bits));
      }
    }
    return nb::make_tuple(str_of(part.name), str_of(part.type), array(std::move(part.rows)),
                          values);
  }

  Piece piece_;
};

class ProfileReader {
 public:
  ProfileReader(nb::dict roles, nb::object left_out, nb::dict arrows, int op_role, int no_role) {
    meanings_.no_role = static_cast<uint8_t>(no_role);
    meanings_.op_role = static_cast<uint8_t>(op_role);
    for (auto [category, role] : roles) of(category).role = nb::cast<uint8_t>(role);
    for (nb::handle category : left_out) of(category).left_out = true;
    for (auto [category, least] : arrows) {
      of(category).is_arrow = true;
      of(category).least_arrow = nb::cast<int64_t>(least);
    }
  }

  nb::object read(nb::bytes text) {
    records_ = std::make_unique<ProfileRecords>(meanings_);
    std::string_view given = view_of(text);
    bool sound;
    {
      nb::gil_scoped_release release;
      sound = records_->read(piece_.parser, piece_.take(given));
    }
    if (!sound) return nb::none();
    ProfileRecords& found = *records_;
    nb::dict out;
    out["role"] = array(std::move(found.role));
    out["category"] = array(std::move(found.category));
    out["name"] = array(std::move(found.name));
    out["shapes"] = array(std::move(found.shapes));
    out["pid"] = array(std::move(found.pid));
    out["tid"] = array(std::move(found.tid));
    out["start_ns"] = array(std::move(found.start_ns));
    out["duration_ns"] = array(std::move(found.duration_ns));
    nb::list numbers;
    for (auto& column : found.numbers) numbers.append(array(std::move(column)));
    nb::list kinds;
    for (size_t i = 0; i < found.kind_counts.size(); ++i) {
      const auto& [category, phase] = found.kinds.values()[i];
      kinds.append(nb::make_tuple(str_of(category), str_of(phase), found.kind_counts[i]));
    }
    return nb::make_tuple(out, numbers, list_of(found.categories.values(), str_of),
                          list_of(found.names.values(), str_of),
                          list_of(found.shape_texts.values(), bytes_of), kinds,
                          list_of(found.arrow_categories.values(), str_of), arrows_of(found),
                          bytes_of(found.others));
  }

  nb::list args(nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig> wanted) const {
    nb::list out;
    nb::object nothing = nb::bytes("", 0);
    for (size_t row = 0; records_ && row < records_->args.size() && row < wanted.size(); ++row) {
      out.append(wanted.data()[row] ? bytes_of(records_->args[row]) : nothing);
    }
    return out;
  }

 private:
  Categories::Meaning& of(nb::handle category) {
    auto& found = meanings_.known[nb::cast<std::string>(category)];
    return found;
  }

  static nb::list arrows_of(ProfileRecords& found) {
    nb::list out;
    for (auto& ends : found.arrows) {
      out.append(nb::make_tuple(array(std::move(ends.category)), array(std::move(ends.pid)),
                                array(std::move(ends.tid)), array(std::move(ends.id)),
                                array(std::move(ends.time_ns))));
    }
    return out;
  }

  Categories meanings_;
  Piece piece_;
  std::unique_ptr<ProfileRecords> records_;
};

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig>;

// What an array holds, which must live on: so an array of another type, which would be copied, is
// refused.
template <class T>
View<T> view(nb::handle array) {
  auto found = nb::cast<Column<T>>(array, false);
  return {found.data(), found.size()};
}

template <class T>
View<T> column(nb::handle columns, const char* name) {
  return view<T>(columns[name]);
}

std::string_view utf8(nb::handle text) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

std::string_view raw(nb::handle bytes) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

class NodeWriter {
 public:
  NodeWriter(nb::dict columns, nb::list names, nb::object texts, nb::list layouts,
             nb::list attributes, nb::list last, nb::list extra, nb::list tags)
      : kept_(nb::make_tuple(columns, names, texts, attributes, extra, tags)),
        writer_(nodes_, tags_) {
    take_columns(columns);
    for (nb::handle name : names) nodes_.names.push_back(utf8(name));
    for (nb::handle entry : texts) {
      for (nb::handle text : entry) nodes_.texts.push_back(raw(text));
      nodes_.text_offsets.push_back(nodes_.texts.size());
    }
    for (nb::handle attribute : attributes) nodes_.attributes.push_back(attribute_of(attribute));
    for (nb::handle layout : layouts) nodes_.layouts.push_back(numbers(layout));
    nodes_.last = numbers(last);
    for (nb::handle entry : extra) {
      nodes_.extra.emplace_back(nb::cast<int64_t>(entry[0]), raw(entry[1]));
    }
    take_tags(tags);
  }

  nb::object write(size_t first, size_t last) {
    if (last > nodes_.id.size || first > last) throw nb::index_error();
    out_.clear();
    bool fits;
    {
      nb::gil_scoped_release release;
      fits = writer_.write(first, last, out_);
    }
    if (!fits) throw nb::value_error("the columns of a trace do not fit together");
    return bytes_of(out_.view());
  }

 private:
  void take_columns(nb::handle columns) {
    nodes_.id = column<uint64_t>(columns, "id");
    nodes_.start_us = column<uint64_t>(columns, "start_us");
    nodes_.duration_us = column<uint64_t>(columns, "duration_us");
    nodes_.name = column<int32_t>(columns, "name");
    nodes_.type = column<int32_t>(columns, "type");
    nodes_.inputs = column<int32_t>(columns, "inputs");
    nodes_.outputs = column<int32_t>(columns, "outputs");
    nodes_.layout = column<int32_t>(columns, "layout");
    nodes_.offsets = column<int64_t>(columns, "offsets");
    nodes_.source = column<uint64_t>(columns, "source");
    nodes_.is_call = column<uint8_t>(columns, "is_call");
    size_t count = nodes_.id.size;
    size_t edges = std::min(nodes_.source.size, nodes_.is_call.size);
    bool fits = nodes_.offsets.size == count + 1 && nodes_.offsets.data[0] >= 0;
    for (size_t size : {nodes_.start_us.size, nodes_.duration_us.size, nodes_.name.size,
                        nodes_.type.size, nodes_.inputs.size, nodes_.outputs.size,
                        nodes_.layout.size}) {
      fits = fits && size == count;
    }
    for (size_t row = 0; fits && row < count; ++row) {
      fits = nodes_.offsets.data[row] <= nodes_.offsets.data[row + 1];
    }
    if (!fits || static_cast<size_t>(nodes_.offsets.data[count]) > edges) {
      throw nb::value_error("the columns of a trace do not fit together");
    }
  }

  static Attribute attribute_of(nb::handle given) {
    Attribute out;
    out.rows = view<int64_t>(given[0]);
    out.is_whole = given[1].is_none();
    if (!out.is_whole) out.before = raw(given[1]);
    nb::handle values = given[2];
    if (nb::isinstance<nb::list>(values)) {
      for (nb::handle value : values) out.texts.push_back(out.is_whole ? raw(value) : utf8(value));
      if (out.texts.size() != out.rows.size) throw nb::value_error("an attribute's values");
    } else {
      out.numbers = view<uint64_t>(values);
      if (out.numbers.size != out.rows.size) throw nb::value_error("an attribute's values");
      out.is_number = true;
    }
    return out;
  }

  std::vector<uint32_t> numbers(nb::handle given) const {
    std::vector<uint32_t> out;
    for (nb::handle number : given) {
      out.push_back(nb::cast<uint32_t>(number));
      if (out.back() >= nodes_.attributes.size()) throw nb::index_error();
    }
    return out;
  }

  void take_tags(nb::handle tags) {
    std::string_view* order[] = {&tags_.id,       &tags_.name,  &tags_.type,     &tags_.ctrl_deps,
                                 &tags_.data_deps, &tags_.start, &tags_.duration, &tags_.inputs,
                                 &tags_.outputs,  &tags_.operands[0], &tags_.operands[1],
                                 &tags_.operands[2], &tags_.attribute};
    size_t at = 0;
    for (std::string_view* tag : order) *tag = raw(tags[at++]);
  }

  nb::object kept_;  // what the views look at
  Nodes nodes_;
  Tags tags_;
  EtRecords writer_;
  Bytes out_;
};

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

EtTags et_tags(nb::list nodes, nb::list sources, nb::list operands, nb::list wire_types) {
  EtTags tags;
  uint8_t* order[] = {&tags.id,       &tags.name,   &tags.type,    &tags.start,
                      &tags.duration, &tags.inputs, &tags.outputs, &tags.attribute};
  size_t at = 0;
  for (uint8_t* tag : order) *tag = nb::cast<uint8_t>(nodes[at++]);
  for (size_t i = 0; i < tags.sources.size(); ++i) tags.sources[i] = nb::cast<uint8_t>(sources[i]);
  for (size_t i = 0; i < tags.operands.size(); ++i) {
    tags.operands[i] = nb::cast<uint8_t>(operands[i]);
  }
  for (nb::handle wire_type : wire_types) tags.wire_types.push_back(nb::cast<int>(wire_type));
  return tags;
}

nb::tuple column_of(EtColumn& column) {
  return nb::make_tuple(bytes_of(column.key.name), column.key.kind, array(std::move(column.rows)),
                        array(std::move(column.numbers)), array(std::move(column.codes)),
                        list_of(column.contents.values(), bytes_of));
}

nb::object read_nodes(nb::bytes data, size_t first, size_t piece, nb::list nodes, nb::list sources,
                      nb::list operands, nb::list wire_types) {
  EtTags tags = et_tags(nodes, sources, operands, wire_types);
  EtReader found(tags, view_of(data), piece);
  bool usual;
  {
    nb::gil_scoped_release release;
    usual = first <= data.size() && found.read(first);
  }
  if (!usual) return nb::none();
  nb::dict out;
  out["at"] = array(std::move(found.at));
  out["id"] = array(std::move(found.id));
  out["type"] = array(std::move(found.type));
  out["start_micros"] = array(std::move(found.start_us));
  out["duration_micros"] = array(std::move(found.duration_us));
  out["name"] = array(std::move(found.name));
  out["inputs"] = array(std::move(found.inputs));
  out["outputs"] = array(std::move(found.outputs));
  out["ctrl_count"] = array(std::move(found.ctrl_count));
  out["data_count"] = array(std::move(found.data_count));
  out["sources"] = array(std::move(found.sources));
  nb::list texts, columns, layouts, unknown;
  for (size_t k = 0; k < tags.operands.size(); ++k) {
    texts.append(list_of(found.operands, [k](const auto& text) { return bytes_of(text[k]); }));
  }
  for (EtColumn& column : found.columns) columns.append(column_of(column));
  for (const auto& layout : found.layouts) {
    layouts.append(nb::tuple(list_of(layout, [](int32_t n) { return nb::int_(n); })));
  }
  for (const auto& [row, field] : found.unknown) {
    unknown.append(nb::make_tuple(row, bytes_of(field)));
  }
  return nb::make_tuple(out, list_of(found.names.values(), bytes_of), texts,
                        array(std::move(found.layout)), layouts, columns, unknown);
}

}  // namespace
}  // namespace kernel
}  // namespace chakra_et

NB_MODULE(_native, m) {
  using namespace chakra_et::kernel;
  m.attr("INTERFACE") = CHAKRA_ET_INTERFACE;
  m.attr("SIMD") = simdjson::get_active_implementation()->name();
  nb::class_<HostReader>(m, "HostReader").def(nb::init<>()).def("read", &HostReader::read, "text"_a);
  nb::class_<ProfileReader>(m, "ProfileReader")
      .def(nb::init<nb::dict, nb::object, nb::dict, int, int>(), "roles"_a, "left_out"_a,
           "arrows"_a, "op_role"_a, "no_role"_a)
      .def("read", &ProfileReader::read, "text"_a)
      .def("args", &ProfileReader::args, "wanted"_a);
  nb::class_<NodeWriter>(m, "NodeWriter")
      .def(nb::init<nb::dict, nb::list, nb::object, nb::list, nb::list, nb::list, nb::list,
                    nb::list>(),
           "columns"_a, "names"_a, "texts"_a, "layouts"_a, "attributes"_a, "last"_a, "extra"_a,
           "tags"_a)
      .def("write", &NodeWriter::write, "first"_a, "last"_a);
  m.def("enclosing", &enclosing_of, "lane"_a, "start"_a, "end"_a, "order"_a, "last"_a);
  m.def("shortest_edit", &shortest_edit, "left"_a, "right"_a, "most"_a);
  m.def("read_nodes", &read_nodes, "data"_a, "first"_a, "piece"_a, "nodes"_a, "sources"_a,
        "operands"_a, "wire_types"_a);
}
