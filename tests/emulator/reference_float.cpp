// Arithmetic, comparison and approximations of floats, by MPFR.
#include "tests/emulator/reference_float.h"
#include "tests/emulator/reference.h"

#include <algorithm>

namespace ptxrewrite::test {

#ifndef PTXREWRITE_HAVE_MPFR

Reference float_arithmetic_reference(const Statement&) {
  return {};
}
Reference float_comparison_reference(const Statement&) {
  return {};
}
Reference approximation_reference(const Statement&) {
  return {};
}

#else

namespace {

using ir::ScalarType;

// --- add sub mul fma mad div rcp sqrt ---

struct Modifiers {
  explicit Modifiers(const Statement& statement)
      : rounding(rounding_of(statement)), flush(statement.has("ftz")), saturate(statement.has("sat")),
        relu(statement.has("relu")), out_of_bounds(statement.has("oob")) {}
  mpfr_rnd_t rounding;
  bool flush, saturate, relu, out_of_bounds;
};

using Exact = Rounded (*)(const Format&, mpfr_rnd_t, const double* operands);
struct ExactOperation {
  const char* opcode;
  unsigned operands;
  Exact compute;
};
constexpr ExactOperation exact_operations[] = {
    {"add", 2, [](const Format& f, mpfr_rnd_t r, const double* x) { return sum(f, r, x[0], x[1]); }},
    {"sub", 2, [](const Format& f, mpfr_rnd_t r, const double* x) { return difference(f, r, x[0], x[1]); }},
    {"mul", 2, [](const Format& f, mpfr_rnd_t r, const double* x) { return product(f, r, x[0], x[1]); }},
    {"div", 2, [](const Format& f, mpfr_rnd_t r, const double* x) { return quotient(f, r, x[0], x[1]); }},
    {"fma", 3, [](const Format& f, mpfr_rnd_t r, const double* x) { return fused(f, r, x[0], x[1], x[2]); }},
    {"mad", 3, [](const Format& f, mpfr_rnd_t r, const double* x) { return fused(f, r, x[0], x[1], x[2]); }},
    {"rcp", 1, [](const Format& f, mpfr_rnd_t r, const double* x) { return quotient(f, r, 1, x[0]); }},
    {"sqrt", 1, [](const Format& f, mpfr_rnd_t r, const double* x) { return root(f, r, x[0]); }},
};

// Returns the f64 NaN result: the first NaN operand, made quiet.
uint64_t passed_nan(const std::vector<uint64_t>& codes) {
  for (uint64_t code : codes)
    if (std::isnan(decoded(f64_numbers, code))) return code | 0x0008000000000000;
  return 0xfff8000000000000;
}

// One element of each operand, as codes; the formats may differ (mixed precision).
uint64_t computed(const Exact& operation, const Modifiers& modifiers, const Format& result_format,
                  const std::vector<Format>& formats, const std::vector<uint64_t>& codes) {
  std::vector<double> operands;
  for (size_t i = 0; i < codes.size(); ++i) {
    const double value = decoded(formats[i], codes[i]);
    operands.push_back(modifiers.flush ? flushed_number(formats[i], value) : value);
    // The factors; the addend does not count (measured on an H100).
    if (modifiers.out_of_bounds && i < 2 && (codes[i] & 0x7fff) == 0x7ff7) return 0;
  }
  Rounded result = operation(result_format, modifiers.rounding, operands.data());
  if (modifiers.flush && result.tiny) result.value = std::copysign(0.0, result.value);
  if (std::isnan(result.value)) {
    if (modifiers.saturate) return 0;
    return result_format.precision == 53 ? passed_nan(codes) : canonical_nan_code(result_format);
  }
  if (modifiers.saturate) result.value = result.value > 0 ? std::min(result.value, 1.0) : 0.0;
  if (modifiers.relu && std::signbit(result.value)) result.value = 0;
  return encoded(result_format, result.value);
}

Reference exact_arithmetic(const Statement& statement, const ExactOperation& operation) {
  Modifiers modifiers(statement);
  // mad.f32 without a rounding modifier is compiled to fma.rn.ftz.
  if (statement.opcode == "mad" && statement.type() == ScalarType::f32 && !has_rounding(statement))
    modifiers.flush = true;
  const Element result = element_of(statement.type());
  std::vector<Format> formats(operation.operands, result.format);
  if (statement.types.size() > 1) // f32.f16: all but the last operand are halves
    for (size_t i = 0; i + 1 < formats.size(); ++i)
      formats[i] = element_of(statement.type(1)).format;
  return [=](const ReferenceInput& in) -> ReferenceResult {
    Raw value = 0;
    for (unsigned element = 0; element < result.count; ++element) {
      std::vector<uint64_t> codes;
      for (size_t i = 0; i < formats.size(); ++i)
        codes.push_back(element_bits(in.sources[i], element, static_cast<unsigned>(formats[i].bits())));
      value |= Raw{computed(operation.compute, modifiers, result.format, formats, codes)}
               << (element * static_cast<unsigned>(result.format.bits()));
    }
    return {{value}};
  };
}

// --- signs, properties, min and max: elements as codes ---

using OnCodes = std::function<uint64_t(const Format&, const std::vector<uint64_t>&)>;

Reference elementwise(const Statement& statement, OnCodes compute) {
  const Element element = element_of(statement.type());
  const auto bits = static_cast<unsigned>(element.format.bits());
  return [=](const ReferenceInput& in) -> ReferenceResult {
    Raw value = 0;
    for (unsigned i = 0; i < element.count; ++i) {
      std::vector<uint64_t> codes;
      for (Raw source : in.sources)
        codes.push_back(element_bits(source, i, bits));
      value |= Raw{compute(element.format, codes)} << (i * bits);
    }
    return {{value}};
  };
}

uint64_t sign_bit(const Format& format) {
  return uint64_t{1} << (format.bits() - 1);
}
uint64_t flushed_code(const Format& format, uint64_t code) {
  const double value = decoded(format, code);
  return std::isnan(value) ? code : encoded(format, flushed_number(format, value));
}
// f32 and f64 make a NaN quiet, single halves make it canonical, pairs of halves leave it unchanged.
uint64_t sign_changed(const Statement& statement, const Format& format, uint64_t code) {
  const bool pair = element_of(statement.type()).count == 2;
  const bool nan = std::isnan(decoded(format, code));
  if (nan && format.bits() == 16 && !pair) return canonical_nan_code(format);
  if (nan && format.bits() > 16) code |= uint64_t{1} << (format.precision - 2);
  if (statement.has("ftz")) code = flushed_code(format, code);
  return statement.opcode == "abs" ? code & ~sign_bit(format) : code ^ sign_bit(format);
}

uint64_t least_or_most(const Statement& statement, const Format& format, const std::vector<uint64_t>& all) {
  const bool most = statement.opcode == "max";
  std::vector<uint64_t> codes = all;
  bool some_nan = false;
  uint64_t signs = 0;
  for (uint64_t& code : codes) {
    signs ^= code & sign_bit(format);
    if (statement.has("ftz")) code = flushed_code(format, code);
    if (statement.has("abs")) code &= ~sign_bit(format);
    some_nan |= std::isnan(decoded(format, code));
  }
  if (some_nan && statement.has("NaN")) return canonical_nan_code(format);
  std::erase_if(codes, [&](uint64_t code) { return std::isnan(decoded(format, code)); });
  if (codes.empty()) return canonical_nan_code(format);
  auto before = [&](uint64_t a, uint64_t b) {
    const double x = decoded(format, a), y = decoded(format, b);
    return x < y || (x == y && std::signbit(x) && !std::signbit(y));
  };
  const auto [least, greatest] = std::minmax_element(codes.begin(), codes.end(), before);
  const uint64_t chosen = most ? *greatest : *least;
  return statement.has("xorsign") ? (chosen & ~sign_bit(format)) | signs : chosen;
}

bool has_property(const Statement& statement, double value, const Format& format) {
  const bool subnormal = value != 0 && std::fabs(value) < std::ldexp(1.0, format.min_exponent);
  if (statement.has("finite")) return std::isfinite(value);
  if (statement.has("infinite")) return std::isinf(value);
  if (statement.has("number")) return !std::isnan(value);
  if (statement.has("notanumber")) return std::isnan(value);
  if (statement.has("normal")) return std::isfinite(value) && !subnormal;
  return !statement.has("subnormal") || subnormal;
}

} // namespace

Reference float_arithmetic_reference(const Statement& statement) {
  const std::string& opcode = statement.opcode;
  if (!element_of(statement.type()).count || statement.has("approx") || statement.has("full")) return {};
  if (opcode == "abs" || opcode == "neg")
    return elementwise(statement, [=](const Format& format, const std::vector<uint64_t>& codes) {
      return sign_changed(statement, format, codes[0]);
    });
  if (opcode == "min" || opcode == "max")
    return elementwise(statement, [=](const Format& format, const std::vector<uint64_t>& codes) {
      return least_or_most(statement, format, codes);
    });
  if (opcode == "copysign")
    return elementwise(statement, [](const Format& format, const std::vector<uint64_t>& codes) {
      return (codes[1] & ~sign_bit(format)) | (codes[0] & sign_bit(format));
    });
  if (opcode == "testp") {
    const Format format = element_of(statement.type()).format;
    return [=](const ReferenceInput& in) -> ReferenceResult {
      return {{has_property(statement, decoded(format, static_cast<uint64_t>(in.sources[0])), format)}};
    };
  }
  // Forms of PTX 1.3 without a rounding are approximations, at least for f32.
  const bool needs_rounding = opcode == "div" || opcode == "rcp" || opcode == "sqrt";
  if (needs_rounding && statement.type() == ScalarType::f32 && !has_rounding(statement)) return {};
  for (const ExactOperation& operation : exact_operations)
    if (opcode == operation.opcode) return exact_arithmetic(statement, operation);
  return {};
}

namespace {

bool relation_holds(const Statement& statement, double a, double b) {
  for (const std::string& word : statement.words) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if (word == "num") return !unordered;
    if (word == "nan") return unordered;
    static constexpr std::string_view relations[] = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"};
    const std::string_view relation = std::string_view(word).substr(0, 2);
    if (word.size() > 3 || std::find(std::begin(relations), std::end(relations), relation) == std::end(relations))
      continue;
    if (word.size() == 3 && word[2] != 'u') continue;
    if (unordered) return word.size() == 3;
    if (relation == "eq") return a == b;
    if (relation == "ne") return a != b;
    if (relation == "lt" || relation == "lo") return a < b;
    if (relation == "le" || relation == "ls") return a <= b;
    if (relation == "gt" || relation == "hi") return a > b;
    return a >= b;
  }
  return false;
}

// A double cannot represent every 64-bit integer, but comparing two integers is comparing their difference with zero.
bool compared(const Statement& statement, ScalarType type, Raw a, Raw b, unsigned element) {
  const Element floats = element_of(type);
  if (!floats.count) {
    const Big difference = number_of(a, type) - number_of(b, type);
    return relation_holds(statement, difference < 0 ? -1 : difference > 0 ? 1 : 0, 0);
  }
  auto value = [&](Raw source) {
    const double number =
        decoded(floats.format, element_bits(source, element, static_cast<unsigned>(floats.format.bits())));
    return statement.has("ftz") ? flushed_number(floats.format, number) : number;
  };
  return relation_holds(statement, value(a), value(b));
}

bool joined_with(const Statement& statement, bool value, const ReferenceInput& in) {
  if (in.sources.size() < 3) return value;
  const bool c = in.sources[2] != 0;
  return statement.has("and") ? value && c : statement.has("or") ? value || c : value != c;
}

// The value that set writes for true, in a type of this width.
Raw true_code(ScalarType type, unsigned bits) {
  const Element element = element_of(type);
  return element.count ? encoded(element.format, 1.0) : low_bits(~Raw{0}, bits);
}

} // namespace

Reference float_comparison_reference(const Statement& statement) {
  if (statement.opcode != "setp" && statement.opcode != "set") return {};
  const ScalarType source = statement.types.back();
  const Element elements = element_of(source);
  if (!elements.count && !(statement.opcode == "set" && element_of(statement.type()).count)) return {};
  const bool pair = elements.count == 2;
  if (statement.opcode == "setp")
    return [=](const ReferenceInput& in) -> ReferenceResult {
      const bool low = compared(statement, source, in.sources[0], in.sources[1], 0);
      const bool other = pair ? compared(statement, source, in.sources[0], in.sources[1], 1) : !low;
      return {{joined_with(statement, low, in), joined_with(statement, other, in)}};
    };
  const ScalarType target = statement.type();
  const unsigned bits = pair ? 16 : ir::bit_width(target);
  return [=](const ReferenceInput& in) -> ReferenceResult {
    Raw value = 0;
    for (unsigned i = 0; i < (pair ? 2 : 1); ++i)
      if (joined_with(statement, compared(statement, source, in.sources[0], in.sources[1], i), in))
        value |= true_code(target, bits) << (16 * i);
    return {{value}};
  };
}

// --- approximations: the correctly rounded result, or its neighbour ---

namespace {

using MpfrFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

int reciprocal(mpfr_ptr d, mpfr_srcptr a, mpfr_rnd_t r) {
  return mpfr_ui_div(d, 1, a, r);
}
// MPFR returns +inf for -0.
int reciprocal_root(mpfr_ptr d, mpfr_srcptr a, mpfr_rnd_t r) {
  return mpfr_zero_p(a) ? mpfr_ui_div(d, 1, a, r) : mpfr_rec_sqrt(d, a, r);
}

struct Approximation {
  const char* opcode;
  MpfrFunction function;
};
constexpr Approximation approximations[] = {{"rcp", &reciprocal}, {"rsqrt", &reciprocal_root}, {"sqrt", &mpfr_sqrt},
                                            {"sin", &mpfr_sin},   {"cos", &mpfr_cos},          {"lg2", &mpfr_log2},
                                            {"ex2", &mpfr_exp2},  {"tanh", &mpfr_tanh}};

uint64_t approximated(const Statement& statement, MpfrFunction function, const Format& format, double a, bool flush) {
  const bool circular = statement.opcode == "sin" || statement.opcode == "cos";
  const Number operand(flush || circular ? flushed_number(format, a) : a);
  Rounded result = rounded(format, MPFR_RNDN, [&](mpfr_ptr d, mpfr_rnd_t r) { return function(d, operand, r); });
  if (flush && result.tiny) result.value = std::copysign(0.0, result.value);
  return std::isnan(result.value) ? canonical_nan_code(format) : encoded(format, result.value);
}

// Quotients, with the zeros of .approx for huge divisors.
uint64_t approximate_quotient(const Statement& statement, double a, double b, bool flush) {
  double x = flush ? flushed_number(f32_numbers, a) : a, y = flush ? flushed_number(f32_numbers, b) : b;
  if (!statement.has("full") && std::fabs(y) > 0x1p126 && std::isfinite(y)) y = std::copysign(HUGE_VAL, y);
  if (std::isinf(x) && std::isinf(y)) x = std::nan("");
  Rounded result = quotient(f32_numbers, MPFR_RNDN, x, y);
  if (flush && result.tiny) result.value = std::copysign(0.0, result.value);
  return std::isnan(result.value) ? canonical_nan_code(f32_numbers) : encoded(f32_numbers, result.value);
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: use and compute only upper halves, with 20 fraction bits.
uint64_t of_upper_half(MpfrFunction function, uint64_t code) {
  constexpr Format gross = {21, 1023, -1022};
  const double a = decoded(f64_numbers, code);
  if (std::isnan(a)) return 0x7fffffff00000000;
  const Number operand(flushed_number(f64_numbers, decoded(f64_numbers, code & 0xffffffff00000000)));
  const Rounded result = rounded(gross, MPFR_RNDN, [&](mpfr_ptr d, mpfr_rnd_t r) { return function(d, operand, r); });
  if (std::isnan(result.value)) return 0x7fffffff00000000;
  return encoded(f64_numbers, result.tiny ? std::copysign(0.0, result.value) : result.value);
}

} // namespace

Reference approximation_reference(const Statement& statement) {
  const Element element = element_of(statement.type());
  if (!element.count || has_rounding(statement)) return {};
  const bool legacy = !statement.has("approx") && !statement.has("full");
  const bool flush = statement.has("ftz") || (legacy && statement.type() == ScalarType::f32);
  if (statement.opcode == "div" && statement.type() == ScalarType::f32)
    return [=](const ReferenceInput& in) -> ReferenceResult {
      const double a = decoded(f32_numbers, static_cast<uint32_t>(in.sources[0]));
      const double b = decoded(f32_numbers, static_cast<uint32_t>(in.sources[1]));
      return {{approximate_quotient(statement, a, b, flush)}};
    };
  for (const Approximation& approximation : approximations) {
    if (statement.opcode != approximation.opcode) continue;
    const MpfrFunction function = approximation.function;
    if (statement.type() == ScalarType::f64 && statement.has("ftz"))
      return [=](const ReferenceInput& in) -> ReferenceResult {
        return {{of_upper_half(function, static_cast<uint64_t>(in.sources[0]))}};
      };
    if (statement.type() == ScalarType::f64 && statement.opcode != "rsqrt") return {};
    return [=](const ReferenceInput& in) -> ReferenceResult {
      Raw value = 0;
      const auto bits = static_cast<unsigned>(element.format.bits());
      for (unsigned i = 0; i < element.count; ++i) {
        const uint64_t code = element_bits(in.sources[0], i, bits);
        uint64_t result = approximated(statement, function, element.format, decoded(element.format, code), flush);
        if (bits == 64 && std::isnan(decoded(f64_numbers, result))) result = passed_nan({code});
        value |= Raw{result} << (i * bits);
      }
      // Halves are always correctly rounded here.
      ReferenceResult answer{{value}};
      answer.units = bits > 16 ? 1 : 0;
      return answer;
    };
  }
  return {};
}

#endif

} // namespace ptxrewrite::test
