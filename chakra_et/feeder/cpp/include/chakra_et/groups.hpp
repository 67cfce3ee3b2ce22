// Process groups: which ranks belong together, from comm_groups.json or from a trace's metadata.
#ifndef CHAKRA_ET_GROUPS_HPP
#define CHAKRA_ET_GROUPS_HPP

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "error.hpp"
#include "json.hpp"
#include "source.hpp"

namespace chakra_et {

using Groups = std::map<std::string, std::vector<uint64_t>>;  // name -> ranks, ascending

inline bool read_ranks(JsonReader& json, std::vector<uint64_t>& ranks) {
  ranks.clear();
  bool ok = json.each('[', ']', "a group must be a list of ranks", [&] {
    ranks.push_back(0);
    return json.number(ranks.back());
  });
  std::sort(ranks.begin(), ranks.end());
  return ok;
}

// The text of comm_groups.json, as ASTRA-sim takes it: {"1": [0, 2], "2": [1, 3]}. Of a name that
// occurs twice the last one counts.
inline Result<Groups> parse_groups(wire::Span text) {
  JsonReader json(text);
  Groups groups;
  bool ok = json.each_member("expected an object with a list of ranks for each group", [&](const std::string& name) {
    return read_ranks(json, groups[name]);
  });
  if (ok && json.end()) return groups;
  return make_error(Code::bad_groups, 0, 0, json.offset(), json.problem());
}

// The text of the trace attribute process_groups: [{"pg_name": "1", "ranks": [0, 2]}]. Groups
// without ranks are left out, and so is everything when the text is none of that sort.
inline Groups parse_told_groups(std::string_view text) {
  auto begin = reinterpret_cast<const wire::Byte*>(text.data());
  JsonReader json(wire::Span{begin, begin + text.size()});
  Groups groups;
  bool ok = json.each('[', ']', "a list of groups", [&] {
    std::string name;
    std::vector<uint64_t> ranks;
    bool named = false;
    bool read = json.each_member("a group", [&](const std::string& key) {
      if (key == "pg_name") return named = json.string(name);
      return key == "ranks" ? read_ranks(json, ranks) : json.skip();
    });
    if (read && named && !ranks.empty()) groups.emplace(name, ranks);
    return read && (named || json.fail("a group without a name"));
  });
  return ok && json.end() ? groups : Groups();
}

// A file of at most `limit` bytes.
inline Result<Groups> read_groups(const std::string& path, uint64_t limit = 1u << 26) {
  Result<Blob> blob = Blob::map(path.c_str());
  if (!blob) return in_file(blob.error(), path);
  if (blob->span().size() > limit) {
    return in_file(make_error(Code::bad_groups, 0, 0, limit, "the file is too long"), path);
  }
  Result<Groups> groups = parse_groups(blob->span());
  if (!groups) return in_file(groups.error(), path);
  return groups;
}

}  // namespace chakra_et

#endif  // CHAKRA_ET_GROUPS_HPP
