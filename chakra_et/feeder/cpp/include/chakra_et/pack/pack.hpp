// Ranks in one file, as `chakra pack` writes them (docs/pack.md), or `chakra generate --pack`: each
// becomes the bytes of its ET, read without the others. Needs zstd, and the latter zlib.
#ifndef CHAKRA_ET_PACK_PACK_HPP
#define CHAKRA_ET_PACK_PACK_HPP

#include <zstd.h>

#include <filesystem>
#include <string>

#include "../groups.hpp"
#include "../json.hpp"
#include "../source.hpp"
#include "encoder.hpp"
#include "set.hpp"
#include "sha256.hpp"
#include "zip.hpp"

namespace chakra_et {
namespace pack {

// What the table of a packed file says of a rank.
struct Entry {
  uint64_t rank = 0, bytes = 0, group = 0;
  bool has_group = false;  // else the bytes of its ET are kept
  size_t place = 0;        // in a set, among the ranks of the template `group`
  std::string sha256;
};

class Pack {
 public:
  static Result<Pack> open(const std::string& path) {
    Result<Blob> blob = Blob::map(path.c_str());
    if (!blob) return in_file(blob.error(), path);
    return from_blob(std::move(blob.value()), path);
  }

  // `path` is what errors call it.
  static Result<Pack> from_blob(Blob&& blob, const std::string& path) {
    Pack pack(path, std::move(blob));
    wire::Span table;
    bool is_zip = pack.zip_.open(pack.blob_.span());
    if (is_zip && !pack.zip_.has("pack.json") && pack.zip_.has("set.json")) {
      if (Error error = pack.read_set()) return in_file(error, path);
      return pack;
    }
    bool read = is_zip && pack.zip_.find("pack.json", table) && pack.read_table(table);
    if (read) return pack;
    return in_file(make_error(Code::io, 0, 0, 0,
                              "this was not made by chakra pack, or it is damaged; copy it again, or "
                              "pack the ETs again"),
                   path);
  }

  const std::vector<Entry>& entries() const { return entries_; }
  std::string name(const Entry& entry) const {
    return prefix_ + "." + std::to_string(entry.rank) + ".et";
  }
  const Entry* find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (this->name(entry) == name) return &entry;
    }
    return nullptr;
  }

  // The process groups that a file beside the ranks tells, as ASTRA-sim takes them; none without one.
  Result<Groups> groups() const {
    for (const char* name : {"comm_groups.json", "comm_group.json"}) {
      if (!zip_.has(name)) continue;
      Bytes text;
      if (Error error = zip_.read(name, uint64_t{1} << 26, text)) return in_file(error, path_ + "/" + name);
      Result<Groups> found = parse_groups({text.begin(), text.end()});
      if (!found) return in_file(found.error(), path_ + "/" + name);
      return found;
    }
    return Groups();
  }

  // The ET of a rank, which may have so many bytes.
  Result<Blob> read(const Entry& entry, uint64_t most) {
    Result<Blob> blob = entry.bytes > most ? make_error(Code::too_large, 0, entry.bytes)
                                           : unpacked(entry, most);
    if (!blob) return in_file(blob.error(), path_ + "/" + name(entry));
    return blob;
  }

 private:
  // The columns of the class that was read last, and what they point into.
  struct Class {
    uint64_t number = 0;
    Bytes encoded;
    Value value;
    Columns columns;
  };

  Pack() = default;
  friend class chakra_et::Result<Pack>;
  Pack(std::string path, Blob&& blob) : path_(std::move(path)), blob_(std::move(blob)) {}

  bool read_table(wire::Span table) {
    JsonReader json(table);
    std::string format;
    bool ok = json.each_member("a table", [&](const std::string& key) {
      if (key == "format") return json.string(format);
      if (key == "prefix") return json.string(prefix_);
      if (key != "ranks") return json.skip();
      return json.each('[', ']', "a list of ranks", [&] {
        entries_.emplace_back();
        return read_entry(json, entries_.back());
      });
    });
    return ok && json.end() && format == "chakra-et pack 1" && !prefix_.empty() &&
           prefix_.find_first_of("/\\") == std::string::npos;
  }

  Error read_set() {
    set_ = std::make_unique<Set>();
    if (Error error = set_->open(zip_)) return error;
    for (size_t number = 0; number < set_->templates().size(); ++number) {
      const std::vector<uint64_t>& ranks = set_->templates()[number].ranks;
      for (size_t place = 0; place < ranks.size(); ++place) {
        Entry entry;
        entry.rank = ranks[place];
        entry.group = number;
        entry.place = place;
        entries_.push_back(std::move(entry));
      }
    }
    return Error{};
  }

  static bool read_entry(JsonReader& json, Entry& entry) {
    return json.each_member("a rank", [&](const std::string& key) {
      if (key == "rank") return json.number(entry.rank);
      if (key == "bytes") return json.number(entry.bytes);
      if (key == "sha256") return json.string(entry.sha256);
      if (key != "group" || json.null()) return key == "group" || json.skip();
      entry.has_group = true;
      return json.number(entry.group);
    });
  }

  Result<Blob> unpacked(const Entry& entry, uint64_t most) {
    static const char damaged[] =
        "damaged: this is not the rank that was packed; copy the packed file again, or pack the ETs again";
    Bytes out;
    try {
      if (set_) {
        if (set_->read(zip_, static_cast<size_t>(entry.group), entry.place, most, out)) {
          return Blob::own(std::move(out));
        }
        return make_error(Code::io, 0, 0, 0,
                          "the packed set is damaged, or its ranks are too large; copy it again, or "
                          "write it again");
      }
      bool made = entry.has_group ? of_class(entry, out) : as_bytes(entry, out);
      if (!made || out.size() != entry.bytes || Sha256::hex({out.begin(), out.end()}) != entry.sha256) {
        return make_error(Code::io, 0, 0, 0, damaged);
      }
    } catch (const std::bad_alloc&) {
      return make_error(Code::out_of_memory);
    }
    return Blob::own(std::move(out));
  }

  bool as_bytes(const Entry& entry, Bytes& out) const {
    return inflate("rank." + std::to_string(entry.rank), wire::Span(), out);
  }

  bool of_class(const Entry& entry, Bytes& out) {
    if (!class_ || class_->number != entry.group) {
      class_.reset();
      auto fresh = std::make_unique<Class>();
      fresh->number = entry.group;
      if (!inflate("class." + std::to_string(entry.group), wire::Span(), fresh->encoded) ||
          !MsgpackReader({fresh->encoded.begin(), fresh->encoded.end()}).read(fresh->value) ||
          !decode_class(fresh->value, fresh->columns)) {
        return false;
      }
      class_ = std::move(fresh);
    }
    Bytes encoded;
    Value value;
    Columns columns;
    wire::Span beside{class_->encoded.begin(), class_->encoded.end()};
    return inflate("rank." + std::to_string(entry.rank), beside, encoded) &&
           MsgpackReader({encoded.begin(), encoded.end()}).read(value) &&
           decode_rank(value, class_->columns, columns) && Encoder(columns).write(entry.bytes, out);
  }

  // The content of a member, which is compressed for whoever has what is `beside` it.
  bool inflate(const std::string& name, wire::Span beside, Bytes& out) const {
    wire::Span packed;
    return zip_.find(name, packed) && unpack_frame(packed, beside, out);
  }

  std::string path_, prefix_ = "trace";
  Blob blob_;
  Zip zip_;
  std::vector<Entry> entries_;
  std::unique_ptr<Class> class_;
  std::unique_ptr<Set> set_;
};

// The ET that a path names in a packed file.
inline Result<Blob> read_packed(const std::string& archive, const std::string& path, uint64_t most) {
  Result<Pack> pack = Pack::open(archive);
  if (!pack) return pack.error();
  const Entry* entry = pack->find(std::filesystem::path(path).filename().string());
  if (entry != nullptr) return pack->read(*entry, most);
  return make_error(Code::io, 0, 0, 0, "no such rank in the packed file");
}

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_PACK_HPP
