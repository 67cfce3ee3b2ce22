// Records of profiles in a piece of a file.
#ifndef CHAKRA_ET_KERNEL_PROFILE_RECORDS_HPP
#define CHAKRA_ET_KERNEL_PROFILE_RECORDS_HPP

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argument_runs.hpp"
#include "json.hpp"
#include "key_trail.hpp"
#include "pool.hpp"
#include "profile_arguments.hpp"
#include "profile_table.hpp"

namespace chakra_et {
namespace kernel {

// What the reader in Python knows of categories.
struct Categories {
  struct Meaning {
    uint8_t role;
    bool left_out = false;       // its spans do not become rows
    bool is_arrow = false;       // its arrows are evidence
    int64_t least_arrow = std::numeric_limits<int64_t>::min();
  };
  uint8_t no_role = 0, op_role = 0;
  std::unordered_map<std::string, Meaning> known;

  Meaning of(std::string_view category) const {
    auto found = known.find(std::string(category));
    return found == known.end() ? Meaning{no_role} : found->second;
  }
};

using Kind = std::pair<std::string_view, std::string_view>;

struct HashKind {
  size_t operator()(const Kind& kind) const {
    HashText hash;
    return hash(kind.first) * 31 + hash(kind.second);
  }
};

class ProfileRecords {
 public:
  std::vector<std::string_view> args;  // of the spans of the piece
  int64_t count = 0;                   // of its records

  explicit ProfileRecords(const Categories& meanings) : meanings_(meanings) {}

  // Put all of a piece into the table; false, and nothing of it is put there, for one that is not as
  // usual.
  bool read(Piece& piece, ProfileTable& table) {
    piece_ = &piece;
    table_ = &table;
    args.clear();
    count = 0;
    kinds_.clear();
    known_kinds_.clear();
    last_kind_ = 0;
    unusual_ = false;
    ProfileTable::Size before = table.size();
    bool sound = each_object(
        piece, [this](const char* begin) { return take_plain(begin); },
        [this](od::document& document, od::object& record) { return take(document, record); });
    if (!sound) table.resize(before);
    return sound;
  }

 private:
  // Numbers of arguments are told by bits, four for each argument.
  static uint8_t bit_of(const ArgumentKeys::Place& place) {
    return static_cast<uint8_t>(4 * place.argument + place.number);
  }

  struct Record {
    std::string_view phase, category, name, args, shapes;
    Time time, duration;
    int64_t pid = 0, tid = 0, id = 0;
    bool has_pid = false, has_tid = false, has_id = false, has_args = false, args_are_object = false;
    uint32_t odd = 0;                // arguments that are no integers, as bits
    std::array<std::array<int64_t, 4>, arguments.size()> numbers;
    uint32_t told = 0;

    void forget_args() {
      told = odd = 0;
      shapes = {};
    }
    // The number of bit `at`.
    void tell(uint8_t at, int64_t number, bool is_integer) {
      uint32_t bit = 1u << at;
      numbers[at / 4][at % 4] = number;
      told |= bit;
      odd = is_integer ? odd & ~bit : odd | bit;
    }
  };

  enum RecordKey : uint8_t {
    phase_key, category_key, name_key, pid_key, tid_key, id_key, time_key, duration_key, args_key,
    other_key
  };

  static uint8_t record_key(std::string_view key) {
    if (is(key, "ph")) return phase_key;
    if (is(key, "cat")) return category_key;
    if (is(key, "name")) return name_key;
    if (is(key, "pid")) return pid_key;
    if (is(key, "tid")) return tid_key;
    if (is(key, "id")) return id_key;
    if (is(key, "ts")) return time_key;
    if (is(key, "dur")) return duration_key;
    return is(key, "args") ? args_key : other_key;
  }

  // Behind a record of plain values. If it is not as usual, reading it again does not help.
  const char* take_plain(const char* begin) {
    Record record;
    const char* end = record_keys_.behind_object(begin, record_key, [&](uint8_t key, const char* p) {
      return behind_field(key, p, record);
    });
    if (end == nullptr || !ends_element(end)) return nullptr;
    unusual_ = !put(record, {begin, static_cast<size_t>(end - begin)});
    return unusual_ ? nullptr : end;
  }

  const char* behind_field(uint8_t key, const char* p, Record& record) {
    switch (key) {
      case phase_key:  // Most are one character.
        if (*p == '"' && !is_mark(p[1]) && p[2] == '"') {
          record.phase = {p + 1, 1};
          return p + 3;
        }
        return behind_text_of(p, record.phase);
      case category_key:
        return behind_text_of(p, record.category);
      case name_key:
        return behind_text_of(p, record.name);
      case pid_key:
        return behind_integer(p, record.pid, record.has_pid);
      case tid_key:
        return behind_integer(p, record.tid, record.has_tid);
      case id_key:
        return behind_integer(p, record.id, record.has_id);
      case time_key:
        return behind_time(p, record.time);
      case duration_key:
        return behind_time(p, record.duration);
      case args_key:
        return *p == '{' ? behind_args(p, record) : nullptr;
      default:
        return behind_value(p, 0);
    }
  }

  const char* behind_text_of(const char* p, std::string_view& out) const {
    return *p == '"' ? piece_->behind_any_text(p + 1, out) : nullptr;
  }

  // What arguments mean that are no numbers of ours; others mean their numbers in `Record`.
  enum ArgumentKey : uint8_t { shapes_argument = 32, event_argument, carried_argument };

  uint8_t argument_key(std::string_view key) const {
    if (is(key, shapes_key)) return shapes_argument;
    if (is(key, event_key)) return event_argument;
    const ArgumentKeys::Place* place = keys_.find(key);
    return place == nullptr ? uint8_t{carried_argument} : bit_of(*place);
  }

  const char* behind_args(const char* begin, Record& record) {
    record.forget_args();
    record.has_args = record.args_are_object = true;
    runs_.begin();
    KeyTrail::Place place;
    auto meaning_of = [this](std::string_view key) { return argument_key(key); };
    for (const char *p = begin, *value_end = begin;; value_end = p) {
      p = argument_keys_.next(p, place, meaning_of);
      if (p == nullptr) return nullptr;
      if (place.meaning == KeyTrail::at_end) {
        runs_.close(p - 1, record.shapes);
        record.args = {begin, static_cast<size_t>(p - begin)};
        return p;
      }
      if (place.meaning == event_argument) runs_.close(behind_blanks(value_end), record.shapes);
      p = behind_argument(p, place, record);
      if (p == nullptr) return nullptr;
    }
  }

  const char* behind_argument(const char* p, const KeyTrail::Place& place, Record& record) {
    if (place.meaning < shapes_argument) {
      runs_.leave();
      int64_t number = 0;
      bool is_integer = false;
      p = behind_integer(p, number, is_integer);
      record.tell(place.meaning, number, is_integer);
      return p;
    }
    if (place.meaning != event_argument) {
      const char* behind =
          runs_.behind_known(p, piece_->end(), place.step, record.name, record.shapes);
      if (behind != nullptr) return behind;
    }
    const char* end = behind_value(p, 1);
    if (place.meaning == shapes_argument && end != nullptr) {
      record.shapes = {p, static_cast<size_t>(end - p)};
    }
    return end;
  }

  bool take(od::document& document, od::object& object) {
    if (unusual_) return false;
    Record record;
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key) || !take_field(document, key, field.value(), record)) return false;
    }
    std::string_view whole;
    return !object.raw_json().get(whole) && put(record, whole);
  }

  // Put a record, of which `whole` is the text, where it belongs.
  bool put(const Record& record, std::string_view whole) {
    ++count;
    KnownKind& kind = counted(record.category, record.phase);
    if (is(record.phase, "X")) return take_span(record, kind);
    if (is(record.phase, "s") || is(record.phase, "f")) return take_arrow(record, kind.meaning);
    if (is(record.phase, "M") || is(record.phase, "B") || is(record.phase, "E")) {
      if (!table_->others.empty()) table_->others += ',';
      table_->others += whole;
    }
    return true;
  }

  bool take_field(od::document& document, std::string_view key,
                  simdjson::simdjson_result<od::value> found, Record& record) {
    if (is(key, "ph")) return text_of(found, record.phase);
    if (is(key, "cat")) return text_of(found, record.category);
    if (is(key, "name")) return text_of(found, record.name);
    if (is(key, "pid")) return take_id(found, record.pid, record.has_pid);
    if (is(key, "tid")) return take_id(found, record.tid, record.has_tid);
    if (is(key, "id")) return take_id(found, record.id, record.has_id);
    if (is(key, "ts") || is(key, "dur")) {
      Time& time = is(key, "ts") ? record.time : record.duration;
      time = Time();
      return carried(document, found, time.token);
    }
    if (is(key, "args")) return take_args(document, found, record);
    return walk(found);
  }

  // An id, if it is a 64-bit integer; else it is only walked.
  static bool take_id(simdjson::simdjson_result<od::value> found, int64_t& out, bool& has) {
    od::value value;
    if (found.get(value)) return false;
    has = is_number(value.raw_json_token()) && !value.get_int64().get(out);
    return has || walk(value, 0);
  }

  bool take_args(od::document& document, simdjson::simdjson_result<od::value> found,
                 Record& record) {
    od::value value;
    if (found.get(value)) return false;
    const char* begin = start_of(value);
    record.has_args = true;
    record.args_are_object = *begin == '{';
    if (!record.args_are_object) return walk(value, 0);
    record.forget_args();
    const char* end;
    od::object object;
    if (value.get_object().get(object)) return false;
    for (auto field : object) {
      std::string_view key;
      if (!plain_key(field, key)) return false;
      if (is(key, shapes_key)) {
        if (!carried(document, field.value(), record.shapes)) return false;
      } else if (!take_argument(key, field.value(), record)) {
        return false;
      }
    }
    if (document.current_location().get(end)) return false;
    record.args = trimmed({begin, static_cast<size_t>(end - begin)});
    return true;
  }

  bool take_argument(std::string_view key, simdjson::simdjson_result<od::value> found,
                     Record& record) const {
    const ArgumentKeys::Place* place = keys_.find(key);
    if (place == nullptr) return walk(found);
    int64_t number = 0;
    bool is_integer = false;
    if (!take_id(found, number, is_integer)) return false;
    record.tell(bit_of(*place), number, is_integer);
    return true;
  }

  // A category and phase that the piece has.
  struct KnownKind {
    Categories::Meaning meaning;
    size_t number;          // among kinds of the table
    size_t next = 0;        // what followed it last
    int32_t category = -1;  // its code, once there is a span
  };

  bool take_span(const Record& record, KnownKind& kind) {
    const Categories::Meaning& meaning = kind.meaning;
    Spans& spans = table_->spans;
    if (meaning.left_out) return true;
    int64_t start, lasts = 0;
    if (!record.has_pid || !record.has_tid || !record.time.get(start)) return false;
    if (!record.duration.token.empty() && !record.duration.get(lasts)) return false;
    if (record.has_args && !record.args_are_object) return false;
    bool is_operation = meaning.role == meanings_.op_role;
    for (size_t a = 0; a < arguments.size(); ++a) {
      int64_t value = arguments[a].absent;
      if (is_operation ? arguments[a].of_operations : arguments[a].of_others) {
        if (record.odd >> (4 * a) & 15) return false;
        uint32_t told = record.told >> (4 * a) & 15;
        for (size_t k = 4; told != 0 && k-- > 0;) {
          bool is_told = (told >> k & 1) != 0;
          if (is_told && record.numbers[a][k] != arguments[a].absent) value = record.numbers[a][k];
        }
      }
      spans.numbers[a].push_back(value);
    }
    spans.role.push_back(meaning.role);
    if (kind.category < 0) kind.category = table_->categories[record.category];
    spans.category.push_back(kind.category);
    spans.name.push_back(table_->names[record.name]);
    spans.pid.push_back(record.pid);
    spans.tid.push_back(record.tid);
    spans.start_ns.push_back(start);
    spans.duration_ns.push_back(lasts);
    spans.shapes.push_back(is_operation ? table_->shape_texts[record.shapes] : 0);
    args.push_back(record.has_args ? record.args : std::string_view("{}"));
    return true;
  }

  bool take_arrow(const Record& record, const Categories::Meaning& meaning) {
    if (!meaning.is_arrow) return true;
    if (!record.has_id) return false;
    if (record.id < meaning.least_arrow) return true;
    int64_t time;
    if (!record.has_pid || !record.has_tid || !record.time.get(time)) return false;
    Arrows& ends = table_->arrows[is(record.phase, "f")];
    ends.category.push_back(table_->arrow_categories[record.category]);
    ends.pid.push_back(record.pid);
    ends.tid.push_back(record.tid);
    ends.id.push_back(record.id);
    ends.time_ns.push_back(time);
    return true;
  }

  // Count a record; its category and phase. Most follow those that they followed before.
  KnownKind& counted(std::string_view category, std::string_view phase) {
    Kind kind{category, phase};
    size_t at = known_kinds_.empty() ? 0 : known_kinds_[last_kind_].next;
    if (at >= known_kinds_.size() || kinds_.values()[at] != kind) {
      at = static_cast<size_t>(kinds_[kind]);
      if (at == known_kinds_.size()) add_kind(kind);
      known_kinds_[last_kind_].next = at;
    }
    last_kind_ = at;
    ++table_->kind_counts[known_kinds_[at].number];
    return known_kinds_[at];
  }

  void add_kind(const Kind& kind) {
    int32_t category = table_->kind_texts[kind.first], phase = table_->kind_texts[kind.second];
    auto number = static_cast<size_t>(table_->kinds[{category, phase}]);
    if (number == table_->kind_counts.size()) table_->kind_counts.push_back(0);
    known_kinds_.push_back({meanings_.of(kind.first), number});
  }

  const Categories& meanings_;
  Piece* piece_ = nullptr;         // the one that is read
  ProfileTable* table_ = nullptr;  // where its records belong
  bool unusual_ = false;
  ArgumentKeys keys_;
  KeyTrail record_keys_, argument_keys_;
  ArgumentRuns runs_;
  Pool<Kind, HashKind> kinds_;  // of the piece
  std::vector<KnownKind> known_kinds_;
  size_t last_kind_ = 0;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PROFILE_RECORDS_HPP
