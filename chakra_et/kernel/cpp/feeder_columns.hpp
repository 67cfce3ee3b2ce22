// The nodes of an ET as a feeder needs them: what `Block` in feeder/block.py makes of a file, or
// nothing where a file is damaged.
#ifndef CHAKRA_ET_KERNEL_FEEDER_COLUMNS_HPP
#define CHAKRA_ET_KERNEL_FEEDER_COLUMNS_HPP

#include <array>
#include <chakra_et/frames.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace chakra_et {
namespace kernel {

// An attribute with one number: the bytes before it, the flag of a node that has it, and the flag
// of one where it is not 0.
struct ToldNumber {
  std::string before;
  uint8_t flag, not_zero;
};

// What feeder/known_attributes.py says of attributes.
struct FeederMarks {
  std::array<ToldNumber, 3> told;
  std::string edge_kinds;  // how an attribute of kinds of edges begins
  uint8_t edge_kinds_flag, odd_flag;
};

class FeederColumns {
 public:
  std::vector<int64_t> begin, end;
  std::vector<uint64_t> id, start_us, duration_us, edge_source;
  std::array<std::vector<uint64_t>, 3> exact;  // the numbers told in attributes, 0 where none is
  std::vector<int32_t> type;
  std::vector<uint8_t> flags;
  std::vector<uint32_t> edge_target;
  std::vector<uint8_t> edge_control;
  uint64_t fields = 0;  // read, for guards that count work

  explicit FeederColumns(const FeederMarks& marks) : marks_(marks) {}

  // False where the file, from `first` on, is for the reader in Python.
  bool read(std::string_view data, size_t first, uint64_t max_record) {
    auto* origin = reinterpret_cast<const wire::Byte*>(data.data());
    wire::Span rest{origin + first, origin + data.size()};
    while (rest.begin != rest.end) {
      wire::Span record;
      if (frames::cut(rest, 0, max_record, record) || frames::require_node(record, 0)) return false;
      begin.push_back(record.begin - origin);
      end.push_back(record.end - origin);
      if (id.size() >= std::numeric_limits<uint32_t>::max() || !take_node(record)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t word = 8;

  bool take_node(const wire::Span& record) {
    node_ = Node{};
    const wire::Byte* p = record.begin;
    wire::Field field;
    while (p < record.end) {
      if (wire::next_field(p, record.end, field) != wire::Step::field) return false;
      ++fields;
      if (field.type == wire::varint) {
        take_number(field);
      } else if (field.type == wire::bytes && !take_bytes(field)) {
        return false;
      }
    }
    id.push_back(node_.id);
    type.push_back(static_cast<int32_t>(static_cast<uint32_t>(node_.type)));
    start_us.push_back(node_.start_us);
    duration_us.push_back(node_.duration_us);
    for (size_t k = 0; k < exact.size(); ++k) exact[k].push_back(node_.exact[k]);
    flags.push_back(node_.flags);
    return true;
  }

  void take_number(const wire::Field& field) {
    switch (field.number) {
      case field::id: node_.id = field.value; break;
      case field::type: node_.type = field.value; break;
      case field::start_time_micros: node_.start_us = field.value; break;
      case field::duration_micros: node_.duration_us = field.value; break;
      case field::ctrl_deps:
      case field::data_deps: take_edge(field.number, field.value); break;
      default: break;
    }
  }

  void take_edge(uint32_t number, uint64_t source) {
    edge_target.push_back(static_cast<uint32_t>(id.size()));
    edge_source.push_back(source);
    edge_control.push_back(number == field::ctrl_deps);
  }

  bool take_bytes(const wire::Field& field) {
    if (field.number == field::attr) take_attribute(field.data);
    if (field.number != field::ctrl_deps && field.number != field::data_deps) return true;
    for (const wire::Byte* p = field.data.begin; p < field.data.end;) {
      uint64_t source;
      if (!wire::read_varint(p, field.data.end, source)) return false;
      take_edge(field.number, source);
    }
    return true;
  }

  // Attributes stay bytes, but for those that columns hold.
  void take_attribute(const wire::Span& whole) {
    constexpr wire::Byte named = field::attribute_name << 3 | wire::bytes;
    if (whole.size() < word + 2) return;
    std::string_view text = whole.text(), head = text.substr(0, word);
    // The name comes later, if at all.
    if (*whole.begin != named) node_.flags |= marks_.odd_flag | marks_.edge_kinds_flag;
    if (head == marks_.edge_kinds) node_.flags |= marks_.edge_kinds_flag;
    for (size_t k = 0; k < exact.size(); ++k) {
      const ToldNumber& told = marks_.told[k];
      if (told.before.compare(0, word, head) == 0) take_told(k, told, whole);
    }
  }

  // It counts if it is written as usual and comes first.
  void take_told(size_t k, const ToldNumber& told, const wire::Span& whole) {
    const wire::Byte* p = whole.begin + told.before.size();
    uint64_t value;
    bool usual = whole.size() > told.before.size() && (node_.flags & told.flag) == 0 &&
                 whole.text().substr(0, told.before.size()) == told.before &&
                 wire::read_varint(p, whole.end, value) && p == whole.end;
    if (!usual) {
      node_.flags |= marks_.odd_flag;
      return;
    }
    node_.flags |= value != 0 ? told.flag | told.not_zero : told.flag;
    node_.exact[k] = value;
  }

  struct Node {
    uint64_t id = 0, type = 0, start_us = 0, duration_us = 0;
    std::array<uint64_t, 3> exact{};
    uint8_t flags = 0;
  };

  const FeederMarks& marks_;
  Node node_;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_FEEDER_COLUMNS_HPP
