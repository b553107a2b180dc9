// f16 and f16x2 (PTX ISA 9.7.4). Sources and results are exact numbers that are rounded once.
#include "tests/fuzz/kernels/float_arithmetic.h"
#include "tests/fuzz/kernels/operations/operation_rows.h"

#include <cmath>

namespace ptxrewrite::fuzz {

namespace {

// A function of halves, on their bits.
using HalfFunction = std::function<uint64_t(uint64_t, uint64_t, uint64_t)>;

// A result, and its exact value before rounding.
struct Rounded {
  uint64_t bits;
  ExactNumber exact;
};
Rounded round(ExactNumber exact, bool negative_zero) {
  return {round_to_half(exact, Rounding::nearest, negative_zero), exact};
}

struct HalfMode {
  bool flushes = false;
  bool saturates = false;

  std::string text() const { return std::string(flushes ? ".ftz" : "") + (saturates ? ".sat" : ""); }
  double source(uint64_t bits) const { return half_value(flushes ? flush_half(bits) : bits); }
  uint64_t finish(const Rounded& result) const {
    uint64_t bits = result.bits;
    if (flushes && is_tiny_half(result.exact)) bits &= 0x8000;
    if (!saturates) return bits;
    return is_half_nan(bits) || (bits & 0x8000) != 0 ? 0 : std::min<uint64_t>(bits, 0x3c00);
  }
};

// The zero result of a + b is negative only if both operands are.
Rounded add_halves(double a, double b) {
  return round(ExactNumber(a) + ExactNumber(b), std::signbit(a) && std::signbit(b));
}
Rounded fuse_halves(double a, double b, double c) {
  const bool product_negative = std::signbit(a) != std::signbit(b);
  return round(ExactNumber(a) * ExactNumber(b) + ExactNumber(c), product_negative && std::signbit(c));
}
Rounded multiply_halves(double a, double b) {
  return round(ExactNumber(a) * ExactNumber(b), std::signbit(a) != std::signbit(b));
}

// The same function on one half and on both halves of a pair.
void add_both(Rows& rows, const std::string& name, const std::string& modifiers, size_t sources,
              const HalfFunction& function) {
  rows.group("f16 arithmetic");
  rows.add_value(name + modifiers + ".f16", 'e', std::string(sources, 'e'),
                 [=](auto in) { return function(in[0], sources > 1 ? in[1] : 0, sources > 2 ? in[2] : 0); });
  rows.group("f16x2 arithmetic");
  rows.add_value(name + modifiers + ".f16x2", 'w', std::string(sources, 'w'), [=](auto in) {
    const auto half = [&](size_t source, unsigned shift) -> uint64_t {
      return source < sources ? in[source] >> shift & 0xffff : 0;
    };
    return function(half(0, 16), half(1, 16), half(2, 16)) << 16 | function(half(0, 0), half(1, 0), half(2, 0));
  });
}

void add_arithmetic(Rows& rows) {
  for (const bool flushes : {false, true})
    for (const bool saturates : {false, true}) {
      const HalfMode mode{flushes, saturates};
      for (const std::string rounding : {"", ".rn"}) {
        const std::string modifiers = rounding + mode.text();
        add_both(rows, "add", modifiers, 2, [=](uint64_t a, uint64_t b, uint64_t) {
          return mode.finish(add_halves(mode.source(a), mode.source(b)));
        });
        add_both(rows, "sub", modifiers, 2, [=](uint64_t a, uint64_t b, uint64_t) {
          return mode.finish(add_halves(mode.source(a), -mode.source(b)));
        });
        add_both(rows, "mul", modifiers, 2, [=](uint64_t a, uint64_t b, uint64_t) {
          return mode.finish(multiply_halves(mode.source(a), mode.source(b)));
        });
      }
      add_both(rows, "fma.rn", mode.text(), 3, [=](uint64_t a, uint64_t b, uint64_t c) {
        return mode.finish(fuse_halves(mode.source(a), mode.source(b), mode.source(c)));
      });
    }
  add_both(rows, "fma.rn", ".relu", 3, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {
    const uint64_t result = fuse_halves(half_value(a), half_value(b), half_value(c)).bits;
    return !is_half_nan(result) && (result & 0x8000) != 0 ? 0 : result;
  });
}

void add_exact_halves(Rows& rows) {
  for (const bool flushes : {false, true}) {
    const HalfMode mode{flushes, false};
    const auto bits = [](double value) { return double_to_half(value, Rounding::nearest); };
    for (const bool nan_wins : {false, true}) {
      const std::string modifiers = mode.text() + (nan_wins ? ".NaN" : "");
      add_both(rows, "min", modifiers, 2, [=](uint64_t a, uint64_t b, uint64_t) {
        return bits(minimum(mode.source(a), mode.source(b), nan_wins));
      });
      add_both(rows, "max", modifiers, 2, [=](uint64_t a, uint64_t b, uint64_t) {
        return bits(maximum(mode.source(a), mode.source(b), nan_wins));
      });
    }
    add_both(rows, "neg", mode.text(), 1, [=](uint64_t a, uint64_t, uint64_t) { return bits(-mode.source(a)); });
    add_both(rows, "abs", mode.text(), 1,
             [=](uint64_t a, uint64_t, uint64_t) { return bits(std::fabs(mode.source(a))); });
  }
}

void add_packing(Rows& rows) {
  rows.group("f16x2 packing");
  rows.add_value("mov.b32 $0, {$1, $2}", 'w', "ee", [](auto in) { return in[1] << 16 | in[0]; });
  rows.add("mov.b32 {$0, $1}, $2", "ee", "w", [](auto in, auto out) {
    out[0] = in[0] & 0xffff;
    out[1] = in[0] >> 16;
  });
  rows.add_value("selp.b16 $0, 0x3C00, $1, $2", 'e', "e!", [](auto in) { return in[1] != 0 ? 0x3c00 : in[0]; });
  rows.add_value("mov.b32", 'w', "R", [](auto in) { return in[0]; });
  rows.add("setp.lt.f16x2 $0|$1, $2, $3", "pp", "ww", [](auto in, auto out) {
    out[0] = half_value(in[0] & 0xffff) < half_value(in[1] & 0xffff);
    out[1] = half_value(in[0] >> 16) < half_value(in[1] >> 16);
  });
  rows.add("setp.geu.f16x2 $0|$1, $2, $3", "pp", "ww", [](auto in, auto out) {
    out[0] = !(half_value(in[0] & 0xffff) < half_value(in[1] & 0xffff));
    out[1] = !(half_value(in[0] >> 16) < half_value(in[1] >> 16));
  });
}

} // namespace

std::vector<Operation> half_operations() {
  Rows rows("");
  add_arithmetic(rows);
  add_exact_halves(rows);
  add_packing(rows);
  return rows.take();
}

} // namespace ptxrewrite::fuzz
