// A rank's columns as the bytes of its ET: what pack/columns.py does by a trace.
#ifndef CHAKRA_ET_PACK_ENCODER_HPP
#define CHAKRA_ET_PACK_ENCODER_HPP

#include "../pod_vector.hpp"
#include "told.hpp"

namespace chakra_et {
namespace pack {

// What is written of columns that do not fit together is not the ET that was packed: its hash tells.
class Encoder {
 public:
  explicit Encoder(const Columns& columns) : columns_(columns) {}

  // False where columns are missing or do not fit together, or where there are more bytes than so many.
  bool write(size_t most, PodVector<wire::Byte>& out) {
    bool ready = take_nodes() && take_edges() && take_names() && take_texts() && take_extra() &&
                 take_attributes() && take_layouts() && tell_times() && tell_kinds() && nodes_.fit();
    if (!ready) return false;
    const Value* head = other("head", Value::bytes);
    return head != nullptr && append(head->data, most, out) && write_nodes(most, out);
  }

 private:
  bool write_nodes(size_t most, PodVector<wire::Byte>& out) {
    constexpr size_t at_once = 16;  // little is written beyond the limit
    const records::Tags tags = tags_of_schema();
    records::EtRecords writer(nodes_, tags);
    Bytes piece;
    for (size_t row = 0; row < nodes_.id.size; row += at_once) {
      piece.clear();
      size_t last = std::min(row + at_once, nodes_.id.size);
      if (!writer.write(row, last, piece) || !append(piece.view(), most, out)) return false;
    }
    return true;
  }

  static bool append(std::string_view bytes, size_t most, PodVector<wire::Byte>& out) {
    if (bytes.size() > most - out.size()) return false;
    return out.append(reinterpret_cast<const wire::Byte*>(bytes.data()), bytes.size());
  }

  records::Tags tags_of_schema() {
    auto tag = [this](uint32_t number, unsigned type) {
      tags_.emplace_back(1, static_cast<char>(number << 3 | type));  // each is less than 16
      return std::string_view(tags_.back());
    };
    records::Tags tags;
    tags.id = tag(field::id, wire::varint);
    tags.name = tag(field::name, wire::bytes);
    tags.type = tag(field::type, wire::varint);
    tags.ctrl_deps = tag(field::ctrl_deps, wire::bytes);
    tags.data_deps = tag(field::data_deps, wire::bytes);
    tags.start = tag(field::start_time_micros, wire::varint);
    tags.duration = tag(field::duration_micros, wire::varint);
    tags.inputs = tag(field::inputs, wire::bytes);
    tags.outputs = tag(field::outputs, wire::bytes);
    tags.operands = {tag(field::io_values, wire::bytes), tag(field::io_shapes, wire::bytes),
                     tag(field::io_types, wire::bytes)};
    tags.attribute = tag(field::attr, wire::bytes);
    return tags;
  }

  // A column of whole numbers, or of what msgpack holds; none if it is not there.
  const Column* numbers(std::string_view name) const {
    auto found = columns_.find(name);
    if (found == columns_.end() || found->second->kind == 0) return nullptr;
    return found->second->kind == 'f' ? nullptr : found->second.get();
  }
  const Column* column(const char* name, size_t number) const {
    auto found = columns_.find(name + std::to_string(number));
    return found == columns_.end() ? nullptr : found->second.get();
  }
  const Value* other(std::string_view name, Value::Type type) const {
    auto found = columns_.find(name);
    if (found == columns_.end() || found->second->kind != 0) return nullptr;
    return found->second->other->type == type ? found->second->other : nullptr;
  }

  template <class T>
  records::View<T> kept(std::deque<std::vector<T>>& where, const Column& from) {
    where.emplace_back(from.bits.size());
    for (size_t i = 0; i < from.bits.size(); ++i) where.back()[i] = static_cast<T>(from.whole(i));
    return {where.back().data(), where.back().size()};
  }
  template <class T>
  bool take(std::string_view name, std::deque<std::vector<T>>& where, records::View<T>& out) {
    const Column* found = numbers(name);
    if (found == nullptr) return false;
    out = kept(where, *found);
    return true;
  }

  bool take_nodes() {
    return take("nodes.id", longs_, nodes_.id) && take("nodes.name_code", ints_, nodes_.name) &&
           take("nodes.type", ints_, nodes_.type) && take("nodes.input_code", ints_, nodes_.inputs) &&
           take("nodes.output_code", ints_, nodes_.outputs) && take("layout", ints_, nodes_.layout) &&
           take_time("nodes.start_ns", starts_, nodes_.start_us) &&
           take_time("nodes.duration_ns", durations_, nodes_.duration_us);
  }

  bool take_time(std::string_view name, std::vector<int64_t>& times, records::View<uint64_t>& out) {
    const Column* found = numbers(name);
    if (found == nullptr) return false;
    longs_.emplace_back();
    for (size_t i = 0; i < found->bits.size(); ++i) {
      times.push_back(static_cast<int64_t>(found->whole(i)));
      longs_.back().push_back(microseconds(times.back()));
    }
    out = {longs_.back().data(), longs_.back().size()};
    return true;
  }

  bool take_edges() {
    const Column* kinds = numbers("edges.kind");
    const Column* inferred = numbers("edges.inferred");
    if (kinds == nullptr || inferred == nullptr || kinds->bits.size() != inferred->bits.size()) return false;
    if (!take("edges.offsets", offsets_, nodes_.offsets)) return false;
    for (uint64_t kind : kinds->bits) {
      if (kind >= std::size(edge_kind_names)) return false;
      calls_.push_back(kind == 0);
    }
    nodes_.is_call = {calls_.data(), calls_.size()};
    return take("edges.source", longs_, nodes_.source);
  }

  bool take_names() {
    const Value* names = other("names", Value::list);
    if (names == nullptr) return false;
    for (const Value& name : names->items) nodes_.names.push_back(name.data);
    return true;
  }

  bool take_texts() {
    const Value* texts = other("texts", Value::list);
    if (texts == nullptr) return false;
    for (const Value& entry : texts->items) {
      for (const Value& text : entry.items) nodes_.texts.push_back(text.data);
      nodes_.text_offsets.push_back(nodes_.texts.size());
    }
    return true;
  }

  bool take_extra() {
    const Value* extra = other("extra", Value::list);
    if (extra == nullptr) return false;
    for (const Value& entry : extra->items) {
      if (entry.items.size() != 2) return false;
      nodes_.extra.emplace_back(static_cast<int64_t>(entry.items[0].bits), entry.items[1].data);
    }
    std::sort(nodes_.extra.begin(), nodes_.extra.end());
    return true;
  }

  bool take_attributes() {
    const Value* keys = other("keys", Value::list);
    if (keys == nullptr) return false;
    for (size_t i = 0; i < keys->items.size(); ++i) {
      Raw raw{Key(), column("rows.", i), column("values.", i)};
      records::Attribute made;
      if (raw.rows == nullptr || raw.values == nullptr || !raw.key.read(keys->items[i]) ||
          !maker_.make(raw.key, *raw.rows, *raw.values, made)) {
        return false;
      }
      raw_.push_back(raw);
      nodes_.attributes.push_back(std::move(made));
    }
    return true;
  }

  bool take_layouts() {
    const Value* layouts = other("layouts", Value::list);
    if (layouts == nullptr) return false;
    for (const Value& layout : layouts->items) {
      nodes_.layouts.emplace_back();
      for (const Value& number : layout.items) {
        if (number.type != Value::integer || number.bits >= raw_.size()) return false;
        nodes_.layouts.back().push_back(static_cast<uint32_t>(number.bits));
      }
    }
    return true;
  }

  bool tell_times() {
    const Column* start = numbers("nodes.exact_start");
    const Column* duration = numbers("nodes.exact_duration");
    size_t count = nodes_.id.size;
    bool fits = start != nullptr && duration != nullptr && start->bits.size() == count &&
                duration->bits.size() == count && starts_.size() == count && durations_.size() == count;
    if (!fits) return false;
    std::vector<bool> starts(count), durations(count);
    for (size_t row = 0; row < count; ++row) {
      starts[row] = start->bits[row] != 0 || starts_[row] == 0 || starts_[row] % 1000 != 0;
      durations[row] = duration->bits[row] != 0 || durations_[row] % 1000 != 0;
    }
    mark_taken(raw_, start_name, starts_, starts);
    mark_taken(raw_, duration_name, durations_, durations);
    for (size_t row = 0; row < count; ++row) starts[row] = starts[row] && starts_[row] != unknown_ns;
    start_ = told_times(start_name, starts_, starts);
    duration_ = told_times(duration_name, durations_, durations);
    return true;
  }

  records::Attribute told_times(std::string_view name, const std::vector<int64_t>& times,
                                const std::vector<bool>& told) {
    rows_.emplace_back();
    longs_.emplace_back();
    for (size_t row = 0; row < told.size(); ++row) {
      if (!told[row]) continue;
      rows_.back().push_back(static_cast<int64_t>(row));
      longs_.back().push_back(static_cast<uint64_t>(times[row]));
    }
    records::Attribute out = named(name, Kind::int64);
    out.numbers = {longs_.back().data(), longs_.back().size()};
    out.is_number = true;
    return out;
  }

  // An attribute of the rows that were kept last.
  records::Attribute named(std::string_view name, Kind kind) {
    Key key;
    key.name = name;
    key.kind = kind;
    befores_.push_back(key.before());
    records::Attribute out;
    out.before = befores_.back();
    out.rows = {rows_.back().data(), rows_.back().size()};
    return out;
  }

  // The kinds of each node's edges stand last, before exact times.
  bool tell_kinds() {
    if (!nodes_.fit()) return false;
    std::vector<Marks> marks = marks_of_edges();
    std::vector<bool> told(marks.size());
    for (size_t row = 0; row < marks.size(); ++row) told[row] = !is_plain(marks[row]);
    mark_kinds(marks, told);
    rows_.emplace_back();
    for (size_t row = 0; row < marks.size(); ++row) {
      if (!told[row] || marks[row].empty()) continue;
      rows_.back().push_back(static_cast<int64_t>(row));
      auto known = kinds_.find(marks[row]);
      if (known == kinds_.end()) known = kinds_.emplace(marks[row], text_of(marks[row])).first;
      kinds_texts_.push_back(known->second);
    }
    records::Attribute kinds = named(kinds_name, Kind::string);
    kinds.texts = std::move(kinds_texts_);
    for (records::Attribute* last : {&kinds, &start_, &duration_}) {
      nodes_.last.push_back(static_cast<uint32_t>(nodes_.attributes.size()));
      nodes_.attributes.push_back(std::move(*last));
    }
    return true;
  }

  std::vector<Marks> marks_of_edges() const {
    const Column &kinds = *numbers("edges.kind"), &inferred = *numbers("edges.inferred");
    std::vector<Marks> marks(nodes_.id.size);
    for (size_t row = 0; row < marks.size(); ++row) {
      auto end = static_cast<size_t>(nodes_.offsets.data[row + 1]);
      for (auto at = static_cast<size_t>(nodes_.offsets.data[row]); at < end; ++at) {
        if (calls_[at]) continue;
        marks[row] += static_cast<char>(kinds.bits[at] << 1 | (inferred.bits[at] != 0));
      }
    }
    return marks;
  }

  // Plain kinds are told where an attribute would be taken for them.
  void mark_kinds(const std::vector<Marks>& marks, std::vector<bool>& told) const {
    for (const Raw& raw : raw_) {
      if (!raw.key.is(kinds_name, Kind::string)) continue;
      for (size_t i = 0; i < raw.rows->bits.size(); ++i) {
        size_t row = raw.rows->bits[i];
        std::string_view text = raw.values->other->items[i].data;
        if (row < marks.size() && tells_kinds(text, marks[row].size())) told[row] = true;
      }
    }
  }

  const Columns& columns_;
  records::Nodes nodes_;
  std::vector<int64_t> starts_, durations_;
  std::vector<uint8_t> calls_;
  std::vector<Raw> raw_;
  AttributeMaker maker_;
  records::Attribute start_, duration_;
  // What views look at.
  std::deque<std::vector<uint64_t>> longs_;
  std::deque<std::vector<int32_t>> ints_;
  std::deque<std::vector<int64_t>> offsets_, rows_;
  std::deque<std::string> tags_, befores_;
  std::map<Marks, std::string> kinds_;
  std::vector<std::string_view> kinds_texts_;
};

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_ENCODER_HPP
