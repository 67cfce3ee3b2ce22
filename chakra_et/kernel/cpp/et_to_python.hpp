// The reader and the writer of ETs as Python knows them.
#ifndef CHAKRA_ET_KERNEL_ET_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_ET_TO_PYTHON_HPP

#include <algorithm>
#include <array>
#include <chakra_et/records.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "et_reader.hpp"
#include "python.hpp"

namespace chakra_et {
namespace kernel {

using namespace records;

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

// Writes the nodes of a trace, some after the other: it looks at the columns of these alone.
class NodeWriter {
 public:
  NodeWriter(nb::list names, nb::object texts, nb::list layouts, nb::list tags)
      : kept_(nb::make_tuple(names, texts, tags)) {
    for (nb::handle name : names) nodes_.names.push_back(utf8(name));
    if (nb::isinstance<nb::dict>(texts)) {
      take_packed(texts);
    } else {
      for (nb::handle entry : texts) {
        for (nb::handle text : entry) nodes_.texts.push_back(raw(text));
        nodes_.text_offsets.push_back(nodes_.texts.size());
      }
    }
    for (nb::handle layout : layouts) nodes_.layouts.push_back(numbers(layout));
    take_tags(tags);
  }

  // Have some nodes written next. Their rows count from 0, in attributes as well.
  void take(nb::dict columns, nb::list attributes, nb::list last, nb::list extra) {
    writer_.reset();
    nodes_.attributes.clear();
    nodes_.extra.clear();
    some_ = nb::make_tuple(columns, attributes, extra);
    take_columns(columns);
    for (nb::handle attribute : attributes) nodes_.attributes.push_back(attribute_of(attribute));
    nodes_.last = numbers(last);
    if (nodes_.attributes.size() < numbered_) throw nb::index_error();
    for (nb::handle entry : extra) {
      nodes_.extra.emplace_back(nb::cast<int64_t>(entry[0]), raw(entry[1]));
    }
    writer_.emplace(nodes_, tags_);
  }

  nb::object write(size_t first, size_t last) {
    if (!writer_ || last > nodes_.id.size || first > last) throw nb::index_error();
    out_.clear();
    bool fits;
    {
      nb::gil_scoped_release release;
      fits = writer_->write(first, last, out_);
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
    if (!nodes_.fit()) {
      throw nb::value_error("the columns of a trace do not fit together");
    }
  }

  // The columns of `PackedTexts`.
  void take_packed(nb::handle texts) {
    using Texts = std::vector<std::string_view>;
    Texts values = texts_between(nb::cast<Column<uint8_t>>(texts["values"], false),
                                 nb::cast<Column<int64_t>>(texts["offsets"], false));
    std::array<Texts, 3> of_codes = {taken_by(values, texts["value"]),
                                     taken_by(raw_texts(texts["shapes"]), texts["shape"]),
                                     taken_by(raw_texts(texts["types"]), texts["type"])};
    for (const Texts& column : of_codes) {
      if (column.size() != of_codes[0].size()) throw nb::value_error("columns of texts");
    }
    for (size_t code = 0; code < of_codes[0].size(); ++code) {
      for (const Texts& texts_of : of_codes) nodes_.texts.push_back(texts_of[code]);
      nodes_.text_offsets.push_back(nodes_.texts.size());
    }
  }

  static std::vector<std::string_view> raw_texts(nb::handle texts) {
    std::vector<std::string_view> out;
    for (nb::handle text : texts) out.push_back(raw(text));
    return out;
  }

  static std::vector<std::string_view> taken_by(const std::vector<std::string_view>& texts,
                                                nb::handle codes) {
    return taken(texts, nb::cast<Column<int32_t>>(codes, false));
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
    } else if (nb::isinstance<nb::tuple>(values)) {
      take_coded(values, out);
    } else {
      out.numbers = view<uint64_t>(values);
      if (out.numbers.size != out.rows.size) throw nb::value_error("an attribute's values");
      out.is_number = true;
    }
    return out;
  }

  static void take_coded(nb::handle given, Attribute& out) {
    out.codes = view<int32_t>(given[0]);
    out.is_coded = true;
    for (nb::handle text : given[1]) out.texts.push_back(utf8(text));
    bool fit = out.codes.size == out.rows.size;
    for (size_t at = 0; fit && at < out.codes.size; ++at) {
      fit = static_cast<size_t>(out.codes.data[at]) < out.texts.size();
    }
    if (!fit) throw nb::value_error("an attribute's values");
  }

  // Numbers of attributes, of which there must be so many then.
  std::vector<uint32_t> numbers(nb::handle given) {
    std::vector<uint32_t> out;
    for (nb::handle number : given) {
      out.push_back(nb::cast<uint32_t>(number));
      numbered_ = std::max(numbered_, size_t{out.back()} + 1);
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

  nb::object kept_, some_;  // what the views look at
  Nodes nodes_;
  Tags tags_;
  size_t numbered_ = 0;
  std::optional<EtRecords> writer_;
  Bytes out_;
};

inline EtTags et_tags(nb::list nodes, nb::list sources, nb::list operands, nb::list wire_types) {
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

// UTF-8; bytes that are none become lone surrogates.
inline nb::object text_of(std::string_view text) {
  nb::object out = nb::steal(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

// The texts in the message of a list; nothing where it holds anything else.
inline nb::object texts_of(std::string_view list) {
  std::vector<std::string_view> texts;
  if (!take_texts(list, texts)) return nb::object();
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(texts.size())));
  if (!out.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < texts.size(); ++i) {
    PyTuple_SetItem(out.ptr(), static_cast<Py_ssize_t>(i), text_of(texts[i]).release().ptr());
  }
  // Texts hold nothing, so no collection of garbage need look at millions of tuples of them.
  PyObject_GC_UnTrack(out.ptr());
  return out;
}

// The distinct values of an attribute: texts and lists of texts as such, all else as bytes.
// Nothing where one of them is damaged.
inline nb::object contents_of(const EtColumn& column) {
  nb::list out;
  auto kind = static_cast<chakra_et::Kind>(column.key.kind);
  for (std::string_view content : column.contents.values()) {
    nb::object value = kind == chakra_et::Kind::string        ? text_of(content)
                       : kind == chakra_et::Kind::string_list ? texts_of(content)
                                                   : bytes_of(content);
    if (!value.is_valid()) return nb::object();
    out.append(std::move(value));
  }
  return out;
}

// Where the texts of a column stand that are apart.
inline nb::object places_of(const EtColumn& column, std::string_view data) {
  std::vector<int64_t> starts;
  std::vector<int32_t> lengths;
  for (std::string_view text : column.apart) {
    starts.push_back(text.data() - data.data());
    lengths.push_back(static_cast<int32_t>(text.size()));
  }
  return nb::make_tuple(array(std::move(starts)), array(std::move(lengths)));
}

// Codes and contents of the texts, or lists of them, at places that `read_nodes` told.
inline nb::object texts_at(nb::bytes data, Column<int64_t> starts, Column<int32_t> lengths,
                           uint32_t kind) {
  std::string_view all = raw(data);
  if (starts.size() != lengths.size()) throw nb::value_error("columns of different lengths");
  EtColumn column;
  column.key.kind = kind;
  for (size_t i = 0; i < starts.size(); ++i) {
    auto start = static_cast<size_t>(starts.data()[i]);
    auto length = static_cast<size_t>(lengths.data()[i]);
    if (start > all.size() || length > all.size() - start) throw nb::index_error();
    column.codes.push_back(column.contents[all.substr(start, length)]);
  }
  nb::object contents = contents_of(column);
  if (!contents.is_valid()) throw nb::value_error("a text that is none");
  return nb::make_tuple(array(std::move(column.codes)), contents);
}

inline nb::object column_of(EtColumn& column, std::string_view data) {
  nb::object contents = column.apart.empty() ? contents_of(column) : places_of(column, data);
  if (!contents.is_valid()) return nb::object();
  return nb::make_tuple(bytes_of(column.key.name), column.key.kind, array(std::move(column.rows)),
                        array(std::move(column.numbers)), array(std::move(column.codes)),
                        contents);
}

inline nb::object read_nodes(nb::bytes data, size_t first, size_t piece, nb::list nodes,
                             nb::list sources, nb::list operands, nb::list wire_types) {
  EtTags tags = et_tags(nodes, sources, operands, wire_types);
  EtReader found(tags, raw(data), piece);
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
  for (EtColumn& column : found.columns) {
    nb::object told = column_of(column, raw(data));
    if (!told.is_valid()) return nb::none();
    columns.append(std::move(told));
  }
  for (const auto& layout : found.layouts) {
    layouts.append(nb::tuple(list_of(layout, [](int32_t n) { return nb::int_(n); })));
  }
  for (const auto& [row, field] : found.unknown) {
    unknown.append(nb::make_tuple(row, bytes_of(field)));
  }
  return nb::make_tuple(out, list_of(found.names.values(), bytes_of), texts,
                        array(std::move(found.layout)), layouts, columns, unknown);
}

inline nb::tuple pass_short_records(nb::bytes data, size_t at) {
  size_t count = pass_short(raw(data), at);
  return nb::make_tuple(count, at);
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_ET_TO_PYTHON_HPP
