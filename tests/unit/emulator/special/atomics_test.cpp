// atom and red against sequential updates, thread after thread; also with several host threads.
#include "tests/unit/emulator/run_ptx.h"

#include <bit>
#include <cmath>
#include <functional>
#include <random>

namespace ptxrewrite::emulator::atomics_test {
namespace {

// One element in the low bits of a 64-bit number.
using Update = std::function<uint64_t(uint64_t old, uint64_t b, uint64_t c)>;

struct Row {
  std::string words; // "add.u32"
  unsigned bits;
  Update update;
  bool has_c = false;
};

template <class T> uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> T from(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A number with `digits` binary digits, ties to even; for numbers of the normal range.
double rounded(double value, int digits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits);
}
double half_value(uint64_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = static_cast<double>(bits & ((1u << fraction_bits) - 1)) / (1 << fraction_bits);
  return std::ldexp(1 + fraction, exponent - bias) * (bits & 0x8000 ? -1 : 1);
}
uint64_t half_bits(double value, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(rounded(value, fraction_bits + 1)), &exponent) * 2 - 1;
  return (value < 0 ? 0x8000u : 0u) | static_cast<uint64_t>(exponent - 1 + bias) << fraction_bits |
         static_cast<uint64_t>(fraction * (1 << fraction_bits));
}
Update add_halves(int exponent_bits, unsigned count) {
  return [=](uint64_t old, uint64_t b, uint64_t) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; ++i)
      sum |=
          half_bits(half_value(old >> 16 * i & 0xffff, exponent_bits) + half_value(b >> 16 * i & 0xffff, exponent_bits),
                    exponent_bits)
          << 16 * i;
    return sum;
  };
}

template <class T> Update by_type(T (*function)(T, T)) {
  return [=](uint64_t old, uint64_t b, uint64_t) { return bits_of(function(from<T>(old), from<T>(b))); };
}

std::vector<Row> integer_rows() {
  const Update add = [](uint64_t old, uint64_t b, uint64_t) { return old + b; };
  std::vector<Row> rows = {
      {"add.u32", 32, add},
      {"add.s32", 32, add},
      {"add.u64", 64, add},
      {"min.u32", 32, by_type<uint32_t>([](uint32_t x, uint32_t y) { return std::min(x, y); })},
      {"max.u32", 32, by_type<uint32_t>([](uint32_t x, uint32_t y) { return std::max(x, y); })},
      {"min.s32", 32, by_type<int32_t>([](int32_t x, int32_t y) { return std::min(x, y); })},
      {"max.s32", 32, by_type<int32_t>([](int32_t x, int32_t y) { return std::max(x, y); })},
      {"min.u64", 64, by_type<uint64_t>([](uint64_t x, uint64_t y) { return std::min(x, y); })},
      {"max.u64", 64, by_type<uint64_t>([](uint64_t x, uint64_t y) { return std::max(x, y); })},
      {"min.s64", 64, by_type<int64_t>([](int64_t x, int64_t y) { return std::min(x, y); })},
      {"max.s64", 64, by_type<int64_t>([](int64_t x, int64_t y) { return std::max(x, y); })},
      {"inc.u32", 32, [](uint64_t old, uint64_t b, uint64_t) { return old >= b ? 0 : old + 1; }},
      {"dec.u32", 32, [](uint64_t old, uint64_t b, uint64_t) { return old == 0 || old > b ? b : old - 1; }},
  };
  for (const std::string width : {"32", "64"}) {
    const auto bits = static_cast<unsigned>(std::stoul(width));
    rows.push_back({"and.b" + width, bits, [](uint64_t old, uint64_t b, uint64_t) { return ~(~old | ~b); }});
    rows.push_back({"or.b" + width, bits, [](uint64_t old, uint64_t b, uint64_t) { return ~(~old & ~b); }});
    rows.push_back({"xor.b" + width, bits, [](uint64_t old, uint64_t b, uint64_t) { return (old | b) - (old & b); }});
  }
  return rows;
}

std::vector<Row> returning_rows() {
  std::vector<Row> rows;
  for (const std::string width : {"32", "64"})
    rows.push_back(
        {"exch.b" + width, static_cast<unsigned>(std::stoul(width)), [](uint64_t, uint64_t b, uint64_t) { return b; }});
  for (const std::string width : {"16", "32", "64"})
    rows.push_back({"cas.b" + width, static_cast<unsigned>(std::stoul(width)),
                    [](uint64_t old, uint64_t b, uint64_t c) { return old == b ? c : old; }, true});
  return rows;
}

std::vector<Row> float_rows() {
  return {
      {"add.f32", 32, by_type<float>([](float x, float y) { return x + y; })},
      {"add.f64", 64, by_type<double>([](double x, double y) { return x + y; })},
      {"add.noftz.f16", 16, add_halves(5, 1)},
      {"add.noftz.bf16", 16, add_halves(8, 1)},
      {"add.noftz.f16x2", 32, add_halves(5, 2)},
      {"add.noftz.bf16x2", 32, add_halves(8, 2)},
  };
}

// Thread t: atom on memory[indices[t]] with b[t] and c[t], the old value to olds[t]. Shared memory: each block has its
// own copy.
std::string kernel_of(const Row& row, const std::string& opcode, const std::string& space, bool fetches) {
  const std::string bits = std::to_string(row.bits), bytes = std::to_string(row.bits / 8);
  const std::string where = space.find("shared") != std::string::npos ? "%place" : "%element";
  const std::string copy_in = where == "%place"
                                  ? "  setp.lt.u32 %p0, %t, 4;\n  @%p0 ld.global.b" + bits +
                                        " %v, [%own];\n  @%p0 st.shared.b" + bits + " [%mine], %v;\n  bar.sync 0;\n"
                                  : "";
  const std::string copy_out = where == "%place" ? "  bar.sync 0;\n  @%p0 ld.shared.b" + bits +
                                                       " %v, [%mine];\n  @%p0 st.global.b" + bits + " [%own], %v;\n"
                                                 : "";
  return kernel("k", ".param .u64 memory, .param .u64 pb, .param .u64 pc, .param .u64 indices, .param .u64 olds",
                "  .reg .b" + bits +
                    " %b, %c, %d, %v;\n  .reg .b32 %t, %n, %i, %s;\n  .reg .pred %p0;\n"
                    "  .reg .b64 %m, %a, %o, %element, %own, %place, %mine;\n"
                    "  mov.u32 %t, %ctaid.x;\n  mov.u32 %n, %ntid.x;\n  mov.u32 %i, %tid.x;\n"
                    "  mad.lo.u32 %t, %t, %n, %i;\n  ld.param.u64 %a, [indices];\n  mul.wide.u32 %o, %t, 4;\n"
                    "  add.u64 %a, %a, %o;\n  ld.global.u32 %i, [%a];\n  mul.wide.u32 %o, %t, " +
                    bytes +
                    ";\n"
                    "  ld.param.u64 %a, [pb];\n  add.u64 %a, %a, %o;\n  ld.global.b" +
                    bits +
                    " %b, [%a];\n"
                    "  ld.param.u64 %a, [pc];\n  add.u64 %a, %a, %o;\n  ld.global.b" +
                    bits +
                    " %c, [%a];\n"
                    "  ld.param.u64 %m, [memory];\n  add.u64 %own, %m, %o;\n  mov.u64 %place, area;\n"
                    "  add.u64 %mine, %place, %o;\n  mul.wide.u32 %o, %i, " +
                    bytes +
                    ";\n  add.u64 %element, %m, %o;\n"
                    "  add.u64 %place, %place, %o;\n  mul.wide.u32 %o, %t, " +
                    bytes + ";\n" + copy_in + "  " + opcode + space + "." + row.words + (fetches ? " %d, [" : " [") +
                    where + "], %b" + (row.has_c ? ", %c" : "") + ";\n" + copy_out +
                    "  ld.param.u64 %a, [olds];\n  add.u64 %a, %a, %o;\n" +
                    (fetches ? "  st.global.b" + bits + " [%a], %d;\n" : "") + "  ret;",
                ".shared .align 16 .b8 area[64];\n");
}

struct Data {
  std::vector<uint64_t> memory, b, c;
  std::vector<uint32_t> indices;
};

Data random_data(const Row& row, size_t threads, uint32_t seed) {
  std::mt19937_64 random(seed);
  const bool floating = row.words.find('f') != std::string::npos;
  const bool few = row.has_c || row.words.starts_with("inc") || row.words.starts_with("dec");
  auto value = [&]() -> uint64_t {
    if (few) return random() % 5;
    if (!floating) return random();
    const double number = static_cast<double>(random() % 2048) / 8 + 1;
    if (row.words.ends_with("f32")) return bits_of(static_cast<float>(number / 3));
    if (row.words.ends_with("f64")) return bits_of(number / 3);
    const int exponent_bits = row.words.find("bf16") != std::string::npos ? 8 : 5;
    return half_bits(number / 3, exponent_bits) | half_bits(number / 7, exponent_bits) << 16;
  };
  Data data;
  for (size_t i = 0; i < 4; ++i)
    data.memory.push_back(value());
  for (size_t i = 0; i < threads; ++i) {
    data.b.push_back(value());
    data.c.push_back(value());
    data.indices.push_back(static_cast<uint32_t>(random() % 4));
  }
  return data;
}

Buffer narrow(const std::vector<uint64_t>& values, unsigned bits) {
  Buffer buffer{std::vector<std::byte>(values.size() * bits / 8)};
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(buffer.bytes.data() + i * bits / 8, &values[i], bits / 8);
  return buffer;
}

uint64_t element(const std::vector<std::byte>& bytes, size_t index, unsigned bits) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + index * bits / 8, bits / 8);
  return value;
}

void check_row(const Row& row, const std::string& opcode, const std::string& space, uint32_t blocks,
               bool same_place = false) {
  CAPTURE(row.words);
  CAPTURE(space);
  const bool fetches = opcode == "atom";
  const uint32_t threads = 64 * blocks;
  Data data = random_data(row, threads, 17 + threads);
  if (same_place) std::fill(data.indices.begin(), data.indices.end(), 2);
  PtxRun run = run_ptx(kernel_of(row, opcode, space, fetches),
                       {.kernel = "k", .grid = {blocks}, .block = {64}, .host_threads = 4},
                       {narrow(data.memory, row.bits), narrow(data.b, row.bits), narrow(data.c, row.bits),
                        buffer_of(data.indices), narrow(std::vector<uint64_t>(threads), row.bits)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const uint64_t mask = row.bits == 64 ? ~uint64_t(0) : (uint64_t(1) << row.bits) - 1;
  for (uint64_t& word : data.memory)
    word &= mask;
  for (size_t i = 0; i < threads; ++i) {
    uint64_t& place = data.memory[data.indices[i]];
    if (fetches) CHECK(element(run.buffers[4], i, row.bits) == place);
    place = row.update(place, data.b[i] & mask, data.c[i] & mask) & mask;
  }
  for (size_t i = 0; i < data.memory.size(); ++i)
    CHECK(element(run.buffers[0], i, row.bits) == data.memory[i]);
}

TEST_CASE("integer operations in global, generic and shared memory") {
  for (const Row& row : integer_rows()) {
    check_row(row, "atom", ".global", 3);
    check_row(row, "atom", "", 3);
    check_row(row, "atom", ".shared", 1);
    check_row(row, "red", ".shared", 1);
    check_row(row, "red", ".global", 3);
    check_row(row, "red", ".global", 3, true);
    check_row(row, "red", ".relaxed.gpu.global", 2);
    check_row(row, "atom", ".acq_rel.cta.shared::cta", 1);
  }
}

TEST_CASE("exchange, and compare and swap") {
  for (const Row& row : returning_rows()) {
    check_row(row, "atom", ".global", 4);
    check_row(row, "atom", ".shared", 1);
    check_row(row, "atom", ".release.sys", 2);
  }
}

TEST_CASE("float additions in thread order") {
  for (const Row& row : float_rows()) {
    check_row(row, "atom", ".global", 4);
    check_row(row, "red", ".global", 4);
    check_row(row, "red", ".global", 4, true);
    check_row(row, "atom", ".shared", 1);
    check_row(row, "red", ".shared", 1);
  }
}

TEST_CASE("f32 additions flush subnormal numbers in global memory, not in shared memory") {
  const float tiny = 0x1p-140f;
  PtxRun run = run_ptx(kernel("k", ".param .u64 memory", R"(
  .reg .b64 %m, %g;
  .reg .f32 %f<4>;
  ld.param.u64 %m, [memory];
  mov.u64 %g, area;
  mov.f32 %f0, 0f00000200;
  st.shared.f32 [area], %f0;
  red.shared.add.f32 [area], %f0;
  ld.shared.f32 %f1, [area];
  st.global.f32 [%m+4], %f1;
  st.shared.f32 [area], %f0;
  cvta.shared.u64 %g, %g;
  atom.add.f32 %f2, [%g], %f0;
  ld.shared.f32 %f1, [area];
  st.global.f32 [%m+8], %f1;
  red.global.add.f32 [%m], %f0;
  ret;)",
                              ".shared .align 4 .b8 area[4];\n"),
                       {.kernel = "k"}, {buffer_of<float>({tiny, 0, 0})});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(run.buffer<float>(0)[0] == 0.f);
  CHECK(run.buffer<float>(0)[1] == 2 * tiny);
  CHECK(run.buffer<float>(0)[2] == 2 * tiny);
}

TEST_CASE("vectors of floats and halves") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 memory, .param .u64 olds", R"(
  .reg .b64 %m, %o;
  .reg .f32 %f<8>, %g<8>;
  .reg .b16 %h<8>, %k<8>;
  .reg .b32 %x<4>;
  ld.param.u64 %m, [memory];
  ld.param.u64 %o, [olds];
  mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;
  atom.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%m], {%f3, %f2, %f1, %f0};
  st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};
  mov.b32 %x0, 0x40003c00; mov.b32 {%h0, %h1}, %x0;
  mov.b32 %x0, 0xc0004400; mov.b32 {%h2, %h3}, %x0;
  atom.global.min.noftz.v4.f16 {%k0, %k1, %k2, %k3}, [%m+16], {%h0, %h1, %h2, %h3};
  st.global.v4.b16 [%o+16], {%k0, %k1, %k2, %k3};
  mov.b32 %x0, 0x40003f80; mov.b32 %x1, 0xc0004080;
  red.global.max.noftz.v2.bf16x2 [%m+24], {%x0, %x1};
  ret;)"),
                       {.kernel = "k"},
                       {buffer_of<uint32_t>({0x41200000, 0x41200000, 0x41200000, 0x41200000, // 10
                                             0x3e003e00, 0x3e003e00,                         // 1.5 as f16
                                             0x3fc03fc0, 0x3fc03fc0}),                       // 1.5 as bf16
                        zeros<uint32_t>(6)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>{0x41600000, 0x41500000, 0x41400000,
                                                         0x41300000,               // 14, 13, 12, 11
                                                         0x3e003c00, 0xc0003e00,   // 1, 1.5; 1.5, -2
                                                         0x40003fc0, 0x3fc04080}); // 1.5, 2; 4, 1.5
  CHECK(run.buffer<uint32_t>(1) ==
        std::vector<uint32_t>{0x41200000, 0x41200000, 0x41200000, 0x41200000, 0x3e003e00, 0x3e003e00});
}

TEST_CASE("16 bytes at once") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 memory", R"(
  .reg .b64 %m, %x<4>;
  .reg .b128 %q<4>;
  ld.param.u64 %m, [memory];
  ld.global.b128 %q0, [%m+16];
  atom.global.exch.b128 %q1, [%m], %q0;
  st.global.b128 [%m+32], %q1;
  ld.global.b128 %q2, [%m+48];
  atom.global.cas.b128 %q3, [%m], %q0, %q2;
  atom.global.cas.b128 %q3, [%m], %q0, %q1;
  st.global.b128 [%m+64], %q3;
  ret;)"),
                       {.kernel = "k"}, {buffer_of<uint64_t>({1, 2, 3, 4, 0, 0, 7, 8, 0, 0})});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(run.buffer<uint64_t>(0) == std::vector<uint64_t>{7, 8, 3, 4, 1, 2, 7, 8, 7, 8});
}

TEST_CASE("guards, partial warps and scattered places of several allocations") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 first, .param .u64 second", R"(
  .reg .b64 %a, %b;
  .reg .b32 %t, %o;
  .reg .pred %p, %q;
  ld.param.u64 %a, [first];
  ld.param.u64 %b, [second];
  mov.u32 %t, %tid.x;
  and.b32 %o, %t, 1;
  setp.eq.u32 %p, %o, 1;
  setp.lt.u32 %q, %t, 30;
  selp.b64 %a, %a, %b, %p;
  @%q atom.add.u32 %o, [%a], 3;
  ret;)"),
                       {.kernel = "k", .block = {41}}, {zeros<uint32_t>(1), zeros<uint32_t>(1)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(run.buffer<uint32_t>(0)[0] == 15 * 3);
  CHECK(run.buffer<uint32_t>(1)[0] == 15 * 3);
}

TEST_CASE("blocks on many host threads lose no update") {
  for (const std::string place : {"0", "%t"}) {
    PtxRun run = run_ptx(kernel("k", ".param .u64 memory",
                                R"(
  .reg .b64 %m, %o;
  .reg .b32 %t, %i;
  .reg .pred %p;
  ld.param.u64 %m, [memory];
  mov.u32 %t, )" + std::string(place == "0" ? "0" : "%tid.x") +
                                    R"(;
  and.b32 %t, %t, 7;
  mul.wide.u32 %o, %t, 4;
  add.u64 %m, %m, %o;
  mov.u32 %i, 0;
LOOP:
  red.global.add.u32 [%m], 1;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 50;
  @%p bra LOOP;
  ret;)",
                                ""),
                         {.kernel = "k", .grid = {200}, .block = {64}, .host_threads = 8}, {zeros<uint32_t>(8)});
    if (!run.ok()) MESSAGE(run.error << run.failure());
    REQUIRE(run.ok());
    uint64_t total = 0;
    for (uint32_t count : run.buffer<uint32_t>(0))
      total += count;
    CHECK(total == 200 * 64 * 50);
  }
}

TEST_CASE("misaligned, out of bounds and read-only places are told") {
  const std::string body = R"(
  .reg .b64 %m;
  .reg .b32 %d;
  ld.param.u64 %m, [memory];
  atom.global.add.u32 %d, [%m+)";
  auto failure = [&](const std::string& offset) {
    return run_ptx(kernel("k", ".param .u64 memory", body + offset + "], 1;\n  ret;"), {.kernel = "k"},
                   {zeros<uint32_t>(2)})
        .failure();
  };
  CHECK(failure("4").empty());
  CHECK(failure("2").find("not a multiple of 4") != std::string::npos);
  CHECK(failure("8").find("out of bounds") != std::string::npos);
  PtxRun run = run_ptx(kernel("k", "", R"(
  .reg .b64 %m;
  .reg .b32 %d;
  mov.u64 %m, table;
  cvta.const.u64 %m, %m;
  atom.add.u32 %d, [%m], 1;
  ret;)",
                              ".const .b32 table = 5;\n"),
                       {.kernel = "k"});
  CHECK(run.failure() == "atomic operation on constant memory");
}

TEST_CASE("asynchronous reductions in global memory") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 memory", R"(
  .reg .b64 %m;
  .reg .b32 %v;
  ld.param.u64 %m, [memory];
  mov.u32 %v, 3;
  red.async.relaxed.gpu.global.add.u32 [%m], %v;
  st.async.release.gpu.global.u32 [%m + 4], %v;
  ret;)",
                              "")
                           .replace(0, 26, ".version 8.7\n.target sm_100a"),
                       {.kernel = "k", .grid = {4}, .block = {32}}, {zeros<uint32_t>(2)});
  CHECK(run.error == "");
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>{4 * 32 * 3, 3});
}

} // namespace
} // namespace ptxrewrite::emulator::atomics_test
