// cvt between integers, between floats, and across (PTX ISA 9.7.9.21).
#include "tests/fuzz/kernels/float_arithmetic.h"
#include "tests/fuzz/kernels/operations/operation_rows.h"

#include <algorithm>

namespace ptxrewrite::fuzz {

namespace {

constexpr IntegerType integer_types[] = {{"s8", 8, true},   {"u8", 8, false},   {"s16", 16, true}, {"u16", 16, false},
                                         {"s32", 32, true}, {"u32", 32, false}, {"s64", 64, true}, {"u64", 64, false}};

// 8-bit numbers are in wider registers, of 16 or 32 bits.
char register_letter(const IntegerType& type, bool in_32_bits) {
  return type.bits == 8 && in_32_bits ? 'r' : type.letter();
}

void add_between_integers(Rows& rows) {
  rows.group("integer conversion");
  size_t turn = 0;
  for (const IntegerType& to : integer_types)
    for (const IntegerType& from : integer_types) {
      const std::string types = std::string(".") + to.name + "." + from.name;
      const char result = register_letter(to, turn % 2 == 0);
      const char source = register_letter(from, turn % 3 == 0);
      ++turn;
      // The value is truncated to the type, then extended to the register.
      rows.add_value("cvt" + types, result, {static_cast<char>(source - 'a' + 'A')}, [to, from](auto in) {
        return number(static_cast<uint64_t>(number(in[0], from.bits, from.is_signed)), to.bits, to.is_signed);
      });
      if (from.least() >= to.least() && from.greatest() <= to.greatest()) continue; // .sat is refused
      rows.add_value("cvt.sat" + types, result, {static_cast<char>(source - 'a' + 'A')}, [to, from](auto in) {
        return std::clamp(number(in[0], from.bits, from.is_signed), to.least(), to.greatest());
      });
    }
}

double float_value(char letter, uint64_t bits, bool flushes) {
  if (letter == 'e') return half_value(flushes ? flush_half(bits) : bits);
  if (letter == 'g') return to_double(bits);
  return flush_if(flushes, to_float(bits));
}

constexpr std::pair<const char*, char> float_types[] = {{"f16", 'e'}, {"f32", 'f'}, {"f64", 'g'}};

void add_to_integers(Rows& rows) {
  rows.group("float to integer");
  size_t turn = 0;
  for (const auto& [name, float_letter] : float_types)
    for (const IntegerType& to : integer_types) {
      for (const Rounding rounding : all_roundings) {
        if (to.bits == 8 && (turn++ % 2) != 0) continue;
        const char letter = float_letter;
        const bool flushes = letter == 'f' && turn % 3 == 0;
        const std::string text =
            std::string("cvt.") + rounding_name(rounding) + "i" + (flushes ? ".ftz." : ".") + to.name + "." + name;
        rows.add_value(text, register_letter(to, true), {letter}, [=](auto in) {
          const uint64_t bits = to_integer(float_value(letter, in[0], flushes), rounding, to.bits, to.is_signed,
                                           letter == 'g' || to.bits == 64);
          return number(bits, to.bits, to.is_signed);
        });
        ++turn;
      }
    }
}

// A signed or unsigned number of up to 64 bits is exact in a long double, which leaves one rounding.
uint64_t from_integer(char letter, Int128 value, Rounding rounding) {
  if (letter == 'e') return round_to_half(static_cast<ExactNumber>(value), rounding, false);
  const RoundingScope scope(rounding);
  volatile long double exact = static_cast<long double>(value);
  if (letter == 'g') return bits_of(static_cast<double>(exact));
  return bits_of(static_cast<float>(exact));
}

void add_from_integers(Rows& rows) {
  rows.group("integer to float");
  for (const auto& [name, float_letter] : float_types)
    for (const IntegerType& from : integer_types)
      for (const Rounding rounding : all_roundings) {
        const char letter = float_letter;
        const std::string text = std::string("cvt.") + rounding_name(rounding) + "." + name + "." + from.name;
        const char source = static_cast<char>(register_letter(from, true) - 'a' + 'A');
        rows.add_value(text, letter, {source}, [=](auto in) {
          return from_integer(letter, number(in[0], from.bits, from.is_signed), rounding);
        });
      }
}

void add_between_floats(Rows& rows) {
  rows.group("float conversion");
  rows.add_value("cvt.f32.f16", 'f', "e", [](auto in) { return bits_of(static_cast<float>(half_value(in[0]))); });
  rows.add_value("cvt.f64.f16", 'g', "e", [](auto in) { return bits_of(half_value(in[0])); });
  rows.add_value("cvt.f64.f32", 'g', "f", [](auto in) { return bits_of(double(to_float(in[0]))); });
  rows.add_value("cvt.ftz.f64.f32", 'g', "f", [](auto in) { return bits_of(double(flush(to_float(in[0])))); });
  rows.add_value("cvt.sat.f32.f32", 'f', "f", [](auto in) { return bits_of(saturate(to_float(in[0]))); });
  for (const Rounding rounding : all_roundings) {
    const std::string name = rounding_name(rounding);
    for (const bool flushes : {false, true})
      rows.add_value("cvt." + name + (flushes ? ".ftz" : "") + ".f32.f64", 'f', "g", [=](auto in) {
        const RoundingScope scope(rounding);
        volatile double source = to_double(in[0]);
        volatile float result = static_cast<float>(source);
        volatile double large = source * flush_scale;
        volatile float scaled = static_cast<float>(large);
        return bits_of(flushes ? flush_by(result, scaled) : result);
      });
    rows.add_value("cvt." + name + ".f16.f32", 'e', "f",
                   [=](auto in) { return double_to_half(to_float(in[0]), rounding); });
    rows.add_value("cvt." + name + ".f16.f64", 'e', "g",
                   [=](auto in) { return double_to_half(to_double(in[0]), rounding); });
    rows.add_value("cvt." + name + "i.f32.f32", 'f', "f",
                   [=](auto in) { return bits_of(static_cast<float>(round_to_integral(to_float(in[0]), rounding))); });
    rows.add_value("cvt." + name + "i.f64.f64", 'g', "g",
                   [=](auto in) { return bits_of(round_to_integral(to_double(in[0]), rounding)); });
    rows.add_value("cvt." + name + "i.f16.f16", 'e', "e",
                   [=](auto in) { return double_to_half(round_to_integral(half_value(in[0]), rounding), rounding); });
  }
  // The first source becomes the high half.
  for (const Rounding rounding : {Rounding::nearest, Rounding::zero})
    rows.add_value(std::string("cvt.") + rounding_name(rounding) + ".f16x2.f32", 'w', "ff", [=](auto in) {
      return double_to_half(to_float(in[0]), rounding) << 16 | double_to_half(to_float(in[1]), rounding);
    });
}

} // namespace

std::vector<Operation> conversion_operations() {
  Rows rows("");
  add_between_integers(rows);
  add_to_integers(rows);
  add_from_integers(rows);
  add_between_floats(rows);
  return rows.take();
}

} // namespace ptxrewrite::fuzz
