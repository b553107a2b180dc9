// spcompress and spdecompress: the examples of the manual's figures, and all types against a selection by sorting of
// values that are computed from the fields of the codes.
#include "tests/unit/emulator/lane_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace ptxrewrite::emulator::sparse_vector_test {
namespace {

const char* const header = ".version 9.4\n.target sm_107a\n";

LaneResults run(const std::string& body, const LaneInputs& inputs) {
  LaneResults results = run_lanes(body, inputs, {}, header);
  REQUIRE_MESSAGE(results.run.ok(), results.run.error << results.run.failure());
  return results;
}

// Of a code with a sign, `exponent` bits and `fraction` bits.
double float_value(uint32_t code, int exponent, int fraction, bool has_infinity, bool has_nan) {
  const int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1;
  const int e = static_cast<int>(code >> fraction) & top, f = static_cast<int>(code) & ((1 << fraction) - 1);
  const double sign = code >> (exponent + fraction) & 1 ? -1 : 1;
  if (has_infinity && e == top)
    return f ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (has_nan && !has_infinity && e == top && f == (1 << fraction) - 1) return std::numeric_limits<double>::quiet_NaN();
  return sign * (e == 0 ? std::ldexp(f, 1 - bias - fraction) : std::ldexp((1 << fraction) + f, e - bias - fraction));
}

double element_value(uint32_t code, unsigned bits, unsigned type) {
  if (bits == 16) return type == 0 ? float_value(code, 5, 10, true, true) : float_value(code, 8, 7, true, true);
  switch (type) {
  case 0:
    return code;
  case 1:
    return code < 128 ? code : static_cast<double>(code) - 256;
  case 2:
    return float_value(code, 5, 2, true, true);
  case 3:
    return float_value(code, 4, 3, false, true);
  case 4:
    return float_value(code & 0x3f, 3, 2, false, false);
  default:
    return float_value(code & 0x3f, 2, 3, false, false);
  }
}

// Order of selection: NaN, then the greatest or least; -0 is below +0.
double sort_key(double value, unsigned operation) {
  if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
  if (operation & 1) value = std::fabs(value);
  if (std::isinf(value)) value = std::copysign(1e300, value);
  if (value == 0) value = std::signbit(value) ? -1e-300 : 0;
  return operation < 2 ? -value : value;
}

std::vector<unsigned> sorted_choice(const std::vector<double>& values, unsigned operation) {
  std::vector<unsigned> order = {0, 1, 2, 3};
  std::ranges::stable_sort(order, {}, [&](unsigned i) { return sort_key(values[i], operation); });
  order.resize(2);
  std::ranges::sort(order);
  return order;
}

} // namespace

TEST_CASE("the examples of the manual: largest magnitudes of s8, and back") {
  const LaneInputs inputs = {{0x0003f900}, {0x06030500}, {5}, {}};
  const LaneResults packed = run("  spcompress.b8.b4.sp::2:4.x1 {%d}, {%q}, {%a, %b}, %c;", inputs);
  CHECK(packed.d[0] == 0x3121);
  CHECK(packed.q[0] == 0x060503f9);
  const LaneResults whole =
      run("  spdecompress.b8.b4.sp::2:4.x2 {%d, %q}, {%a}, {%b};", {{0x3121}, {0x060503f9}, {}, {}});
  CHECK(whole.d[0] == 0x0003f900);
  CHECK(whole.q[0] == 0x06000500);
}

TEST_CASE("spcompress of all types and choices") {
  std::mt19937 random(5);
  for (unsigned bits : {8u, 16u})
    for (unsigned type = 0; type < (bits == 16 ? 2u : 6u); ++type)
      for (unsigned operation = 0; operation < 4; ++operation) {
        LaneInputs inputs;
        for (unsigned i = 0; i < 256; ++i) {
          for (std::vector<uint32_t>* word : {&inputs.a, &inputs.b}) {
            uint32_t value = random();
            if (i % 4 == 0) value = value & 0x80808080u; // zeros of both signs
            if (i % 4 == 1) value |= 0x7f007f00u;        // NaN or infinity in some
            word->push_back(value);
          }
          inputs.c.push_back(type << 2 | operation);
        }
        const std::string form = bits == 16 ? "b16.b4" : "b8.b2";
        const LaneResults results = run("  spcompress." + form + ".sp::2:4.x1 {%d}, {%q}, {%a, %b}, %c;", inputs);
        const unsigned index_bits = bits == 16 ? 4 : 2, groups = 64 / bits / 4;
        for (unsigned i = 0; i < 256; ++i) {
          const uint64_t data = inputs.a[i] | static_cast<uint64_t>(inputs.b[i]) << 32;
          uint32_t indices = 0;
          uint32_t kept = 0;
          for (unsigned group = 0; group < groups; ++group) {
            std::vector<double> values;
            std::vector<uint32_t> codes;
            for (unsigned j = 0; j < 4; ++j) {
              codes.push_back(static_cast<uint32_t>(data >> (group * 4 + j) * bits & ((1u << bits) - 1)));
              values.push_back(element_value(codes.back(), bits, type));
            }
            const std::vector<unsigned> two = sorted_choice(values, operation);
            for (unsigned j = 0; j < 2; ++j) {
              indices |= two[j] << (group * 2 + j) * index_bits;
              kept |= codes[two[j]] << (group * 2 + j) * bits;
            }
          }
          CAPTURE(bits);
          CAPTURE(type);
          CAPTURE(operation);
          CAPTURE(inputs.a[i]);
          CAPTURE(inputs.b[i]);
          REQUIRE(results.d[i] == indices);
          REQUIRE(results.q[i] == kept);
        }
      }
}

TEST_CASE("spdecompress scatters elements of every ratio") {
  struct Row {
    const char* form;
    unsigned bits, index_bits, kept, of, groups;
  };
  const Row rows[] = {{"b8.b2.sp::1:4.x2", 8, 2, 1, 4, 2},   {"b8.b4.sp::1:8.x1", 8, 4, 1, 8, 1},
                      {"b8.b4.sp::4:8.x1", 8, 4, 4, 8, 1},   {"b8.b4.sp::2:8.x1", 8, 4, 2, 8, 1},
                      {"b8.b2.sp::1:2.x4", 8, 2, 1, 2, 4},   {"b16.b2.sp::1:2.x2", 16, 2, 1, 2, 2},
                      {"b16.b4.sp::1:4.x1", 16, 4, 1, 4, 1}, {"b16.b2.sp::2:4.x1", 16, 2, 2, 4, 1}};
  std::mt19937 random(6);
  for (const Row& row : rows) {
    CAPTURE(row.form);
    LaneInputs inputs;
    std::vector<uint64_t> expected(64);
    for (uint64_t& data : expected) {
      uint32_t indices = 0;
      const uint32_t kept = random();
      for (unsigned i = 0; i < row.groups * row.kept; ++i) {
        const unsigned index = random() % row.of, at = (i / row.kept * row.of + index) * row.bits;
        const uint64_t mask = (uint64_t(1) << row.bits) - 1;
        indices |= index << i * row.index_bits;
        data = (data & ~(mask << at)) | (kept >> i * row.bits & mask) << at; // the last one stays
      }
      inputs.a.push_back(indices);
      inputs.b.push_back(kept);
    }
    const bool is_wide = row.of * row.groups * row.bits > 32;
    const LaneResults results =
        run(std::string("  spdecompress.") + row.form + (is_wide ? " {%d, %q}" : " {%d}") + ", {%a}, {%b};", inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(results.d[i] == static_cast<uint32_t>(expected[i]));
      if (is_wide) REQUIRE(results.q[i] == static_cast<uint32_t>(expected[i] >> 32));
    }
  }
}

TEST_CASE("reserved descriptors and indices beyond their group") {
  CHECK(run_lanes("  spcompress.b16.b4.sp::2:4.x1 {%d}, {%q}, {%a, %b}, %c;", {{0}, {0}, {8}, {}}, {}, header)
            .run.failure()
            .starts_with("sparsity descriptor 0x8"));
  CHECK(run_lanes("  spdecompress.b16.b4.sp::1:4.x1 {%d, %q}, {%a}, {%b};", {{7}, {0}, {}, {}}, {}, header)
            .run.failure()
            .starts_with("an index in a group of 4"));
}

} // namespace ptxrewrite::emulator::sparse_vector_test
