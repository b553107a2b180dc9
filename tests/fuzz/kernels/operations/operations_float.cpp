// f32 and f64: arithmetic, comparison, selection, and the moves between bits and numbers (PTX ISA 9.7.3, 9.7.6, 9.7.9).
#include "tests/fuzz/kernels/float_arithmetic.h"
#include "tests/fuzz/kernels/operations/operation_rows.h"

#include <cmath>

namespace ptxrewrite::fuzz {

namespace {

// The execution mode of one instruction of a family.
struct Mode {
  Rounding rounding = Rounding::nearest;
  bool named = true; // the rounding is written
  bool flushes = false;
  bool saturates = false;

  std::string text() const {
    return (named ? std::string(".") + rounding_name(rounding) : "") + (flushes ? ".ftz" : "") +
           (saturates ? ".sat" : "");
  }
  // `scaled`: the same result multiplied by flush_scale.
  uint64_t finish(float value, float scaled) const {
    if (flushes) value = flush_by(value, scaled);
    return bits_of(saturates ? saturate(value) : value);
  }
  // Sums and roots that are small are exact.
  uint64_t finish(float value) const { return finish(value, value * flush_scale); }
  float source(uint64_t bits) const { return flush_if(flushes, to_float(bits)); }
};

std::vector<Mode> single_modes(bool may_be_unnamed) {
  std::vector<Mode> modes;
  for (const bool flushes : {false, true})
    for (const bool saturates : {false, true}) {
      for (const Rounding rounding : all_roundings)
        modes.push_back({rounding, true, flushes, saturates});
      if (may_be_unnamed) modes.push_back({Rounding::nearest, false, flushes, saturates});
    }
  return modes;
}

// Operands in volatile variables keep the compiler from moving the arithmetic out of the rounding scope.
void add_single_arithmetic(Rows& rows) {
  rows.group("f32 arithmetic");
  for (const Mode& mode : single_modes(true)) {
    const std::string suffix = mode.text() + ".f32";
    rows.add_value("add" + suffix, 'f', "ff", [=](auto in) {
      const RoundingScope scope(mode.rounding);
      volatile float a = mode.source(in[0]), b = mode.source(in[1]);
      volatile float result = a + b;
      return mode.finish(result);
    });
    rows.add_value("sub" + suffix, 'f', "ff", [=](auto in) {
      const RoundingScope scope(mode.rounding);
      volatile float a = mode.source(in[0]), b = mode.source(in[1]);
      volatile float result = a - b;
      return mode.finish(result);
    });
    rows.add_value("mul" + suffix, 'f', "ff", [=](auto in) {
      const RoundingScope scope(mode.rounding);
      volatile float a = mode.source(in[0]), b = mode.source(in[1]);
      volatile float result = a * b;
      float x = a, y = b;
      scale_factors(x, y);
      volatile float scaled_a = x, scaled_b = y;
      volatile float scaled = scaled_a * scaled_b;
      return mode.finish(result, scaled);
    });
  }
  for (const Mode& mode : single_modes(false))
    for (const char* name : {"fma", "mad"})
      rows.add_value(name + mode.text() + ".f32", 'f', "fff", [=](auto in) {
        const RoundingScope scope(mode.rounding);
        volatile float a = mode.source(in[0]), b = mode.source(in[1]), c = mode.source(in[2]);
        volatile float result = std::fma(a, b, c);
        float x = a, y = b;
        scale_factors(x, y);
        volatile float scaled = std::fma(x, y, c * flush_scale);
        return mode.finish(result, scaled);
      });
}

void add_single_division(Rows& rows) {
  rows.group("f32 division and roots");
  for (const Mode& mode : single_modes(false)) {
    if (mode.saturates) continue;
    rows.add_value("div" + mode.text() + ".f32", 'f', "ff", [=](auto in) {
      const RoundingScope scope(mode.rounding);
      volatile float a = mode.source(in[0]), b = mode.source(in[1]);
      volatile float result = a / b;
      volatile float large = a * flush_scale;
      volatile float scaled = large / b;
      return mode.finish(result, scaled);
    });
    rows.add_value("rcp" + mode.text() + ".f32", 'f', "f", [=](auto in) {
      const RoundingScope scope(mode.rounding);
      volatile float one = 1.0f, a = mode.source(in[0]);
      volatile float result = one / a;
      volatile float large = flush_scale;
      volatile float scaled = large / a;
      return mode.finish(result, scaled);
    });
    rows.add_value("sqrt" + mode.text() + ".f32", 'f', "f", [=](auto in) {
      const RoundingScope scope(mode.rounding);
      volatile float a = mode.source(in[0]);
      volatile float result = std::sqrt(a);
      return mode.finish(result);
    });
  }
}

void add_double_arithmetic(Rows& rows) {
  for (const Rounding rounding : all_roundings) {
    const std::string suffix = std::string(".") + rounding_name(rounding) + ".f64";
    const auto binary = [&](const char* name, auto compute) {
      rows.add_value(name + suffix, 'g', "gg", [=](auto in) {
        const RoundingScope scope(rounding);
        volatile double a = to_double(in[0]), b = to_double(in[1]);
        volatile double result = compute(a, b);
        return bits_of(static_cast<double>(result));
      });
    };
    rows.group("f64 arithmetic");
    binary("add", [](volatile double& a, volatile double& b) { return a + b; });
    binary("sub", [](volatile double& a, volatile double& b) { return a - b; });
    binary("mul", [](volatile double& a, volatile double& b) { return a * b; });
    rows.add_value("fma" + suffix, 'g', "ggg", [=](auto in) {
      const RoundingScope scope(rounding);
      volatile double a = to_double(in[0]), b = to_double(in[1]), c = to_double(in[2]);
      volatile double result = std::fma(a, b, c);
      return bits_of(static_cast<double>(result));
    });
    rows.group("f64 division and roots");
    binary("div", [](volatile double& a, volatile double& b) { return a / b; });
    rows.add_value("rcp" + suffix, 'g', "g", [=](auto in) {
      const RoundingScope scope(rounding);
      volatile double one = 1.0, a = to_double(in[0]);
      volatile double result = one / a;
      return bits_of(static_cast<double>(result));
    });
    rows.add_value("sqrt" + suffix, 'g', "g", [=](auto in) {
      const RoundingScope scope(rounding);
      volatile double a = to_double(in[0]);
      volatile double result = std::sqrt(a);
      return bits_of(static_cast<double>(result));
    });
  }
}

// Operations without rounding. The sign of a NaN is undefined: where it matters, the source must be a number.
void add_exact(Rows& rows) {
  rows.group("float minimum and sign");
  for (const bool flushes : {false, true}) {
    const std::string suffix = flushes ? ".ftz.f32" : ".f32";
    const auto source = [flushes](uint64_t bits) { return flush_if(flushes, to_float(bits)); };
    for (const bool nan_wins : {false, true}) {
      const std::string tail = (flushes ? std::string(".ftz") : "") + (nan_wins ? ".NaN.f32" : ".f32");
      rows.add_value("min" + tail, 'f', "ff",
                     [=](auto in) { return bits_of(minimum(source(in[0]), source(in[1]), nan_wins)); });
      rows.add_value("max" + tail, 'f', "ff",
                     [=](auto in) { return bits_of(maximum(source(in[0]), source(in[1]), nan_wins)); });
    }
    rows.add_value("abs" + suffix, 'f', "f", [=](auto in) { return bits_of(std::fabs(source(in[0]))); });
    rows.add_value("neg" + suffix, 'f', "f", [=](auto in) { return bits_of(-source(in[0])); });
  }
  rows.add_value("min.f64", 'g', "gg",
                 [](auto in) { return bits_of(minimum(to_double(in[0]), to_double(in[1]), false)); });
  rows.add_value("max.f64", 'g', "gg",
                 [](auto in) { return bits_of(maximum(to_double(in[0]), to_double(in[1]), false)); });
  rows.add_value("abs.f64", 'g', "g", [](auto in) { return bits_of(std::fabs(to_double(in[0]))); });
  rows.add_value("neg.f64", 'g', "g", [](auto in) { return bits_of(-to_double(in[0])); });
  rows.add_value("copysign.f32", 'f', "yf",
                 [](auto in) { return bits_of(std::copysign(to_float(in[1]), to_float(in[0]))); });
  rows.add_value("copysign.f64", 'g', "Yg",
                 [](auto in) { return bits_of(std::copysign(to_double(in[1]), to_double(in[0]))); });
}

struct FloatComparison {
  const char* name;
  bool on_less, on_equal, on_greater, on_nan;
};
constexpr FloatComparison float_comparisons[] = {
    {"eq", false, true, false, false}, {"ne", true, false, true, false},  {"lt", true, false, false, false},
    {"le", true, true, false, false},  {"gt", false, false, true, false}, {"ge", false, true, true, false},
    {"equ", false, true, false, true}, {"neu", true, false, true, true},  {"ltu", true, false, false, true},
    {"leu", true, true, false, true},  {"gtu", false, false, true, true}, {"geu", false, true, true, true},
    {"num", true, true, true, false},  {"nan", false, false, false, true}};

bool holds(const FloatComparison& comparison, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return comparison.on_nan;
  return a < b ? comparison.on_less : a == b ? comparison.on_equal : comparison.on_greater;
}

void add_comparisons(Rows& rows, const std::string& suffix, char letter, double (*value)(uint64_t)) {
  size_t turn = 0;
  for (const FloatComparison& comparison : float_comparisons) {
    const std::string name = comparison.name;
    const std::string sources(2, letter);
    const auto test = [=](const uint64_t* in) { return holds(comparison, value(in[0]), value(in[1])); };
    rows.add_value("setp." + name + suffix, 'p', sources, [=](auto in) { return uint64_t(test(in)); });
    if (turn % 2 == 0 && letter != 'e') // f16 has one predicate only
      rows.add("setp." + name + ".or" + suffix + " $0|$1, $2, $3, $4", "pp", sources + "!", [=](auto in, auto out) {
        out[0] = test(in) || in[2] != 0;
        out[1] = !test(in) || in[2] != 0;
      });
    else
      rows.add_value("setp." + name + ".and" + suffix, 'p', sources + "!",
                     [=](auto in) { return uint64_t(test(in) && in[2] != 0); });
    if (turn % 4 == 1 && letter != 'e')
      rows.add_value("set." + name + ".u32" + suffix, 'r', sources,
                     [=](auto in) { return test(in) ? 0xffffffffu : 0u; });
    if (turn % 4 == 3 && letter != 'e')
      rows.add_value("set." + name + ".f32" + suffix, 'f', sources,
                     [=](auto in) { return bits_of(test(in) ? 1.0f : 0.0f); });
    ++turn;
  }
}

void add_all_comparisons(Rows& rows) {
  rows.group("float comparison");
  add_comparisons(rows, ".f32", 'f', [](uint64_t bits) { return double(to_float(bits)); });
  add_comparisons(rows, ".ftz.f32", 'f', [](uint64_t bits) { return double(flush(to_float(bits))); });
  add_comparisons(rows, ".f64", 'g', to_double);
  add_comparisons(rows, ".f16", 'e', half_value);
  const auto test = [&](const char* name, auto is) {
    rows.add_value(std::string("testp.") + name + ".f32", 'p', "f",
                   [=](auto in) { return uint64_t(is(to_float(in[0]))); });
    rows.add_value(std::string("testp.") + name + ".f64", 'p', "g",
                   [=](auto in) { return uint64_t(is(to_double(in[0]))); });
  };
  test("finite", [](auto x) { return bool(std::isfinite(x)); });
  test("infinite", [](auto x) { return bool(std::isinf(x)); });
  test("number", [](auto x) { return !std::isnan(x); });
  test("notanumber", [](auto x) { return bool(std::isnan(x)); });
  test("normal", [](auto x) { return std::isnormal(x) || x == 0; });
  test("subnormal", [](auto x) { return std::fpclassify(x) == FP_SUBNORMAL; });
}

void add_selections_and_moves(Rows& rows) {
  rows.group("float selection and moves");
  for (const auto& [name, letter] : {std::pair{"f32", 'f'}, {"f64", 'g'}}) {
    const std::string suffix = std::string(".") + name;
    const std::string two(2, letter);
    rows.add_value("selp" + suffix, letter, two + "!", [](auto in) { return in[2] != 0 ? in[0] : in[1]; });
    rows.add_value("mov" + suffix, letter, two.substr(1), [](auto in) { return in[0]; });
    // -0 is not negative here, and a NaN selects b.
    rows.add_value("slct" + suffix + ".f32", letter, two + "f",
                   [](auto in) { return to_float(in[2]) >= 0 ? in[0] : in[1]; });
  }
  rows.add_value("slct.b32.f32", 'r', "rrf", [](auto in) { return to_float(in[2]) >= 0 ? in[0] : in[1]; });

  rows.group("bits of floats");
  const auto copy = [](auto in) { return in[0]; };
  rows.add_value("mov.b32", 'f', "R", copy);
  rows.add_value("mov.b32", 'r', "y", copy);
  rows.add_value("mov.b64", 'g', "D", copy);
  rows.add_value("mov.b64", 'd', "Y", copy);
  rows.add_value("mov.b16", 'e', "h", copy);
  rows.add_value("mov.b16", 'h', "j", copy);
}

void add_approximations(Rows& rows) {
  rows.group("approximate");
  for (const char* name : {"ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt", "tanh"})
    rows.add(std::string(name) + ".approx.f32", "f", "f", nullptr);
  for (const char* name : {"ex2", "lg2", "sin", "rcp"})
    rows.add(std::string(name) + ".approx.ftz.f32", "f", "f", nullptr);
  rows.add("div.approx.f32", "f", "ff", nullptr);
  rows.add("div.full.ftz.f32", "f", "ff", nullptr);
  rows.add("rsqrt.approx.f64", "g", "g", nullptr);
}

} // namespace

std::vector<Operation> float_operations() {
  Rows rows("");
  add_single_arithmetic(rows);
  add_single_division(rows);
  add_double_arithmetic(rows);
  add_exact(rows);
  add_all_comparisons(rows);
  add_selections_and_moves(rows);
  add_approximations(rows);
  return rows.take();
}

} // namespace ptxrewrite::fuzz
