// The files of the ranks of one run: PREFIX.RANK.et, compressed or not.
#ifndef CHAKRA_ET_RANKS_HPP
#define CHAKRA_ET_RANKS_HPP

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "error.hpp"

namespace chakra_et {

struct RankFile {
  std::string prefix;
  uint64_t rank = 0;
};

// The parts of the name of a file; false if it is not that of a rank.
inline bool parse_rank_file(std::string name, RankFile& out) {
  for (const char* ending : {".gz", ".zst"}) {
    std::string text = ending;
    if (name.size() > text.size() && name.compare(name.size() - text.size(), text.npos, text) == 0) {
      name.resize(name.size() - text.size());
      break;
    }
  }
  if (name.size() < 6 || name.compare(name.size() - 3, 3, ".et") != 0) return false;
  name.resize(name.size() - 3);
  size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) return false;
  std::string digits = name.substr(dot + 1);
  if (digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos) return false;
  out.prefix = name.substr(0, dot);
  out.rank = std::strtoull(digits.c_str(), nullptr, 10);
  return true;
}

// By rank, the files of a directory that holds one run, or those of a prefix.
inline Result<std::map<uint64_t, std::string>> find_ranks(const std::string& source) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path place(source), folder = place;
  std::string prefix;
  if (!fs::is_directory(place, failed)) {
    folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
    prefix = place.filename().string();
  }
  std::map<uint64_t, std::string> files;
  std::set<std::string> prefixes;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    RankFile file;
    if (!parse_rank_file(at->path().filename().string(), file)) continue;
    if (!prefix.empty() && prefix != file.prefix) continue;
    files[file.rank] = at->path().string();
    prefixes.insert(file.prefix);
  }
  if (files.empty()) {
    return in_file(make_error(Code::io, 0, 0, 0, "no files PREFIX.RANK.et here"), source);
  }
  if (prefixes.size() > 1) {
    return in_file(make_error(Code::io, 0, 0, 0, "files of several runs; name a prefix"), source);
  }
  return files;
}

}  // namespace chakra_et

#endif  // CHAKRA_ET_RANKS_HPP
