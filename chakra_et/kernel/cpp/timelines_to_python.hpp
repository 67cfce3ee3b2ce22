// Columns of timelines from Python, and what is found in them.
#ifndef CHAKRA_ET_KERNEL_TIMELINES_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_TIMELINES_TO_PYTHON_HPP

#include "python.hpp"
#include "timelines.hpp"

namespace chakra_et {
namespace kernel {

using Numbers = Column<int64_t>;

// Columns of one length, which `kept` holds while the table is in use.
inline RowTable rows_of(const nb::tuple& columns, std::vector<Numbers>& kept) {
  RowTable table;
  for (nb::handle column : columns) {
    kept.push_back(nb::cast<Numbers>(column));
    if (!table.columns.empty() && kept.back().size() != table.size) {
      throw nb::value_error("columns of different lengths");
    }
    table.columns.push_back(kept.back().data());
    table.size = kept.back().size();
  }
  return table;
}

inline nb::object search_rows(nb::tuple ordered, nb::tuple wanted, bool right) {
  std::vector<Numbers> kept;
  RowTable table = rows_of(ordered, kept), others = rows_of(wanted, kept);
  if (table.columns.size() != others.columns.size()) throw nb::value_error("different columns");
  std::vector<int64_t> found(others.size);
  {
    nb::gil_scoped_release release;
    RowSearch search(table);
    for (size_t row = 0; row < others.size; ++row) {
      found[row] = static_cast<int64_t>(search.before(others, row, right));
    }
  }
  return array(std::move(found));
}

inline nb::tuple moments_of(Numbers order, nb::tuple table, int64_t gap) {
  std::vector<Numbers> kept;
  RowTable rows = rows_of(table, kept);
  if (rows.columns.size() != 4) throw nb::value_error("a table has four columns");
  Activities all{rows.columns[0], rows.columns[1], rows.columns[2], rows.columns[3], rows.size};
  Moments found;
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = moments(all, order.data(), order.size(), gap, found);
  }
  if (!sound) throw nb::index_error();
  return nb::make_tuple(array(std::move(found.lane)), array(std::move(found.begin)),
                        array(std::move(found.owner)));
}

inline nb::tuple owned_parts_of(nb::tuple pieces, Numbers rows, Numbers lane, Numbers begin,
                                Numbers end) {
  std::vector<Numbers> kept;
  RowTable table = rows_of(pieces, kept);
  if (table.columns.size() != 3) throw nb::value_error("pieces have three columns");
  const int64_t* owner = table.columns.back();
  table.columns.pop_back();
  size_t count = rows.size();
  if (lane.size() != count || begin.size() != count || end.size() != count) {
    throw nb::value_error("columns of different lengths");
  }
  Parts found;
  {
    nb::gil_scoped_release release;
    found = owned_parts(table, owner, rows.data(), {{lane.data(), begin.data()}, count},
                        {{lane.data(), end.data()}, count});
  }
  return nb::make_tuple(array(std::move(found.node)), array(std::move(found.owner)),
                        array(std::move(found.ns)));
}

inline nb::object latest_of(Numbers lane, Numbers values, Numbers limits) {
  if (values.size() != lane.size() || limits.size() != lane.size()) {
    throw nb::value_error("columns of different lengths");
  }
  std::vector<int64_t> found;
  bool sound;
  {
    nb::gil_scoped_release release;
    sound = latest(lane.data(), values.data(), limits.data(), lane.size(), found);
  }
  if (!sound) return nb::none();
  return array(std::move(found));
}

inline nb::object say_parts(Column<uint64_t> ids, Column<bool> gaps, Numbers ns, Numbers borders) {
  if (gaps.size() != ids.size() || ns.size() != ids.size()) {
    throw nb::value_error("columns of different lengths");
  }
  std::string text;
  for (size_t node = 0; node + 1 < borders.size(); ++node) {
    int64_t begin = borders.data()[node], end = borders.data()[node + 1];
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > ids.size()) {
      throw nb::index_error();
    }
    for (int64_t part = begin; part < end; ++part) {
      if (part > begin) text += ' ';
      say_part(gaps.data()[part], ids.data()[part], ns.data()[part], text);
    }
    text += '\n';
  }
  return bytes_of(text);
}

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_TIMELINES_TO_PYTHON_HPP
