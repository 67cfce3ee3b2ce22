// Is something a packed file, or a rank in one?
#ifndef CHAKRA_ET_PACK_PLACE_HPP
#define CHAKRA_ET_PACK_PLACE_HPP

#include <cstdio>
#include <filesystem>
#include <string>

#include "../wire.hpp"

namespace chakra_et {
namespace pack {

inline bool is_zip(const wire::Byte* p, size_t n) {
  return n >= 4 && p[0] == 'P' && p[1] == 'K' && ((p[2] == 3 && p[3] == 4) || (p[2] == 5 && p[3] == 6));
}

inline bool is_zip(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  wire::Byte head[4];
  size_t got = std::fread(head, 1, sizeof head, file);
  std::fclose(file);
  return is_zip(head, got);
}

// The packed file that a path leads into, as run.pack/trace.0.et does; "" if it leads into none.
inline std::string packed_in(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return is_zip(folder) ? folder : std::string();
}

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_PLACE_HPP
