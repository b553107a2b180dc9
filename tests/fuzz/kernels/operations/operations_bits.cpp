// Shifts, logic, bit fields, bytes and moves between registers of several widths (PTX ISA 9.7.1, 9.7.8, 9.7.9).
#include "tests/fuzz/kernels/operations/operation_rows.h"

#include <bit>

namespace ptxrewrite::fuzz {

namespace {

constexpr std::pair<const char*, unsigned> untyped[] = {{"b16", 16}, {"b32", 32}, {"b64", 64}};
char letter_of(unsigned bits) {
  return bits == 16 ? 'h' : bits == 32 ? 'r' : 'd';
}

void add_logic(Rows& rows) {
  rows.group("logic");
  for (const auto& [name, bits] : untyped) {
    const std::string suffix = std::string(".") + name;
    const std::string two(2, letter_of(bits)), one(1, letter_of(bits));
    rows.add_value("and" + suffix, one[0], two, [](auto in) { return in[0] & in[1]; });
    rows.add_value("or" + suffix, one[0], two, [](auto in) { return in[0] | in[1]; });
    rows.add_value("xor" + suffix, one[0], two, [](auto in) { return in[0] ^ in[1]; });
    rows.add_value("not" + suffix, one[0], one, [](auto in) { return ~in[0]; });
    rows.add_value("cnot" + suffix, one[0], one, [](auto in) { return in[0] == 0 ? 1 : 0; });
  }
  rows.group("lop3");
  rows.add_value("lop3.b32", 'r', "rrrn", [](auto in) {
    uint64_t result = 0;
    for (unsigned bit = 0; bit < 32; ++bit) {
      const auto index = (in[0] >> bit & 1) << 2 | (in[1] >> bit & 1) << 1 | (in[2] >> bit & 1);
      result |= (in[3] >> index & 1) << bit;
    }
    return result;
  });
}

void add_shifts(Rows& rows) {
  rows.group("shift");
  for (const auto& [name, bits] : untyped) {
    const unsigned width = bits;
    const std::string sources = {letter_of(bits), 'c'};
    const auto logical = [width](auto in) { return in[1] >= width ? 0 : in[0] >> in[1]; };
    rows.add_value(std::string("shl.") + name, letter_of(bits), sources,
                   [width](auto in) { return in[1] >= width ? 0 : in[0] << in[1]; })
        .wraps = wraps_when(IntegerType{name, bits, false}, [](auto in, auto read) {
      return read(in[0]) * (Int128(1) << std::min<uint64_t>(in[1], 64));
    });
    rows.add_value(std::string("shr.") + name, letter_of(bits), sources, logical);
    rows.add_value("shr.u" + std::to_string(bits), letter_of(bits), sources, logical);
    rows.add_value("shr.s" + std::to_string(bits), letter_of(bits), sources,
                   [width](auto in) { return sign_extend(in[0], width) >> std::min<uint64_t>(in[1], width - 1); });
  }
  rows.group("funnel shift");
  for (const bool left : {false, true})
    for (const bool wraps : {false, true})
      rows.add_value(std::string(left ? "shf.l" : "shf.r") + (wraps ? ".wrap" : ".clamp") + ".b32", 'r', "rrc",
                     [=](auto in) {
                       const uint64_t both = in[1] << 32 | in[0];
                       const uint64_t count = wraps ? in[2] & 31 : std::min<uint64_t>(in[2], 32);
                       return left ? (both << count) >> 32 : both >> count;
                     });
}

uint64_t extract(uint64_t value, uint64_t position, uint64_t length, unsigned bits, bool is_signed) {
  position &= 0xff;
  length &= 0xff;
  if (length == 0) return 0;
  const uint64_t top = std::min<uint64_t>(position + length - 1, bits - 1);
  const uint64_t fill = is_signed ? value >> top & 1 : 0;
  uint64_t result = 0;
  for (uint64_t bit = 0; bit < bits; ++bit) {
    const bool inside = bit < length && position + bit < bits;
    result |= (inside ? value >> (position + bit) & 1 : fill) << bit;
  }
  return result;
}

uint64_t insert(uint64_t field, uint64_t base, uint64_t position, uint64_t length, unsigned bits) {
  position &= 0xff;
  length &= 0xff;
  for (uint64_t bit = 0; bit < length && position + bit < bits; ++bit) {
    const uint64_t mask = uint64_t(1) << (position + bit);
    base = (base & ~mask) | ((field >> bit & 1) != 0 ? mask : 0);
  }
  return base;
}

// Position of the highest bit that differs from the sign (signed) or is set; all ones if there is none.
uint64_t find_bit(uint64_t value, unsigned bits, bool is_signed) {
  if (is_signed && sign_extend(value, bits) < 0) value = cut(~value, bits);
  return value == 0 ? 0xffffffff : 63 - static_cast<uint64_t>(std::countl_zero(value));
}

void add_bit_counts(Rows& rows, unsigned bits) {
  const std::string suffix = ".b" + std::to_string(bits);
  const char letter = letter_of(bits);
  rows.group("bit counts");
  rows.add_value("popc" + suffix, 'r', {letter}, [](auto in) { return std::popcount(in[0]); });
  rows.add_value("clz" + suffix, 'r', {letter},
                 [bits](auto in) { return std::countl_zero(in[0]) - static_cast<int>(64 - bits); });
  rows.add_value("brev" + suffix, letter, {letter}, [bits](auto in) {
    uint64_t result = 0;
    for (unsigned bit = 0; bit < bits; ++bit)
      result |= (in[0] >> bit & 1) << (bits - 1 - bit);
    return result;
  });
  for (const bool is_signed : {false, true}) {
    const std::string typed = (is_signed ? ".s" : ".u") + std::to_string(bits);
    rows.add_value("bfind" + typed, 'r', {letter}, [=](auto in) { return find_bit(in[0], bits, is_signed); });
    rows.add_value("bfind.shiftamt" + typed, 'r', {letter}, [=](auto in) {
      const uint64_t found = find_bit(in[0], bits, is_signed);
      return found == 0xffffffff ? found : bits - 1 - found;
    });
  }
}

void add_bit_fields(Rows& rows) {
  for (const unsigned bits : {32u, 64u}) {
    const char letter = letter_of(bits);
    // Above 255 the manual and ptxas' code for the 64-bit instructions disagree.
    const char amount = bits == 64 ? 'k' : 'c';
    rows.group("bit fields");
    for (const bool is_signed : {false, true})
      rows.add_value((is_signed ? "bfe.s" : "bfe.u") + std::to_string(bits), letter, {letter, amount, amount},
                     [=](auto in) { return extract(in[0], in[1], in[2], bits, is_signed); });
    rows.add_value("bfi.b" + std::to_string(bits), letter, {letter, letter, amount, amount},
                   [bits](auto in) { return insert(in[0], in[1], in[2], in[3], bits); });
    add_bit_counts(rows, bits);
  }
  rows.group("bit fields");
  for (const bool wraps : {false, true}) {
    const std::string mode = wraps ? ".wrap" : ".clamp";
    rows.add_value("bmsk" + mode + ".b32", 'r', "cc", [=](auto in) {
      const uint64_t position = wraps ? in[0] & 31 : in[0];
      const uint64_t width = wraps ? in[1] & 31 : in[1];
      if (position >= 32) return uint64_t(0);
      return (width >= 32 ? uint64_t(0xffffffff) : cut(~uint64_t(0), static_cast<unsigned>(width))) << position;
    });
    for (const bool is_signed : {false, true})
      rows.add_value("szext" + mode + (is_signed ? ".s32" : ".u32"), 'r', "rc", [=](auto in) {
        const uint64_t width = wraps ? in[1] & 31 : in[1];
        if (width >= 32) return in[0];
        if (width == 0) return uint64_t(0);
        return static_cast<uint64_t>(number(in[0], static_cast<unsigned>(width), is_signed));
      });
  }
}

uint64_t byte_of(const uint64_t* in, uint64_t index) {
  return (in[1] << 32 | in[0]) >> (8 * index) & 0xff;
}

// The index of the byte of {b,a} for each byte of the result, in the modes with a number 0..3.
uint64_t chosen_byte(std::string_view mode, uint64_t k, uint64_t i) {
  if (mode == "f4e") return k + i;
  if (mode == "b4e") return (k - i) & 7;
  if (mode == "rc8") return k;
  if (mode == "ecl") return std::max(i, k);
  if (mode == "ecr") return std::min(i, k);
  return (k & 1) * 2 + (i & 1); // rc16
}

void add_permutes(Rows& rows) {
  rows.group("byte permute");
  rows.add_value("prmt.b32", 'r', "rrr", [](auto in) {
    uint64_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const uint64_t selector = in[2] >> (4 * i) & 0xf;
      uint64_t byte = byte_of(in, selector & 7);
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    return result;
  });
  for (const std::string mode : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})
    rows.add_value("prmt.b32." + mode, 'r', "rrr", [mode](auto in) {
      uint64_t result = 0;
      for (unsigned i = 0; i < 4; ++i)
        result |= byte_of(in, chosen_byte(mode, in[2] & 3, i)) << (8 * i);
      return result;
    });
}

void add_dot_products(Rows& rows) {
  rows.group("dot product");
  for (const bool first_signed : {false, true})
    for (const bool second_signed : {false, true}) {
      const std::string suffix = std::string(first_signed ? ".s32" : ".u32") + (second_signed ? ".s32" : ".u32");
      rows.add_value("dp4a" + suffix, 'r', "rrr", [=](auto in) {
        auto sum = static_cast<Int128>(in[2]);
        for (unsigned i = 0; i < 4; ++i)
          sum += number(in[0] >> (8 * i), 8, first_signed) * number(in[1] >> (8 * i), 8, second_signed);
        return sum;
      });
      for (const unsigned half : {0u, 1u})
        rows.add_value(std::string(half == 0 ? "dp2a.lo" : "dp2a.hi") + suffix, 'r', "rrr", [=](auto in) {
          auto sum = static_cast<Int128>(in[2]);
          for (unsigned i = 0; i < 2; ++i)
            sum += number(in[0] >> (16 * i), 16, first_signed) * number(in[1] >> (16 * half + 8 * i), 8, second_signed);
          return sum;
        });
    }
}

void add_moves(Rows& rows) {
  rows.group("move");
  rows.add_value("mov.b16", 'h', "h", [](auto in) { return in[0]; });
  rows.add_value("mov.u32", 'r', "r", [](auto in) { return in[0]; });
  rows.add_value("mov.b64", 'd', "d", [](auto in) { return in[0]; });

  rows.group("packed move");
  rows.add_value("mov.b32 $0, {$1, $2}", 'r', "HH", [](auto in) { return in[1] << 16 | in[0]; });
  rows.add_value("mov.b64 $0, {$1, $2}", 'd', "RR", [](auto in) { return in[1] << 32 | in[0]; });
  rows.add_value("mov.b64 $0, {$1, $2, $3, $4}", 'd', "HHHH",
                 [](auto in) { return in[3] << 48 | in[2] << 32 | in[1] << 16 | in[0]; });
  rows.add("mov.b32 {$0, $1}, $2", "hh", "R", [](auto in, auto out) {
    out[0] = in[0] & 0xffff;
    out[1] = in[0] >> 16;
  });
  rows.add("mov.b64 {$0, $1}, $2", "rr", "D", [](auto in, auto out) {
    out[0] = in[0] & 0xffffffff;
    out[1] = in[0] >> 32;
  });
  rows.add("mov.b64 {$0, $1, $2, $3}, $4", "hhhh", "D", [](auto in, auto out) {
    for (unsigned i = 0; i < 4; ++i)
      out[i] = in[0] >> (16 * i) & 0xffff;
  });
  rows.add_value("mov.b64 {_, $0}, $1", 'r', "D", [](auto in) { return in[0] >> 32; });
  rows.add_value("mov.b32 {$0, _}, $1", 'h', "R", [](auto in) { return in[0] & 0xffff; });
}

void add_search(Rows& rows) {
  rows.group("find n-th set");
  // The base is an immediate 0..31 and the offset one of a few: larger bases are undefined.
  for (const int base : {0, 7, 31})
    for (const int offset : {-2, 0, 1, 3})
      rows.add_value("fns.b32 $0, $1, " + std::to_string(base) + ", " + std::to_string(offset), 'r', "r",
                     [=](auto in) -> uint64_t {
                       if (offset == 0) return (in[0] >> base & 1) != 0 ? static_cast<uint64_t>(base) : 0xffffffff;
                       int left = std::abs(offset);
                       for (int bit = base; bit >= 0 && bit < 32; bit += offset < 0 ? -1 : 1)
                         if ((in[0] >> bit & 1) != 0 && --left == 0) return static_cast<uint64_t>(bit);
                       return 0xffffffff;
                     });
}

} // namespace

std::vector<Operation> bit_operations() {
  Rows rows("");
  add_logic(rows);
  add_shifts(rows);
  add_bit_fields(rows);
  add_permutes(rows);
  add_dot_products(rows);
  add_moves(rows);
  add_search(rows);
  return rows.take();
}

} // namespace ptxrewrite::fuzz
