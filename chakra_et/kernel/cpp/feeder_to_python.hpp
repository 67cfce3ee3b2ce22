// The columns of a feeder, for Python.
#ifndef CHAKRA_ET_KERNEL_FEEDER_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_FEEDER_TO_PYTHON_HPP

#include "feeder_columns.hpp"
#include "python.hpp"

namespace chakra_et {
namespace kernel {

inline FeederMarks feeder_marks(nb::list told, nb::bytes edge_kinds, int edge_kinds_flag,
                                int odd_flag) {
  FeederMarks marks;
  if (told.size() != marks.told.size()) throw nb::value_error("three attributes are told");
  for (size_t k = 0; k < marks.told.size(); ++k) {
    marks.told[k] = {std::string(raw(told[k][0])), nb::cast<uint8_t>(told[k][1]),
                     nb::cast<uint8_t>(told[k][2])};
  }
  marks.edge_kinds = std::string(raw(edge_kinds));
  marks.edge_kinds_flag = static_cast<uint8_t>(edge_kinds_flag);
  marks.odd_flag = static_cast<uint8_t>(odd_flag);
  return marks;
}

inline nb::object feeder_columns(Column<uint8_t> data, size_t first, uint64_t max_record,
                                 nb::list told, nb::bytes edge_kinds, int edge_kinds_flag,
                                 int odd_flag) {
  FeederMarks marks = feeder_marks(told, edge_kinds, edge_kinds_flag, odd_flag);
  FeederColumns found(marks);
  std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  bool usual;
  {
    nb::gil_scoped_release release;
    usual = first <= text.size() && found.read(text, first, max_record);
  }
  if (!usual) return nb::none();
  nb::dict out;
  out["begin"] = array(std::move(found.begin));
  out["end"] = array(std::move(found.end));
  out["id"] = array(std::move(found.id));
  out["type"] = array(std::move(found.type));
  out["start_micros"] = array(std::move(found.start_us));
  out["duration_micros"] = array(std::move(found.duration_us));
  out["flags"] = array(std::move(found.flags));
  out["edge_target"] = array(std::move(found.edge_target));
  out["edge_source"] = array(std::move(found.edge_source));
  out["edge_control"] = array(std::move(found.edge_control));
  nb::list exact;
  for (auto& column : found.exact) exact.append(array(std::move(column)));
  return nb::make_tuple(out, exact, found.fields);
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_FEEDER_TO_PYTHON_HPP
