// The readers of JSON as Python knows them.
#ifndef CHAKRA_ET_KERNEL_JSON_TO_PYTHON_HPP
#define CHAKRA_ET_KERNEL_JSON_TO_PYTHON_HPP

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host_nodes.hpp"
#include "profile_records.hpp"
#include "python.hpp"

namespace chakra_et {
namespace kernel {

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

class HostReader {
 public:
  nb::object read(nb::bytes text) {
    HostNodes nodes;
    std::string_view given = raw(text);
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
                          list_of(nodes.operands.values(), [this](const auto& one) { return texts_of(one); }),
                          list_of(nodes.operands.values(), strides_of), told);
  }

 private:
  nb::object texts_of(const Operands& operands) {
    const auto& texts = operands.texts;
    return nb::make_tuple(bytes_of(texts[0]), shared(texts[1]), shared(texts[2]));
  }

  // A text that many operands have, made once.
  nb::object shared(std::string_view text) {
    auto found = shared_.find(text);
    if (found != shared_.end()) return found->second;
    nb::object made = bytes_of(text);
    if (shared_.size() < most_shared) shared_.emplace(raw(made), made);
    return made;
  }

  static nb::object strides_of(const Operands& operands) { return bytes_of(operands.texts[3]); }

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

  static constexpr size_t most_shared = 1 << 16;
  Piece piece_;
  std::unordered_map<std::string_view, nb::object> shared_;
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
    std::string_view given = raw(text);
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
    nb::object nothing = str_of({});
    for (size_t row = 0; records_ && row < records_->args.size() && row < wanted.size(); ++row) {
      out.append(wanted.data()[row] ? str_of(records_->args[row]) : nothing);
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

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_JSON_TO_PYTHON_HPP
