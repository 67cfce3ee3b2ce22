// Arguments of records that become columns.
#ifndef CHAKRA_ET_KERNEL_PROFILE_ARGUMENTS_HPP
#define CHAKRA_ET_KERNEL_PROFILE_ARGUMENTS_HPP

#include <array>
#include <cstdint>
#include <string_view>

namespace chakra_et {
namespace kernel {

// Arguments that are numbers: the keys of which the first that is told counts, and who can have them.
struct Argument {
  std::array<std::string_view, 4> keys;
  int64_t absent;
  bool of_operations, of_others;
};
constexpr std::array<Argument, 8> arguments = {{
    {{"External id", "external id"}, 0, true, true},
    {{"Record function id"}, 0, true, true},
    {{"Sequence number"}, -1, true, false},
    {{"Fwd thread id"}, 0, true, false},
    {{"correlation", "connection_id"}, -1, false, true},
    {{"original_stream", "stream", "sycl queue", "stream_id"}, -1, false, true},
    {{"bytes"}, -1, false, true},
    {{"device", "inDevice", "device_id"}, -1, false, true},
}};
constexpr char shapes_key[] = "Input Dims";

// Which argument a key stands for, and which of its keys it is.
class ArgumentKeys {
 public:
  struct Place {
    std::string_view key;
    uint8_t argument, number;
  };

  ArgumentKeys() {
    for (size_t a = 0; a < arguments.size(); ++a) {
      for (size_t k = 0; k < arguments[a].keys.size() && !arguments[a].keys[k].empty(); ++k) {
        size_t at = first_slot(arguments[a].keys[k]);
        while (!slots_[at].key.empty()) at = (at + 1) % slots_.size();
        slots_[at] = {arguments[a].keys[k], static_cast<uint8_t>(a), static_cast<uint8_t>(k)};
      }
    }
  }

  // Nothing for a key of no argument.
  const Place* find(std::string_view key) const {
    if (key.empty()) return nullptr;
    for (size_t at = first_slot(key); !slots_[at].key.empty(); at = (at + 1) % slots_.size()) {
      if (slots_[at].key == key) return &slots_[at];
    }
    return nullptr;
  }

 private:
  size_t first_slot(std::string_view key) const {
    auto first = static_cast<uint8_t>(key.front()), last = static_cast<uint8_t>(key.back());
    return (key.size() * 37 + first * 5u + last * 11u) % slots_.size();
  }

  std::array<Place, 64> slots_{};
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_PROFILE_ARGUMENTS_HPP
