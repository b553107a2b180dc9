// SHA-1 of a byte string as in FIPS 180-4, including the padding. Checks itself against the standard's "abc".
#include "tests/samples/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes padded(Bytes message) {
  const std::uint64_t bits = message.size() * 8;
  message.push_back(0x80);
  while (message.size() % 64 != 56)
    message.push_back(0);
  for (int byte = 7; byte >= 0; --byte)
    message.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
  return message;
}

Bytes sha1(const Bytes& text) {
  const Bytes message = padded(text);
  std::array<std::uint32_t, 5> hash = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t block = 0; block < message.size(); block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (int t = 0; t < 80; ++t) {
      if (t < 16) {
        for (int byte = 0; byte < 4; ++byte)
          w[t] = w[t] << 8 | message[block + 4 * t + byte];
      } else {
        w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
      }
    }
    auto [a, b, c, d, e] = hash;
    for (int t = 0; t < 80; ++t) {
      const std::uint32_t choose = (b & c) | (~b & d);
      const std::uint32_t parity = b ^ c ^ d;
      const std::uint32_t majority = (b & c) | (b & d) | (c & d);
      const std::uint32_t f = t < 20 ? choose : t < 40 ? parity : t < 60 ? majority : parity;
      const std::uint32_t k = t < 20 ? 0x5a827999 : t < 40 ? 0x6ed9eba1 : t < 60 ? 0x8f1bbcdc : 0xca62c1d6;
      const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[t];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    hash[0] += a;
    hash[1] += b;
    hash[2] += c;
    hash[3] += d;
    hash[4] += e;
  }
  Bytes digest;
  for (const std::uint32_t word : hash) {
    for (int byte = 3; byte >= 0; --byte)
      digest.push_back(static_cast<std::uint8_t>(word >> (8 * byte)));
  }
  return digest;
}

} // namespace

REFERENCE(sha1) {
  const Bytes example = {0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e,
                         0x25, 0x71, 0x78, 0x50, 0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d};
  if (sha1({'a', 'b', 'c'}) != example) {
    throw std::logic_error("the reference SHA-1 does not give the standard's digest of \"abc\"");
  }

  const std::size_t chunks = data.value("chunks");
  const auto file = data.u8("file");
  const auto digests = data.u8("digests");
  const std::size_t size = file.size() / chunks;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const auto first = file.begin() + chunk * size;
    const Bytes digest = sha1(Bytes(first, first + size));
    std::copy(digest.begin(), digest.end(), digests.begin() + 20 * chunk);
  }
}
