// wgmma against an independent description: layouts in shared memory in CuTe's terms, shapes and strides of nested
// coordinates followed by a swizzle, and products of whole numbers, which do not depend on the order of summation.
#include "emulator/core/engine.h"
#include "tests/unit/emulator/special/warp_group_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

namespace ptxrewrite::emulator::warp_group_test {
namespace {

using namespace warp_group_test;

// --- whole numbers in all types ---

struct Element {
  const char* name;
  unsigned bits;
  std::array<uint32_t, 4> codes;
  std::array<int, 4> values;
};
constexpr Element elements[] = {
    {"f16", 16, {0x0000, 0x3c00, 0xc000, 0x4200}, {0, 1, -2, 3}},
    {"bf16", 16, {0x0000, 0x3f80, 0xc000, 0x4040}, {0, 1, -2, 3}},
    {"tf32", 32, {0x00001000, 0x3f800fff, 0xc0000000, 0x40401234}, {0, 1, -2, 3}}, // the low 13 bits are ignored
    {"e4m3", 8, {0x00, 0x38, 0xc0, 0x44}, {0, 1, -2, 3}},
    {"e5m2", 8, {0x00, 0x3c, 0xc0, 0x42}, {0, 1, -2, 3}},
    {"s8", 8, {0x00, 0x01, 0xfe, 0x83}, {0, 1, -2, -125}},
    {"u8", 8, {0x00, 0x01, 0xfe, 0x83}, {0, 1, 254, 131}},
};
const Element& element(const std::string& name) {
  for (const Element& one : elements)
    if (name == one.name) return one;
  FAIL("no such type");
  return elements[0];
}

// An image of shared memory filled with codes of the type.
std::vector<uint8_t> random_image(const Element& type, size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> image(bytes);
  for (size_t at = 0; at < bytes; at += type.bits / 8)
    std::memcpy(image.data() + at, &type.codes[random() % 4], type.bits / 8);
  return image;
}

int value_at(const Element& type, const std::vector<uint8_t>& bytes, size_t at) {
  if (at + type.bits / 8 > bytes.size()) FAIL("an address behind the image");
  uint32_t code = 0;
  std::memcpy(&code, bytes.data() + at, type.bits / 8);
  for (unsigned i = 0; i < 4; ++i)
    if (type.codes[i] == code) return type.values[i];
  FAIL("no such code");
  return 0;
}

float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25)
                                   : std::ldexp(static_cast<float>(fraction), -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

float sum_value(const Form& form, const std::vector<uint32_t>& d, unsigned thread, unsigned index) {
  if (form.half_sums()) {
    const uint32_t word = d[thread * form.d_registers() + index / 2];
    return half_value(static_cast<uint16_t>(index % 2 ? word >> 16 : word));
  }
  const uint32_t word = d[thread * form.d_registers() + index];
  if (form.types.starts_with("s32")) return static_cast<float>(static_cast<int32_t>(word));
  return std::bit_cast<float>(word);
}

using Numbers = std::function<int(unsigned row, unsigned column)>;

void check_product(const Form& form, const PtxRun& run, const Numbers& a, const Numbers& b) {
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint32_t> d = run.buffer<uint32_t>(1);
  unsigned wrong = 0;
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned index = 0; index < form.n / 2; ++index) {
      const auto [row, column] = place_of_sum(thread, index);
      int sum = 0;
      for (unsigned i = 0; i < form.k; ++i)
        sum += a(row, i) * b(column, i);
      if (static_cast<float>(sum) != sum_value(form, d, thread, index)) ++wrong;
    }
  CHECK(wrong == 0);
}

struct Types {
  const char *d, *a, *b;
  unsigned k;
};
constexpr Types all_types[] = {{"f32", "f16", "f16", 16},   {"f16", "f16", "f16", 16},   {"f32", "bf16", "bf16", 16},
                               {"f32", "tf32", "tf32", 8},  {"f32", "e4m3", "e5m2", 32}, {"f16", "e5m2", "e4m3", 32},
                               {"f32", "e5m2", "e5m2", 32}, {"f16", "e4m3", "e4m3", 32}, {"s32", "s8", "s8", 32},
                               {"s32", "u8", "u8", 32},     {"s32", "s8", "u8", 32},     {"s32", "u8", "s8", 32}};

Form form_of(const Types& types, unsigned n) {
  Form form;
  form.types = std::string(types.d) + "." + types.a + "." + types.b;
  form.n = n;
  form.k = types.k;
  const unsigned bits = element(types.a).bits;
  form.behind = std::string(types.d) == "s32" ? "" : bits == 16 ? ", 1, 1, 0, 0" : ", 1, 1";
  return form;
}

TEST_CASE("operands of every type lie in shared memory as the canonical layouts say, in every swizzle") {
  unsigned seed = 1;
  for (const Types& types : all_types)
    for (const unsigned bits : {0u, 1u, 2u, 3u})
      for (const unsigned n : {8u, 32u}) {
        CAPTURE(types.a);
        CAPTURE(bits);
        CAPTURE(n);
        const Form form = form_of(types, n);
        const Element &a_type = element(types.a), &b_type = element(types.b);
        // A: 64 rows, B: n; B's image follows A's, and both have gaps between their groups of eight rows.
        const uint32_t group = 16u * (8u << bits), leading = bits ? 16 : 128, stride = bits ? group : 256 + 16;
        const uint32_t a_start = 2048, b_start = 16384;
        Input input;
        input.shared = random_image(a_type, 32768, seed++);
        const std::vector<uint8_t> of_b = random_image(b_type, 32768, seed++);
        std::copy(of_b.begin() + b_start, of_b.end(), input.shared.begin() + b_start);
        input.a = descriptor(a_start, leading, stride, bits);
        input.b = descriptor(b_start, leading, stride, bits);
        const Layout a = canonical_layout(false, bits, a_type.bits / 8, leading, stride);
        const Layout b = canonical_layout(false, bits, b_type.bits / 8, leading, stride);
        check_product(
            form, run_product(form, input),
            [&](unsigned row, unsigned i) { return value_at(a_type, input.shared, a.address(a_start, row, i)); },
            [&](unsigned column, unsigned i) { return value_at(b_type, input.shared, b.address(b_start, column, i)); });
      }
}

TEST_CASE("operands of 16 bits may lie with their rows or columns contiguous") {
  unsigned seed = 100;
  for (const Types& types : {all_types[0], all_types[1], all_types[2]})
    for (const unsigned bits : {0u, 1u, 2u, 3u})
      for (const bool a_major : {false, true})
        for (const bool b_major : {false, true}) {
          CAPTURE(types.a);
          CAPTURE(bits);
          CAPTURE(a_major);
          CAPTURE(b_major);
          Form form = form_of(types, 96);
          form.behind = std::string(", 1, 1, ") + (a_major ? "1" : "0") + ", " + (b_major ? "1" : "0");
          const Element& type = element(types.a);
          const auto strides = [&](bool major) -> std::pair<uint32_t, uint32_t> {
            if (!major) return {bits ? 16 : 128, bits ? 16u * (8u << bits) : 256};
            return bits ? std::pair{16u * (8u << bits) * 2 + 1024, 16u * (8u << bits)} : std::pair{2560u, 128u + 16};
          };
          const uint32_t a_start = 1024, b_start = 24576;
          const auto [a_leading, a_stride] = strides(a_major);
          const auto [b_leading, b_stride] = strides(b_major);
          Input input;
          input.shared = random_image(type, 65536, seed++);
          input.a = descriptor(a_start, a_leading, a_stride, bits);
          input.b = descriptor(b_start, b_leading, b_stride, bits);
          const Layout a = canonical_layout(a_major, bits, 2, a_leading, a_stride);
          const Layout b = canonical_layout(b_major, bits, 2, b_leading, b_stride);
          check_product(
              form, run_product(form, input),
              [&](unsigned row, unsigned i) { return value_at(type, input.shared, a.address(a_start, row, i)); },
              [&](unsigned column, unsigned i) { return value_at(type, input.shared, b.address(b_start, column, i)); });
        }
}

TEST_CASE("groups of eight columns at different places of the swizzle's pattern") {
  const Element& type = element("f16");
  const Form form = form_of(all_types[0], 32);
  for (const unsigned bits : {1u, 2u, 3u}) {
    CAPTURE(bits);
    const uint32_t group = 16u * (8u << bits), a_start = 1024, b_start = 16384;
    Input input;
    input.shared = random_image(type, 32768, 9 + bits);
    input.a = descriptor(a_start, 16, group, bits);
    input.b = descriptor(b_start, 16, group + 128, bits);
    const Layout a = canonical_layout(false, bits, 2, 16, group), b = canonical_layout(false, bits, 2, 16, group + 128);
    check_product(
        form, run_product(form, input),
        [&](unsigned row, unsigned i) { return value_at(type, input.shared, a.address(a_start, row, i)); },
        [&](unsigned column, unsigned i) { return value_at(type, input.shared, b.address(b_start, column, i)); });
  }
}

TEST_CASE("a matrix may start inside of the pattern of its swizzle, and the pattern at any row of 128 bytes") {
  const Element& type = element("f16");
  const Form form = form_of(all_types[0], 8);
  for (const unsigned step : {0u, 1u, 2u, 3u}) { // of 16 along k, in a row of 64
    Input input;
    input.shared = random_image(type, 16384, 7);
    const uint32_t a_start = 1024 + step * 32, b_start = 9216 + step * 32;
    input.a = descriptor(a_start, 16, 1024, 3);
    input.b = descriptor(b_start, 16, 1024, 3);
    const Layout layout = canonical_layout(false, 3, 2, 16, 1024);
    const auto at = [&](uint32_t start) {
      return [&, start](unsigned row, unsigned i) {
        return value_at(type, input.shared, layout.address(start, row, i + 16 * step));
      };
    };
    check_product(form, run_product(form, input), at(1024), at(9216));
  }
  // The pattern starts two rows later: an address minus those two rows is swizzled as if they did not exist.
  Input input;
  input.shared = random_image(type, 16384, 8);
  input.a = descriptor(1024 + 256, 16, 1024, 3, 2);
  input.b = descriptor(10240, 16, 1024, 3);
  const Layout layout = canonical_layout(false, 3, 2, 16, 1024);
  check_product(
      form, run_product(form, input),
      [&](unsigned row, unsigned i) { return value_at(type, input.shared, layout.address(1024, row, i) + 256); },
      [&](unsigned row, unsigned i) { return value_at(type, input.shared, layout.address(10240, row, i)); });
}

TEST_CASE("A may lie in registers, and every number of columns is multiplied") {
  unsigned seed = 200;
  for (const Types& types : all_types)
    for (const unsigned n : {8u, 24u, 64u, 192u, 256u}) {
      CAPTURE(types.a);
      CAPTURE(n);
      Form form = form_of(types, n);
      form.a_in_registers = true;
      const Element &a_type = element(types.a), &b_type = element(types.b);
      if (a_type.bits == 16) form.behind = ", 1, 1, 0";
      Input input;
      input.shared = random_image(b_type, 16384, seed++);
      input.b = descriptor(0, 128, 256, 0);
      std::mt19937 random(seed++);
      std::vector<int> a(64 * form.k);
      for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned reg = 0; reg < 4; ++reg)
          for (unsigned i = 0; i < 32 / a_type.bits; ++i) {
            const unsigned which = random() % 4;
            const auto [row, column] = place_of_a(thread, reg, i, a_type.bits);
            input.a_registers[thread * 4 + reg] |= a_type.codes[which] << (i * a_type.bits);
            a[row * form.k + column] = a_type.values[which];
          }
      const Layout b = canonical_layout(false, 0, b_type.bits / 8, 128, 256);
      check_product(
          form, run_product(form, input), [&](unsigned row, unsigned i) { return a[row * form.k + i]; },
          [&](unsigned column, unsigned i) { return value_at(b_type, input.shared, b.address(0, column, i)); });
    }
}

TEST_CASE("single bits: how many a row and a column have in common") {
  std::mt19937 random(5);
  Form form{.types = "s32.b1.b1", .n = 16, .k = 256, .behind = ""};
  form.operation = ".and.popc";
  Input input;
  input.shared.resize(8192);
  for (uint8_t& byte : input.shared)
    byte = static_cast<uint8_t>(random());
  input.a = descriptor(0, 128, 256, 0);
  input.b = descriptor(4096, 128, 256, 0);
  const Layout layout = canonical_layout(false, 0, 1, 128, 256);
  const auto bit = [&](uint32_t start) {
    return
        [&, start](unsigned row, unsigned i) { return input.shared[layout.address(start, row, i / 8)] >> (i % 8) & 1; };
  };
  check_product(form, run_product(form, input), bit(0), bit(4096));
}

TEST_CASE("a sum is added to, or replaced; the signs of A and B may be turned") {
  const Element& type = element("f16");
  for (const bool adds : {false, true})
    for (const char* signs : {", 1, 1, 0, 0", ", -1, 1, 0, 0", ", 1, -1, 0, 0", ", -1, -1, 0, 0"}) {
      Form form = form_of(all_types[0], 8);
      form.behind = signs;
      Input input;
      input.shared = random_image(type, 4096, 9);
      input.a = descriptor(0, 128, 256, 0);
      input.b = descriptor(2048, 128, 256, 0);
      input.adds = adds;
      for (unsigned i = 0; i < 128 * 4; ++i)
        input.d.push_back(std::bit_cast<uint32_t>(static_cast<float>(i)));
      const PtxRun run = run_product(form, input);
      REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
      const std::vector<uint32_t> d = run.buffer<uint32_t>(1);
      const Layout layout = canonical_layout(false, 0, 2, 128, 256);
      const int sign = std::string(signs).find("-1") == std::string(signs).rfind("-1") &&
                               std::string(signs).find("-1") != std::string::npos
                           ? -1
                           : 1;
      unsigned wrong = 0;
      for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned index = 0; index < 4; ++index) {
          const auto [row, column] = place_of_sum(thread, index);
          int sum = 0;
          for (unsigned i = 0; i < 16; ++i)
            sum += value_at(type, input.shared, layout.address(0, row, i)) *
                   value_at(type, input.shared, layout.address(2048, column, i));
          const float expected = static_cast<float>(sign * sum + (adds ? static_cast<int>(thread * 4 + index) : 0));
          if (sum_value(form, d, thread, index) != expected) ++wrong;
        }
      CHECK(wrong == 0);
    }
}

// Half of A stored, always columns 0 and 3 of each four (tf32: column 1 of each two).
TEST_CASE("a sparse A, from shared memory and from registers") {
  struct Row {
    Types types; // k of the whole matrix
    unsigned selectors;
  };
  const Row rows[] = {{{"f32", "f16", "f16", 32}, 2},   {{"f16", "f16", "f16", 32}, 2},
                      {{"f32", "bf16", "bf16", 32}, 2}, {{"f32", "tf32", "tf32", 16}, 2},
                      {{"f32", "e4m3", "e5m2", 64}, 1}, {{"s32", "u8", "s8", 64}, 1}};
  unsigned seed = 400;
  for (const Row& row : rows)
    for (const bool in_registers : {false, true})
      for (unsigned selector = 0; selector < row.selectors; ++selector) {
        CAPTURE(row.types.a);
        CAPTURE(in_registers);
        CAPTURE(selector);
        const Element &a_type = element(row.types.a), &b_type = element(row.types.b);
        Form form = form_of(row.types, 16);
        form.a_in_registers = in_registers;
        if (a_type.bits == 16 && in_registers) form.behind = ", 1, 1, 0";
        form.selector = std::to_string(selector);
        // Lanes that are not named by the selector have wrong metadata.
        const uint32_t right = a_type.bits == 32 ? 0xeeeeeeee : 0xcccccccc,
                       other = a_type.bits == 32 ? 0x44444444 : 0x99999999;
        const uint32_t lanes_of_row = a_type.bits == 8 ? 4 : 2;
        form.metadata = "  and.b32 %x, %t, 3;\n  shr.u32 %x, %x, " + std::to_string(lanes_of_row / 2) +
                        ";\n  setp.eq.u32 %more, %x, " + std::to_string(selector) + ";\n  selp.b32 %m, " +
                        std::to_string(right) + ", " + std::to_string(other) + ", %more;\n";
        if (lanes_of_row == 4) form.metadata = "  mov.u32 %m, " + std::to_string(right) + ";\n";
        Input input;
        input.shared = random_image(a_type, 32768, seed++);
        const std::vector<uint8_t> of_b = random_image(b_type, 32768, seed++);
        std::copy(of_b.begin() + 16384, of_b.end(), input.shared.begin() + 16384);
        input.a = descriptor(0, 128, 256, 0);
        input.b = descriptor(16384, 128, 1024, 0);
        const unsigned stored = form.k / 2;
        std::vector<int> a(64 * stored);
        std::mt19937 random(seed++);
        for (unsigned thread = 0; thread < 128; ++thread)
          for (unsigned reg = 0; reg < 4; ++reg)
            for (unsigned i = 0; i < 32 / a_type.bits; ++i) {
              const unsigned which = random() % 4;
              const auto [line, column] = place_of_a(thread, reg, i, a_type.bits);
              input.a_registers[thread * 4 + reg] |= a_type.codes[which] << (i * a_type.bits);
              a[line * stored + column] = a_type.values[which];
            }
        const Layout layout = canonical_layout(false, 0, a_type.bits / 8, 128, 256);
        const Layout b = canonical_layout(false, 0, b_type.bits / 8, 128, 1024);
        check_product(
            form, run_product(form, input),
            [&](unsigned line, unsigned i) {
              const unsigned of_chunk = a_type.bits == 32 ? 2 : 4, inside = i % of_chunk;
              if (inside != 0 && inside != of_chunk - 1) return 0;
              if (a_type.bits == 32 && inside == 0) return 0;
              const unsigned place = a_type.bits == 32 ? i / 2 : i / 4 * 2 + (inside ? 1 : 0);
              return in_registers ? a[line * stored + place]
                                  : value_at(a_type, input.shared, layout.address(0, line, place));
            },
            [&](unsigned column, unsigned i) { return value_at(b_type, input.shared, b.address(16384, column, i)); });
      }
}

// --- asynchrony ---

Input simple_input() {
  Input input;
  input.shared = random_image(element("f16"), 8192, 11);
  input.a = descriptor(0, 128, 256, 0);
  input.b = descriptor(4096, 128, 256, 0);
  return input;
}

std::vector<std::string> findings(const PtxRun& run) {
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  std::vector<std::string> messages;
  for (const Finding& finding : run.result.findings)
    messages.push_back(finding.where.message);
  return messages;
}

bool any_has(const std::vector<std::string>& messages, std::string_view text) {
  return std::ranges::any_of(messages, [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

const Form small = {};
const std::string product = "  " + instruction(small, list("%d", 4));
const std::string overwrite = "  mov.u32 %s, tile;\n  shl.b32 %i, %t, 2;\n  add.u32 %s, %s, %i;\n  mov.u32 %x, 0;\n"
                              "  st.shared.u32 [%s + 4096], %x;\n";

TEST_CASE("a kernel that waits gives the same whenever its products take place, and nothing is found in it") {
  const Input input = simple_input();
  const std::string text = begin + product + end + "  bar.sync 0;\n" + overwrite;
  const PtxRun at_once = run_products(small, input, text),
               late = run_products(small, input, text, {.late_copies = true});
  REQUIRE_MESSAGE(at_once.ok(), at_once.error << at_once.failure());
  REQUIRE_MESSAGE(late.ok(), late.error << late.failure());
  CHECK(at_once.buffer<uint32_t>(1) == late.buffer<uint32_t>(1));
  CHECK(findings(run_products(small, input, text, {.check = true})).empty());
  CHECK(findings(run_products(small, input, text, {.check = true, .late_copies = true})).empty());
}

TEST_CASE("sums that are changed between products, by both engines") {
  Input input = simple_input();
  const std::vector<float> once = run_product(small, input).buffer<float>(1);
  input.adds = 1;
  std::string doubled; // in enough instructions for code to be made of them
  for (unsigned step = 0; step < 16; ++step)
    for (unsigned i = 0; i < 4; ++i) {
      const std::string d = "%d" + std::to_string(i);
      doubled +=
          step % 2 ? "  mul.f32 " + d + ", " + d + ", 0f3F000000;\n" : "  mul.f32 " + d + ", " + d + ", 0f40000000;\n";
      if (step == 15) doubled += "  add.f32 " + d + ", " + d + ", " + d + ";\n";
    }
  const std::string text = "  mov.u32 %i, 0;\nAGAIN:\n" + doubled + begin + product + end +
                           "  add.u32 %i, %i, 1;\n  setp.lt.u32 %more, %i, 12;\n  @%more bra AGAIN;\n";
  for (const Engine engine : {Engine::interpreter, Engine::generated}) {
    LaunchRequest request;
    request.machines.set(EngineSetting{engine});
    const PtxRun run = run_products(small, input, text, request);
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    const std::vector<float> sums = run.buffer<float>(1);
    for (size_t i = 0; i < once.size(); ++i) // 1 + 2 + 4 ... of each product
      REQUIRE(sums[i] == 4095 * once[i]);
  }
}

TEST_CASE("an operand that is overwritten before the product is waited for") {
  const Input input = simple_input();
  const std::string text = begin + product + "  wgmma.commit_group.sync.aligned;\n  bar.sync 0;\n" + overwrite +
                           "  bar.sync 0;\n  wgmma.wait_group.sync.aligned 0;\n";
  const PtxRun at_once = run_products(small, input, text),
               late = run_products(small, input, text, {.late_copies = true});
  CHECK(at_once.buffer<uint32_t>(1) != late.buffer<uint32_t>(1));
  const std::vector<std::string> found = findings(run_products(small, input, text, {.check = true}));
  CHECK(any_has(found, "an asynchronous matrix product of warps 0-3"));
}

TEST_CASE("waiting for all groups but the newest leaves that one open") {
  const Input input = simple_input();
  const std::string first = begin + product + "  wgmma.commit_group.sync.aligned;\n" + product +
                            "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned ";
  const std::string text = "1;\n  bar.sync 0;\n" + overwrite + "  bar.sync 0;\n  wgmma.wait_group.sync.aligned 0;\n";
  CHECK(any_has(findings(run_products(small, input, first + text, {.check = true})), "matrix product"));
  std::string waits_for_both = first + text;
  waits_for_both.replace(first.size(), 1, "0");
  CHECK(findings(run_products(small, input, waits_for_both, {.check = true})).empty());
}

TEST_CASE("missing fences") {
  const Input input = simple_input();
  const auto found_in = [&](const std::string& text) {
    return findings(run_products(small, input, text, {.check = true}));
  };
  CHECK(any_has(found_in("  bar.sync 0;\n  wgmma.fence.sync.aligned;\n" + product + end),
                "missing fence: the matrix product reads shared 0x"));
  // After the barrier it orders all writes known to its own warp, which are all of them: correct.
  CHECK(found_in("  bar.sync 0;\n  fence.proxy.async.shared::cta;\n  wgmma.fence.sync.aligned;\n" + product + end)
            .empty());
  // Before the writes of others.
  CHECK(any_has(
      found_in("  fence.proxy.async;\n" + overwrite + "  bar.sync 0;\n  wgmma.fence.sync.aligned;\n" + product + end),
      "with no fence.proxy.async behind"));
  CHECK(any_has(found_in("  fence.proxy.async;\n  bar.sync 0;\n" + product + end),
                "missing fence: no wgmma.fence has been executed before this matrix product"));
  CHECK(any_has(found_in(begin + "  add.u32 %d2, %d2, 1;\n" + product + end),
                "missing fence: register 2 of D has been written since the last wgmma.fence"));
  CHECK(found_in(begin + product + product + end).empty());
}

TEST_CASE("descriptors outside of shared memory, and groups that are not whole") {
  Input input = simple_input();
  input.b = descriptor(8192 - 128, 128, 256, 0);
  CHECK(run_product(small, input).failure() ==
        "the descriptor of matrix B describes 16 bytes at shared 0x2000, of 8192 bytes of shared memory");
  input = simple_input();
  input.a = descriptor(0, 128, 0x3fff0, 0);
  CHECK(run_product(small, input).failure().find("matrix A") != std::string::npos);
  CHECK(run_product(small, simple_input(), {.block = {96}}).failure() ==
        "the warp group has fewer than four warps: the block's threads are no multiple of 128");
  const std::string text = begin + "  setp.ge.u32 %more, %t, 96;\n  @%more bra BEHIND;\n" + product + end + "BEHIND:\n";
  const std::string failure = run_products(small, simple_input(), text).failure();
  CHECK(failure.find("deadlock") == 0);
  CHECK(failure.find("warps 0-2 wait for a matrix product of the whole warp group in line") != std::string::npos);
}

TEST_CASE("two warp groups multiply apart from one another") {
  const Input input = simple_input();
  const std::string text =
      begin + "  setp.lt.u32 %more, %t, 128;\n  @%more bra BEHIND;\n" + product + end + "BEHIND:\n";
  CHECK(findings(run_products(small, input, text, {.block = {256}, .check = true})).empty());
}

} // namespace
} // namespace ptxrewrite::emulator::warp_group_test
