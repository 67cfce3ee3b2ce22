// Ranks that are copies of few programs, in one file, as `chakra generate --pack` writes them
// (chakra_et/io/packed.py): of each program the bytes of its nodes are kept once, and what the ranks
// that run it have to themselves.
#ifndef CHAKRA_ET_PACK_SET_HPP
#define CHAKRA_ET_PACK_SET_HPP

#include <zstd.h>

#include <memory>
#include <string>
#include <vector>

#include "../json.hpp"
#include "../source.hpp"
#include "zip.hpp"

namespace chakra_et {
namespace pack {

using Bytes = PodVector<wire::Byte>;

constexpr uint64_t most_in_a_member = uint64_t{1} << 36;

// Unpacks one frame, which is compressed for whoever has what is `beside` it.
inline bool unpack_frame(wire::Span packed, wire::Span beside, Bytes& out) {
  unsigned long long size = ZSTD_getFrameContentSize(packed.begin, packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most_in_a_member ||
      !out.assign_zero(static_cast<size_t>(size))) {
    return false;
  }
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  size_t got = ZSTD_decompress_usingDict(context.get(), out.data(), out.size(), packed.begin,
                                         packed.size(), beside.begin, beside.size());
  return got == out.size();
}

// The programs of a packed set, and which ranks run them.
class Set {
 public:
  struct Slot {
    uint64_t width = 0, count = 0;  // that many places hold a value of so many bytes
  };
  struct Told {
    std::vector<uint64_t> ranks;
    std::vector<Slot> slots;
    uint64_t width() const {
      uint64_t all = 0;
      for (const Slot& slot : slots) all += slot.width;
      return all;
    }
  };

  // Reads the description of a set.
  Error open(const Zip& zip) {
    Bytes table;
    if (Error error = zip.read("set.json", uint64_t{1} << 30, table)) return error;
    return read_table({table.begin(), table.end()})
               ? Error{}
               : make_error(Code::io, 0, 0, 0, "set.json tells no packed set; write the set again");
  }

  const std::vector<Told>& templates() const { return templates_; }

  // The ET of the rank at a place among those of a template; false if the set is damaged. `most` is
  // how many bytes it may have.
  bool read(const Zip& zip, size_t number, size_t place, uint64_t most, Bytes& out) {
    if (number >= templates_.size() || place >= templates_[number].ranks.size()) return false;
    if (!last_ || last_->number != number) {
      last_.reset();
      auto fresh = std::make_unique<Template>();
      fresh->number = number;
      if (!load(zip, templates_[number], *fresh)) return false;
      last_ = std::move(fresh);
    }
    return fill(templates_[number], *last_, place, most, out);
  }

 private:
  // The template that was read last: its nodes, the places of its slots one slot after the other,
  // values of all slots rank after rank, and where the first records of ranks lie.
  struct Template {
    size_t number = 0;
    Bytes nodes, slots, values, heads;
    std::vector<wire::Span> head;
  };

  bool read_table(wire::Span text) {
    JsonReader json(text);
    std::string format;
    bool ok = json.each_member("a table", [&](const std::string& key) {
      if (key == "format") return json.string(format);
      if (key != "templates") return json.skip();
      return json.each('[', ']', "a list of templates", [&] {
        templates_.emplace_back();
        return read_template(json, templates_.back());
      });
    });
    return ok && json.end() && format == "chakra-et packed set 1";
  }

  static bool read_template(JsonReader& json, Told& told) {
    return json.each_member("a template", [&](const std::string& key) {
      if (key == "ranks") {
        return json.each('[', ']', "a list of ranks", [&] {
          told.ranks.push_back(0);
          return json.number(told.ranks.back());
        });
      }
      if (key != "slots") return json.skip();
      return json.each('[', ']', "a list of slots", [&] {
        told.slots.emplace_back();
        return read_slot(json, told.slots.back());
      });
    });
  }

  static bool read_slot(JsonReader& json, Slot& slot) {
    bool ok = json.each_member("a slot", [&](const std::string& key) {
      if (key == "width") return json.number(slot.width);
      return key == "count" ? json.number(slot.count) : json.skip();
    });
    return ok && slot.width < most_in_a_member && slot.count < most_in_a_member;
  }

  static bool load(const Zip& zip, const Told& told, Template& out) {
    std::string number = "." + std::to_string(out.number) + ".zst";
    for (auto& part : {std::make_pair("nodes", &out.nodes), std::make_pair("slots", &out.slots),
                       std::make_pair("values", &out.values), std::make_pair("heads", &out.heads)}) {
      wire::Span packed;
      if (!zip.find(part.first + number, packed) || !unpack_frame(packed, wire::Span(), *part.second)) {
        return false;
      }
    }
    return has_sound_slots(told, out) && find_heads(told, out);
  }

  static bool has_sound_slots(const Told& told, const Template& found) {
    uint64_t left = found.slots.size() / 8, row = 0;
    const wire::Byte* at = found.slots.begin();
    for (const Slot& slot : told.slots) {
      if (slot.count > left) return false;
      left -= slot.count;
      row += slot.width;
      for (uint64_t n = 0; n < slot.count; ++n, at += 8) {
        uint64_t begin = wire::load_fixed(at, 8);
        if (begin > found.nodes.size() || slot.width > found.nodes.size() - begin) return false;
      }
    }
    uint64_t ranks = told.ranks.size();
    return left == 0 && found.slots.size() % 8 == 0 && row < most_in_a_member &&
           ranks < most_in_a_member / (row + 1) && found.values.size() == ranks * row;
  }

  static bool find_heads(const Told& told, Template& out) {
    const wire::Byte *at = out.heads.begin(), *end = out.heads.end();
    while (end - at >= 8) {
      uint64_t size = wire::load_fixed(at, 8);
      at += 8;
      if (size > static_cast<uint64_t>(end - at)) return false;
      out.head.push_back(wire::Span{at, at + size});
      at += size;
    }
    return at == end && out.head.size() == told.ranks.size();
  }

  // The first record of a rank, and behind it the nodes with the values of the rank in them.
  static bool fill(const Told& told, const Template& from, size_t place, uint64_t most, Bytes& out) {
    wire::Span head = from.head[place];
    if (head.size() + from.nodes.size() > most || !out.append(head.begin, head.size()) ||
        !out.append(from.nodes.data(), from.nodes.size())) {
      return false;
    }
    wire::Byte* nodes = out.data() + head.size();
    const wire::Byte* at = from.slots.begin();
    const wire::Byte* value = from.values.begin() + place * told.width();
    for (const Slot& slot : told.slots) {
      for (uint64_t n = 0; n < slot.count; ++n, at += 8) {
        if (slot.width != 0) std::memcpy(nodes + wire::load_fixed(at, 8), value, slot.width);
      }
      value += slot.width;
    }
    return true;
  }

  std::vector<Told> templates_;
  std::unique_ptr<Template> last_;
};

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_SET_HPP
