// The readers of JSON as Python knows them.
#ifndef CHAKRA_ET_KERNEL_JSON_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_JSON_TO_PYTHON_HPP

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host_nodes.hpp"
#include "profile_records.hpp"
#include "profile_table.hpp"
#include "python.hpp"

namespace chakra_et {
namespace kernel {

using Text = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig>;

// `count` bytes of elements, with more text and zeros behind them.
inline void begin(Piece& piece, const Text& text, size_t count) {
  if (!piece.take(reinterpret_cast<const char*>(text.data()), text.size(), count)) {
    throw nb::value_error("a text without zeros behind it");
  }
}

class HostReader {
 public:
  // How many nodes were read; nothing for a piece that is not as usual.
  nb::object read(Text text, size_t size) {
    begin(piece_, text, size);
    int64_t count;
    {
      nb::gil_scoped_release release;
      count = nodes_.read(piece_, table_);
    }
    return count < 0 ? nb::none() : nb::object(nb::int_(count));
  }

  // All nodes that were read since this was asked last.
  nb::tuple take() {
    HostTable table = std::exchange(table_, HostTable());
    nb::dict out;
    out["id"] = array(std::move(table.id));
    out["parent"] = array(std::move(table.parent));
    for (size_t k = 0; k < core_numbers.size(); ++k) {
      out[str_of(core_numbers[k].name)] = array(std::move(table.numbers[k]));
    }
    out["name"] = array(std::move(table.name));
    out["op_schema"] = array(std::move(table.schema));
    out["inputs"] = array(std::move(table.operand[0]));
    out["outputs"] = array(std::move(table.operand[1]));
    out["input_strides"] = array(std::move(table.stride[0]));
    out["output_strides"] = array(std::move(table.stride[1]));
    nb::list told;
    for (size_t code = 0; code < table.told.size(); ++code) told.append(told_of(table, code));
    return nb::make_tuple(out, list_of(table.names.values(), str_of),
                          list_of(table.schemas.values(), str_of), texts_of(table),
                          list_of(table.strides.values(), bytes_of), told);
  }

 private:
  // Values one behind the other and where each ends, shapes, types, and the codes of each operand.
  static nb::tuple texts_of(HostTable& table) {
    std::array<std::vector<int32_t>, 3> codes;
    for (const auto& operand : table.operands.values()) {
      for (size_t k = 0; k < codes.size(); ++k) codes[k].push_back(operand[k]);
    }
    KeptTexts& values = table.texts[0].values();
    return nb::make_tuple(array(std::move(values.characters)), array(std::move(values.offsets)),
                          list_of(table.texts[1].values(), bytes_of),
                          list_of(table.texts[2].values(), bytes_of), array(std::move(codes[0])),
                          array(std::move(codes[1])), array(std::move(codes[2])));
  }

  static nb::object told_of(HostTable& table, size_t code) {
    ToldColumn& column = table.told[code];
    nb::list values;
    for (size_t at = 0; at < column.rows.size(); ++at) {
      uint64_t bits = column.values[at];
      if (column.kinds[at] == Value::text) {
        values.append(str_of(table.told_texts.values()[bits]));
      } else if (column.kinds[at] == Value::signed_number) {
        values.append(nb::int_(static_cast<int64_t>(bits)));
      } else {
        values.append(nb::int_(bits));
      }
    }
    auto type = static_cast<size_t>(table.told_type[code]);
    return nb::make_tuple(str_of(table.told_names.values()[code]),
                          str_of(table.told_types.values()[type]),
                          array(std::move(column.rows)), values);
  }

  Piece piece_;
  HostNodes nodes_;
  HostTable table_;
};

class ProfileReader {
 public:
  // `tells` says of a name whether its arguments are kept, whatever the role.
  ProfileReader(nb::dict roles, nb::object left_out, nb::dict arrows, int op_role, int no_role,
                nb::object kept_roles, nb::object tells)
      : tells_(tells) {
    meanings_.no_role = static_cast<uint8_t>(no_role);
    meanings_.op_role = static_cast<uint8_t>(op_role);
    for (auto [category, role] : roles) of(category).role = nb::cast<uint8_t>(role);
    for (nb::handle category : left_out) of(category).left_out = true;
    for (auto [category, least] : arrows) {
      of(category).is_arrow = true;
      of(category).least_arrow = nb::cast<int64_t>(least);
    }
    for (nb::handle role : kept_roles) is_kept_[nb::cast<uint8_t>(role)] = true;
  }

  // How many records were read; nothing for a piece that is not as usual.
  nb::object read(Text text, size_t size) {
    begin(piece_, text, size);
    bool sound;
    {
      nb::gil_scoped_release release;
      sound = records_.read(piece_, table_);
    }
    if (!sound) return nb::none();
    keep_args(records_);
    return nb::int_(records_.count);
  }

  // All records that were read since this was asked last.
  nb::tuple take() {
    ProfileTable table = std::exchange(table_, ProfileTable());
    tells_of_.clear();
    nb::dict out;
    Spans& found = table.spans;
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
    nb::object args = std::exchange(args_, nb::list());
    return nb::make_tuple(out, numbers, list_of(table.categories.values(), str_of),
                          list_of(table.names.values(), str_of),
                          list_of(table.shape_texts.values(), bytes_of), args, kinds_of(table),
                          list_of(table.arrow_categories.values(), str_of), arrows_of(table),
                          bytes_of("[" + table.others + "]"));
  }

 private:
  Categories::Meaning& of(nb::handle category) {
    auto& found = meanings_.known[nb::cast<std::string>(category)];
    return found;
  }

  // Keep the arguments of the last spans, which are those of a piece, as they stand in the file.
  void keep_args(const ProfileRecords& piece) {
    const KeptTexts& names = table_.names.values();
    for (size_t code = tells_of_.size(); code < names.size(); ++code) {
      tells_of_.push_back(nb::cast<bool>(tells_(str_of(names[code]))));
    }
    nb::object nothing = str_of({});
    size_t row = table_.spans.role.size() - piece.args.size();
    for (std::string_view text : piece.args) {
      auto name = static_cast<size_t>(table_.spans.name[row]);
      bool is_kept = is_kept_[table_.spans.role[row]] || tells_of_[name];
      args_.append(is_kept ? str_of(text) : nothing);
      ++row;
    }
  }

  static nb::list kinds_of(const ProfileTable& table) {
    nb::list kinds;
    for (size_t i = 0; i < table.kind_counts.size(); ++i) {
      auto [category, phase] = table.kinds.values()[i];
      const KeptTexts& texts = table.kind_texts.values();
      kinds.append(nb::make_tuple(str_of(texts[static_cast<size_t>(category)]),
                                  str_of(texts[static_cast<size_t>(phase)]),
                                  table.kind_counts[i]));
    }
    return kinds;
  }

  static nb::list arrows_of(ProfileTable& table) {
    nb::list out;
    for (auto& ends : table.arrows) {
      out.append(nb::make_tuple(array(std::move(ends.category)), array(std::move(ends.pid)),
                                array(std::move(ends.tid)), array(std::move(ends.id)),
                                array(std::move(ends.time_ns))));
    }
    return out;
  }

  Categories meanings_;
  std::array<bool, 256> is_kept_{};  // by role
  nb::object tells_;
  std::vector<bool> tells_of_;  // names
  Piece piece_;
  ProfileRecords records_{meanings_};
  ProfileTable table_;
  nb::list args_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_JSON_TO_PYTHON_HPP
