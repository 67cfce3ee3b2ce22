// Arguments that stand one behind the other and are only carried: what an operation works on, what a
// kernel takes of its device. Of such runs few differ, so they are recognised by their text.
#ifndef CHAKRA_ET_KERNEL_ARGUMENT_RUNS_HPP
#define CHAKRA_ET_KERNEL_ARGUMENT_RUNS_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

#include "key_trail.hpp"
#include "known_texts.hpp"

namespace chakra_et {
namespace kernel {

// PyTorch numbers events with it, so it ends a run.
constexpr char event_key[] = "Ev Idx";

class ArgumentRuns {
 public:
  ArgumentRuns() { expected_.fill(-1); }

  // Begin the arguments of a record.
  void begin() { begin_ = nullptr; }

  // Where a known run ends whose first value is at `p`, and the shapes if it has some; `step` is where
  // its first key is, `name` is that of the record, and the text goes on to `limit`. Nothing for what
  // is not known: it becomes so if `close` is told its end.
  const char* behind_known(const char* p, const char* limit, uint16_t step, std::string_view name,
                           std::string_view& shapes) {
    Beginning& beginning = beginnings_[step];
    bool is_seldom = 2 * beginning.known + least_tried < beginning.tried;
    if (begin_ != nullptr || beginning.is_none || is_seldom) return nullptr;
    int32_t& expected = expected_[slot_of(name)];
    const char* end = expected < 0 ? nullptr : behind(texts_.text(expected), p, limit);
    if (end == nullptr) {
      if ((end = seeming_end(p)) == nullptr) return nullptr;
      ++beginning.tried;
      int32_t number = texts_.find({p, static_cast<size_t>(end - p)});
      if (number < 0) {
        begin_ = p;
        end_ = end;
        step_ = step;
        return nullptr;
      }
      ++beginning.known;
      expected = number;
    }
    last_ = expected;
    const Shapes& held = texts_[last_];
    if (held.size > 0) shapes = {p + held.begin, held.size};
    return end;
  }

  // A run goes on to `end`, with these shapes or those of an argument before.
  void close(const char* end, std::string_view shapes) {
    if (begin_ != nullptr && end == end_) {
      Shapes held;
      if (!std::less<>()(shapes.data(), begin_) && std::less<>()(shapes.data(), end)) {
        held = {static_cast<uint32_t>(shapes.data() - begin_), static_cast<uint32_t>(shapes.size())};
      }
      texts_.learn({begin_, static_cast<size_t>(end - begin_)}, held);
    }
    begin_ = nullptr;
  }

  // An argument comes that is more than carried: where the last run has begun, none begins.
  void leave() {
    if (begin_ != nullptr) beginnings_[step_].is_none = true;
    begin_ = nullptr;
  }

 private:
  static constexpr uint32_t least_tried = 64;  // before what is seldom known is looked up no more
  struct Shapes {
    uint32_t begin = 0, size = 0;
  };
  struct Beginning {
    uint32_t tried = 0, known = 0;
    bool is_none = false;
  };

  // Where is kept which run is expected: that which a record of this name had behind the last run.
  size_t slot_of(std::string_view name) const {
    std::string_view last = name.substr(name.size() - std::min<size_t>(name.size(), 16));
    return (HashText()(last) + 31 * name.size() + 257 * static_cast<size_t>(last_ + 1)) %
           expected_.size();
  }

  // Behind a run if it is this text.
  static const char* behind(std::string_view run, const char* p, const char* limit) {
    bool same = run.size() < static_cast<size_t>(limit - p) &&
                std::memcmp(p, run.data(), run.size()) == 0;
    p += run.size();
    return same && (*p == ',' || *p == '}') ? p : nullptr;
  }

  // Where the arguments seem to end, or those before the number of the event; nothing where neither
  // is near.
  static const char* seeming_end(const char* p) {
    const char* limit = p + KnownTexts<Shapes>::longest;
    int depth = 0;
    for (; (p = next_of<'{', '}', event_key[0], '\0'>(p)) < limit && *p != '\0'; ++p) {
      if (*p == '{') {
        ++depth;
      } else if (*p == '}') {
        if (depth-- == 0) return p;
      } else if (depth == 0 && p[-1] == '"' &&
                 std::strncmp(p, event_key, sizeof event_key - 1) == 0) {
        for (p -= 2; *p == ' ' || *p == '\n'; --p) {
        }
        return *p == ',' ? p : nullptr;
      }
    }
    return nullptr;
  }

  KnownTexts<Shapes> texts_;
  std::array<Beginning, KeyTrail::most_steps> beginnings_;  // by steps of keys
  const char *begin_ = nullptr, *end_ = nullptr;            // of a run that is not known
  uint16_t step_ = 0;
  std::array<int32_t, 1024> expected_;
  int32_t last_ = -1;  // the run that was known last
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_ARGUMENT_RUNS_HPP
