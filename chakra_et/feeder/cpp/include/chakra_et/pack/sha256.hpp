// SHA-256, as FIPS 180-4 defines it: packed ETs are held against it.
#ifndef CHAKRA_ET_PACK_SHA256_HPP
#define CHAKRA_ET_PACK_SHA256_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "../wire.hpp"

namespace chakra_et {
namespace pack {

class Sha256 {
 public:
  // The hash of some bytes, in hexadecimal.
  static std::string hex(wire::Span data) {
    Sha256 hash;
    const wire::Byte* p = data.begin;
    for (; data.end - p >= 64; p += 64) hash.block(p);
    auto left = static_cast<size_t>(data.end - p);
    wire::Byte last[128] = {};
    if (left != 0) std::memcpy(last, p, left);
    last[left] = 0x80;
    size_t size = left < 56 ? 64 : 128;
    uint64_t bits = static_cast<uint64_t>(data.size()) * 8;
    for (size_t i = 0; i < 8; ++i) last[size - 1 - i] = static_cast<wire::Byte>(bits >> 8 * i);
    for (size_t at = 0; at < size; at += 64) hash.block(last + at);
    return hash.text();
  }

 private:
  static uint32_t turn(uint32_t x, unsigned by) { return x >> by | x << (32 - by); }

  void block(const wire::Byte* p) {
    uint32_t w[64];
    for (size_t i = 0; i < 16; ++i) {
      w[i] = uint32_t{p[4 * i]} << 24 | uint32_t{p[4 * i + 1]} << 16 | uint32_t{p[4 * i + 2]} << 8 |
             uint32_t{p[4 * i + 3]};
    }
    for (size_t i = 16; i < 64; ++i) {
      uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
             (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    std::array<uint32_t, 8> s = state_;
    for (size_t i = 0; i < 64; ++i) {
      uint32_t sum = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25);
      uint32_t first = s[7] + sum + ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + w[i];
      uint32_t other = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
      uint32_t second = other + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i) state_[i] += s[i];
  }

  std::string text() const {
    std::string out;
    for (uint32_t word : state_) {
      for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
    }
    return out;
  }

  static constexpr uint32_t rounds[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

}  // namespace pack
}  // namespace chakra_et

#endif  // CHAKRA_ET_PACK_SHA256_HPP
