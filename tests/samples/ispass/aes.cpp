// AES-128 byte by byte as FIPS 197 states it: SubBytes from inversion and the affine map, ShiftRows, MixColumns,
// AddRoundKey. Checks itself against the standard's example, which is also the first block of the sample.
#include "tests/samples/reference.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace {

using Byte = std::uint8_t;
using State = std::array<Byte, 16>; // column by column

Byte product(Byte a, Byte b) {
  Byte sum = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) sum ^= a;
    a = static_cast<Byte>((a << 1) ^ ((a & 0x80) != 0 ? 0x1b : 0));
  }
  return sum;
}

std::array<Byte, 256> make_substitution() {
  std::array<Byte, 256> table{};
  for (int x = 0; x < 256; ++x) {
    Byte inverse = 0;
    for (int y = 1; y < 256; ++y) {
      if (product(static_cast<Byte>(x), static_cast<Byte>(y)) == 1) inverse = static_cast<Byte>(y);
    }
    int image = 0x63;
    for (int bit = 0; bit < 8; ++bit) {
      const int sum = (inverse >> bit) ^ (inverse >> ((bit + 4) % 8)) ^ (inverse >> ((bit + 5) % 8)) ^
                      (inverse >> ((bit + 6) % 8)) ^ (inverse >> ((bit + 7) % 8));
      image ^= (sum & 1) << bit;
    }
    table[x] = static_cast<Byte>(image);
  }
  return table;
}

const std::array<Byte, 256> substitution = make_substitution();

std::array<Byte, 176> expand(std::span<const Byte> key) {
  std::array<Byte, 176> keys{};
  std::copy(key.begin(), key.end(), keys.begin());
  Byte constant = 1;
  for (int word = 4; word < 44; ++word) {
    std::array<Byte, 4> last{};
    std::copy_n(keys.begin() + 4 * (word - 1), 4, last.begin());
    if (word % 4 == 0) {
      std::rotate(last.begin(), last.begin() + 1, last.end());
      for (Byte& byte : last)
        byte = substitution[byte];
      last[0] ^= constant;
      constant = product(constant, 2);
    }
    for (int byte = 0; byte < 4; ++byte) {
      keys[4 * word + byte] = keys[4 * (word - 4) + byte] ^ last[byte];
    }
  }
  return keys;
}

// The keys of the equivalent inverse cipher (FIPS 197, 5.3.5): the rounds from last to first, the inner ones through
// InvMixColumns.
std::array<Byte, 176> inverse_keys(const std::array<Byte, 176>& keys) {
  std::array<Byte, 176> inverse{};
  for (int round = 0; round <= 10; ++round) {
    for (int i = 0; i < 16; ++i) {
      const auto key = [&](int below) { return keys[16 * (10 - round) + i / 4 * 4 + (i + below) % 4]; };
      const bool inner = round > 0 && round < 10;
      inverse[16 * round + i] =
          inner ? product(key(0), 14) ^ product(key(1), 11) ^ product(key(2), 13) ^ product(key(3), 9) : key(0);
    }
  }
  return inverse;
}

State encrypted(State state, const std::array<Byte, 176>& keys) {
  const auto add_key = [&](int round) {
    for (int i = 0; i < 16; ++i)
      state[i] ^= keys[16 * round + i];
  };
  add_key(0);
  for (int round = 1; round <= 10; ++round) {
    State shifted{};
    for (int column = 0; column < 4; ++column) {
      for (int row = 0; row < 4; ++row) {
        shifted[4 * column + row] = substitution[state[4 * ((column + row) % 4) + row]];
      }
    }
    state = shifted;
    if (round < 10) {
      for (int column = 0; column < 4; ++column) {
        for (int row = 0; row < 4; ++row) {
          const auto from = [&](int below) { return shifted[4 * column + (row + below) % 4]; };
          state[4 * column + row] = product(from(0), 2) ^ product(from(1), 3) ^ from(2) ^ from(3);
        }
      }
    }
    add_key(round);
  }
  return state;
}

} // namespace

REFERENCE(aes) {
  const auto plain = data.u8("plain");
  const auto cipher = data.u8("cipher");
  const auto keys = expand(data.u8("key"));
  std::copy(keys.begin(), keys.end(), data.u8("round_keys").begin());
  const auto backward_keys = inverse_keys(keys);
  std::copy(backward_keys.begin(), backward_keys.end(), data.u8("inverse_keys").begin());
  std::copy(plain.begin(), plain.end(), data.u8("decrypted").begin());

  for (std::size_t block = 0; block < plain.size(); block += 16) {
    State state{};
    std::copy_n(plain.begin() + block, 16, state.begin());
    state = encrypted(state, keys);
    std::copy(state.begin(), state.end(), cipher.begin() + block);
  }

  const State example = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30,
                         0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};
  if (!std::equal(example.begin(), example.end(), cipher.begin())) {
    throw std::logic_error("the reference AES does not give the example of FIPS 197, appendix C.1");
  }
}
