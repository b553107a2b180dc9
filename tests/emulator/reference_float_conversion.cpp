// Conversions from or to floats: by MPFR, and by tables of the values of narrow formats.
#include "tests/emulator/reference.h"
#include "tests/emulator/reference_float.h"
#include "tests/unit/emulator/semantics/narrow_floats.h"

namespace ptxrewrite::test {

#ifndef PTXREWRITE_HAVE_MPFR

Reference float_conversion_reference(const Statement&) {
  return {};
}

#else

namespace {

using ir::ScalarType;

// --- integers ---

mpfr_rnd_t integer_rounding(const Statement& statement) {
  return statement.has("rzi")   ? MPFR_RNDZ
         : statement.has("rmi") ? MPFR_RNDD
         : statement.has("rpi") ? MPFR_RNDU
                                : MPFR_RNDN;
}

double integral(const Statement& statement, double value) {
  const Number operand(value);
  Number result(0, 53);
  mpfr_rint(result, operand, integer_rounding(statement));
  return std::copysign(mpfr_get_d(result, MPFR_RNDN), value);
}

Reference to_integer(const Statement& statement) {
  const Element source = element_of(statement.type(1));
  const ScalarType target = statement.type();
  const unsigned bits = ir::bit_width(target);
  return [=](const ReferenceInput& in) -> ReferenceResult {
    double value = decoded(source.format, element_bits(in.sources[0], 0, static_cast<unsigned>(source.format.bits())));
    if (std::isnan(value)) {
      const bool zero = source.format.precision != 53 && bits < 64;
      return {{static_cast<Raw>(number_of(zero ? Raw{0} : Raw{1} << (bits - 1), target))}};
    }
    if (statement.has("ftz")) value = flushed_number(source.format, value);
    const double limit = 0x1p70; // beyond all integers
    const double bounded = std::max(-limit, std::min(limit, integral(statement, value)));
    return {{static_cast<Raw>(clamped_to(static_cast<Big>(bounded), bits, ir::is_signed(target)))}};
  };
}

// Exact, computed from two halves of 64 bits.
Rounded integer_as(const Format& format, mpfr_rnd_t mode, Big value) {
  Number exact(0, 130), high(0, 130);
  mpfr_set_si(high, static_cast<long>(value >> 32), MPFR_RNDN);
  mpfr_mul_2ui(high, high, 32, MPFR_RNDN);
  mpfr_set_ui(exact, static_cast<unsigned long>(static_cast<Raw>(value) & 0xffffffff), MPFR_RNDN);
  mpfr_add(exact, exact, high, MPFR_RNDN);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_set(d, exact, r); });
}

uint64_t finished(const Statement& statement, const Format& format, double value) {
  if (statement.has("sat")) value = value > 0 ? std::min(value, 1.0) : 0.0; // also for NaN
  if (std::isnan(value)) return canonical_nan_code(format);
  if (statement.has("relu") && std::signbit(value)) value = 0;
  if (statement.has("satfinite") && std::isinf(value))
    value = std::copysign(std::ldexp(2 - std::ldexp(1.0, 1 - format.precision), format.max_exponent), value);
  return encoded(format, value);
}

Reference from_integer(const Statement& statement) {
  const Format target = element_of(statement.type()).format;
  const ScalarType source = statement.type(1);
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const double value = integer_as(target, rounding_of(statement), number_of(in.sources[0], source)).value;
    return {{finished(statement, target, value)}};
  };
}

// --- f16 bf16 f32 f64 ---

// f32 and f64 keep as much of a NaN's payload as fits, and make it quiet; from and to halves, it becomes canonical.
uint64_t converted_nan(const Statement& statement, uint64_t code) {
  const ScalarType to = statement.type(), from = statement.type(1);
  if (statement.has("sat")) return 0;
  const bool integral = statement.has("rni") || statement.has("rzi") || statement.has("rmi") || statement.has("rpi");
  if (to == ScalarType::f64 && from == ScalarType::f64) return code | 0x0008000000000000;
  if (to == ScalarType::f32 && from == ScalarType::f32 && !integral) return code | 0x00400000;
  if (to == ScalarType::f32 && from == ScalarType::f64)
    return (code >> 32 & 0x80000000) | 0x7fc00000 | ((code >> 29) & 0x3fffff);
  if (to == ScalarType::f64) {
    const uint64_t single = from == ScalarType::f32 ? code : 0x7fffffff;
    return (single & 0x80000000) << 32 | 0x7ff8000000000000 | (single & 0x7fffff) << 29;
  }
  return canonical_nan_code(element_of(to).format);
}

Reference between_floats(const Statement& statement) {
  const Format to = element_of(statement.type()).format, from = element_of(statement.type(1)).format;
  const bool to_integral = statement.has("rni") || statement.has("rzi") || statement.has("rmi") || statement.has("rpi");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const uint64_t code = element_bits(in.sources[0], 0, static_cast<unsigned>(from.bits()));
    double value = decoded(from, code);
    if (std::isnan(value)) return {{converted_nan(statement, code)}};
    // .ftz applies to f32, as source and as destination.
    if (statement.has("ftz") && from.precision == 24) value = flushed_number(from, value);
    if (to_integral) value = integral(statement, value);
    Rounded result = converted(to, rounding_of(statement), value);
    if (statement.has("ftz") && to.precision == 24 && result.tiny) result.value = std::copysign(0.0, result.value);
    return {{finished(statement, to, result.value)}};
  };
}

uint64_t half_code(const Statement& statement, const Format& format, uint64_t f32_code) {
  const double value = decoded(f32_numbers, f32_code);
  return std::isnan(value) ? canonical_nan_code(format)
                           : finished(statement, format, converted(format, rounding_of(statement), value).value);
}

// The first bits of the fraction beyond the half's precision, as many as there are random bits, are added to those.
uint64_t stochastic_half(const Statement& statement, const Format& format, uint64_t f32_code, uint64_t random) {
  const double value = decoded(f32_numbers, f32_code);
  if (std::isnan(value)) return canonical_nan_code(format);
  const int random_bits = format.precision == 11 ? 13 : 16;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return finished(statement, format, value);
  const int exponent = magnitude == 0 ? format.min_exponent : std::max(std::ilogb(magnitude), format.min_exponent);
  const double unit = std::ldexp(1.0, exponent - format.precision + 1);
  const double steps = std::floor(magnitude / unit);
  const double fraction = std::floor((magnitude / unit - steps) * std::ldexp(1.0, random_bits));
  const double added = fraction + static_cast<double>(random & ((1u << random_bits) - 1));
  const double result = (steps + (added >= std::ldexp(1.0, random_bits) ? 1 : 0)) * unit;
  const bool too_large = result > std::ldexp(2 - std::ldexp(1.0, 1 - format.precision), format.max_exponent);
  return finished(statement, format, std::copysign(too_large ? HUGE_VAL : result, value));
}

Reference pack_of_halves(const Statement& statement) {
  const Format format = element_of(statement.type()).format;
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const auto a = static_cast<uint32_t>(in.sources[0]), b = static_cast<uint32_t>(in.sources[1]);
    if (statement.has("rs")) {
      const auto random = static_cast<uint32_t>(in.sources[2]);
      return {{Raw{stochastic_half(statement, format, a, random >> 16)} << 16 |
               stochastic_half(statement, format, b, random)}};
    }
    return {{Raw{half_code(statement, format, a)} << 16 | half_code(statement, format, b)}};
  };
}

Reference to_tf32(const Statement& statement) {
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const auto code = static_cast<uint32_t>(in.sources[0]);
    const double value = decoded(f32_numbers, code);
    const bool away = statement.has("rna");
    if (std::isnan(value)) {
      if (!away || statement.has("satfinite")) return {{0x7fffffff}};
      const uint32_t cut = code & 0xffffe000; // as in ptxas's constant folding, but never an infinity
      return {{(cut & 0x7fffff) != 0 ? cut : cut | 0x400000}};
    }
    // To nearest, ties away: adds half a unit, then truncates.
    const uint32_t rounded_away = std::isinf(value) ? code : (code + 0x1000) & 0xffffe000;
    const double result =
        away ? decoded(f32_numbers, rounded_away) : converted(tf32_numbers, rounding_of(statement), value).value;
    return {{Raw{finished(statement, tf32_numbers, result)} << 13}};
  };
}

// --- 8, 6 and 4 bits ---

const NarrowFormat* narrow_format_of(std::string_view word) {
  if (word.starts_with("e4m3")) return &e4m3_values;
  if (word.starts_with("e5m2")) return &e5m2_values;
  if (word.starts_with("e2m3")) return &e2m3_values;
  if (word.starts_with("e3m2")) return &e3m2_values;
  if (word.starts_with("e2m1")) return &e2m1_values;
  return nullptr;
}

uint32_t narrow_code(const Statement& statement, const NarrowFormat& format, double value, const uint32_t* random) {
  if (std::isnan(value)) return format.nan;
  const double magnitude = std::min(std::fabs(value), 1e30);
  const uint32_t code = random ? stochastic_code(format, magnitude, *random) : nearest_code(format, magnitude);
  if (!std::signbit(value)) return code;
  return statement.has("relu") ? 0 : code | format.sign();
}

Reference to_narrow(const Statement& statement, const NarrowFormat& format) {
  const unsigned stride = format.sign() == 8 ? 4 : 8;
  const Element source = element_of(statement.type(1));
  return [=, &format](const ReferenceInput& in) -> ReferenceResult {
    std::vector<double> values;
    if (source.count == 2) // the upper half first
      for (unsigned i : {1u, 0u})
        values.push_back(decoded(source.format, element_bits(in.sources[0], i, 16)));
    const bool stochastic = statement.has("rs");
    if (source.count == 1)
      for (size_t i = 0; i < in.sources.size() - (stochastic ? 1 : 0); ++i)
        values.push_back(decoded(f32_numbers, static_cast<uint32_t>(in.sources[i])));
    const auto random = stochastic ? static_cast<uint32_t>(in.sources.back()) : 0;
    Raw result = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t bits = i < 2 ? random >> 16 : random & 0xffff;
      // 4-bit codes: the first two sources use the upper byte of each half, the others the lower bytes.
      if (stride == 4)
        bits =
            i < 2 ? ((random >> 24) << 8 | ((random >> 8) & 0xff)) : (((random >> 16) & 0xff) << 8 | (random & 0xff));
      result = result << stride | narrow_code(statement, format, values[i], stochastic ? &bits : nullptr);
    }
    return {{result}};
  };
}

Reference from_narrow(const Statement& statement, const NarrowFormat& format) {
  const unsigned stride = format.sign() == 8 ? 4 : 8;
  return [=, &format](const ReferenceInput& in) -> ReferenceResult {
    Raw result = 0;
    for (unsigned i = 0; i < 2; ++i) {
      const auto code = static_cast<uint32_t>(in.sources[0] >> (i * stride)) & (2 * format.sign() - 1);
      const uint32_t magnitude = code & (format.sign() - 1);
      const bool negative = (code & format.sign()) != 0;
      uint64_t half = 0x7fff;
      if (magnitude <= format.last())
        half = finished(statement, f16_numbers, negative ? -format.values[magnitude] : format.values[magnitude]);
      else if (format.sign() == 0x80 && format.fraction_bits == 2 && magnitude == format.last() + 1) // infinity of e5m2
        half = finished(statement, f16_numbers, negative ? -HUGE_VAL : HUGE_VAL);
      result |= Raw{half} << (16 * i);
    }
    return {{result}};
  };
}

uint32_t power_code(const Statement& statement, double value) {
  if (std::isnan(value)) return 0xff;
  const double magnitude = std::fabs(value);
  uint32_t code = 0; // the largest power of two that is not above the value, or the smallest that is not below
  while (code < 0xff && std::ldexp(1.0, static_cast<int>(code) - 127) < magnitude)
    ++code;
  const bool above = code > 0 && std::ldexp(1.0, static_cast<int>(code) - 127) > magnitude;
  if (statement.has("rz") && (above || (code == 0xff && std::isfinite(value)))) --code;
  return code == 0xff && statement.has("satfinite") ? 0xfe : code;
}

Reference powers_of_two(const Statement& statement) {
  if (statement.type() != ScalarType::ue8m0x2)
    return [](const ReferenceInput& in) -> ReferenceResult {
      Raw result = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const auto code = static_cast<int>((in.sources[0] >> (8 * i)) & 0xff);
        const uint64_t half = code == 0xff ? 0x7fff : encoded(bf16_numbers, std::ldexp(1.0, code - 127));
        result |= Raw{half} << (16 * i);
      }
      return {{result}};
    };
  const bool pair = statement.type(1) == ScalarType::bf16x2;
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const double high = pair ? decoded(bf16_numbers, element_bits(in.sources[0], 1, 16))
                             : decoded(f32_numbers, static_cast<uint32_t>(in.sources[0]));
    const double low = pair ? decoded(bf16_numbers, element_bits(in.sources[0], 0, 16))
                            : decoded(f32_numbers, static_cast<uint32_t>(in.sources[1]));
    return {{power_code(statement, high) << 8 | power_code(statement, low)}};
  };
}

} // namespace

Reference float_conversion_reference(const Statement& statement) {
  if (statement.opcode != "cvt" || statement.types.size() < 2 || statement.has("pack")) return {};
  const ScalarType to = statement.type(), from = statement.type(1);
  for (const std::string& word : statement.words)
    if (word.starts_with("ue8m0")) return powers_of_two(statement);
  for (const std::string& word : statement.words)
    if (const NarrowFormat* format = narrow_format_of(word))
      return word == statement.words.back() ? from_narrow(statement, *format) : to_narrow(statement, *format);
  if (to == ScalarType::tf32) return to_tf32(statement);
  const unsigned target = element_of(to).count, source = element_of(from).count;
  if (target == 2) return pack_of_halves(statement);
  if (target == 1 && source == 1) return between_floats(statement);
  if (source == 1 && ir::is_integer(to)) return to_integer(statement);
  if (target == 1 && ir::is_integer(from)) return from_integer(statement);
  return {};
}

#endif

Reference float_reference_for(const Statement& statement) {
  if (is_stated_in_unit_tests(statement)) return {};
  // The meaning of an integer as an element of floats, or of `!` before one, is not documented.
  for (const StatementOperand& operand : statement.operands) {
    if (operand.negated && operand.letter != 'p') return {};
    if (operand.kind == StatementOperand::Kind::group)
      for (const StatementOperand& element : operand.elements)
        if (element.kind == StatementOperand::Kind::constant) return {};
  }
  for (auto family : {&float_arithmetic_reference, &float_comparison_reference, &approximation_reference,
                      &float_conversion_reference})
    if (Reference reference = family(statement)) return reference;
  return {};
}

} // namespace ptxrewrite::test
