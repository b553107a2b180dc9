// tcgen05.ld and tcgen05.st: the cell of tensor memory for each register of each lane, as in CUTLASS
// (cute/atom/copy_traits_sm100.hpp: shapes and strides over the bits of the lanes, one lane after the other).
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace ptxrewrite::emulator::tensor_memory_test::transfer_test {
namespace {

struct Part {
  uint32_t shape, stride;
};
uint32_t offset(const std::vector<Part>& parts, uint32_t coordinate) {
  uint32_t sum = 0;
  for (const auto& [shape, stride] : parts) {
    sum += coordinate % shape * stride;
    coordinate /= shape;
  }
  return sum;
}

// DstLayout of the load with one repetition; the bits of a lane are `lane_bits` of them.
struct Shape {
  const char* name;
  uint32_t lane_bits, registers, lanes;
  std::vector<Part> threads, values; // in bits
};
const Shape shapes[] = {
    {"16x64b", 64, 1, 16, {{2, 512}, {2, 32}, {8, 64}}, {{32, 1}}},
    {"16x128b", 128, 2, 16, {{4, 32}, {8, 128}}, {{32, 1}, {2, 1024}}},
    {"16x256b", 256, 4, 16, {{4, 64}, {8, 256}}, {{64, 1}, {2, 2048}}},
    {"32x32b", 32, 1, 32, {{32, 32}}, {{32, 1}}},
};

struct Cell {
  uint32_t lane, column;
};
// `half`: of a register, for packed ones: each 16 bits are in a separate column.
Cell cell_of(const Shape& shape, uint32_t thread, uint32_t index, bool packed, uint32_t half) {
  const uint32_t bit = offset(shape.threads, thread) + offset(shape.values, index % shape.registers * 32) + half * 16;
  const uint32_t in_lane = bit % shape.lane_bits + index / shape.registers * shape.lane_bits;
  return {bit / shape.lane_bits, packed ? in_lane / 16 : in_lane / 32};
}

constexpr uint32_t columns = 384, first_register_column = 256;

std::vector<uint32_t> random_cells(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> cells(128 * columns);
  for (uint32_t& cell : cells)
    cell = static_cast<uint32_t>(random());
  return cells;
}

std::string address(uint32_t lane, uint32_t column) {
  return "  add.u32 %v, %mine, " + std::to_string(lane << 16 | column) + ";\n";
}

// Registers of a thread are in its lane from first_register_column on, before or after the transfer.
std::string transfer(const std::string& name, bool loads, uint32_t count, uint32_t lane, const std::string& between) {
  const std::string list = registers("%z", count);
  const std::string whole = "32x32b.x" + std::to_string(count) + ".b32 ";
  std::string text = "  .reg .b32 %z<128>;\n";
  if (loads) {
    text += address(lane, 0) + "  tcgen05.ld.sync.aligned." + name + " " + list + ", [%v]" + between +
            ";\n  tcgen05.wait::ld.sync.aligned;\n" + address(0, first_register_column) + "  tcgen05.st.sync.aligned." +
            whole + "[%v], " + list + ";\n  tcgen05.wait::st.sync.aligned;\n";
  } else {
    text += address(0, first_register_column) + "  tcgen05.ld.sync.aligned." + whole + list +
            ", [%v];\n  tcgen05.wait::ld.sync.aligned;\n" + address(lane, 0) + "  tcgen05.st.sync.aligned." + name +
            " [%v]" + between + ", " + list + ";\n  tcgen05.wait::st.sync.aligned;\n";
  }
  return text;
}

PtxRun run(const std::string& text, const std::vector<uint32_t>& cells, bool late) {
  TensorKernel kernel;
  kernel.columns = columns;
  kernel.behind = text;
  LaunchRequest request;
  request.late_copies = late;
  return run_tensor_kernel(kernel, cells, request);
}

template <class CellOf>
void check_load(const std::vector<uint32_t>& before, const std::vector<uint32_t>& after, uint32_t count, uint32_t lane,
                bool packed, CellOf&& cell) {
  unsigned wrong = 0;
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t index = 0; index < count; ++index) {
      const auto read = [&](uint32_t half) {
        const Cell at = cell(thread % 32, index, half);
        return before[(thread / 32 * 32 + lane + at.lane) * columns + at.column];
      };
      const uint32_t expected = packed ? (read(0) & 0xffff) | read(1) << 16 : read(0);
      wrong += after[thread * columns + first_register_column + index] != expected;
    }
  CHECK(wrong == 0);
}

template <class CellOf>
void check_store(const std::vector<uint32_t>& before, const std::vector<uint32_t>& after, uint32_t count, uint32_t lane,
                 bool packed, CellOf&& cell) {
  std::vector<uint32_t> expected = before;
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t index = 0; index < count; ++index) {
      const uint32_t value = before[thread * columns + first_register_column + index];
      for (uint32_t half = 0; half < (packed ? 2 : 1); ++half) {
        const Cell at = cell(thread % 32, index, half);
        expected[(thread / 32 * 32 + lane + at.lane) * columns + at.column] =
            packed ? value >> (half * 16) & 0xffff : value;
      }
    }
  CHECK(after == expected);
}

// DeepGEMM's pull request 341: such an address gives the warp's own lanes, but under -G it is an error.
TEST_CASE("an address in another warp's lanes") {
  const std::vector<uint32_t> before = random_cells(9);
  const std::string swapped = "  add.u32 %v, %tm, 0x00600000;\n  sub.u32 %v, %v, %mine;\n  add.u32 %v, %v, %tm;\n";
  const std::string end = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%v];\n  tcgen05.wait::ld.sync.aligned;\n" +
                          address(0, first_register_column) +
                          "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%v], {%r0};\n  tcgen05.wait::st.sync.aligned;\n";
  for (const std::string& place : {std::string("  add.u32 %v, %tm, 5;\n"), swapped + "  add.u32 %v, %v, 5;\n"}) {
    CAPTURE(place);
    TensorKernel kernel;
    kernel.columns = columns;
    kernel.behind = place + end;
    LaunchRequest request;
    for (const bool check : {false, true}) {
      request.check = check;
      const PtxRun done = run_tensor_kernel(kernel, before, request);
      REQUIRE_MESSAGE(done.ok(), done.error << done.failure());
      const std::vector<uint32_t> after = done.buffer<uint32_t>(2);
      std::vector<uint32_t> expected = before;
      for (uint32_t lane = 0; lane < 128; ++lane)
        expected[lane * columns + first_register_column] = before[lane * columns + 5];
      CHECK(after == expected);
      REQUIRE(done.result.findings.size() == (check ? 1 : 0));
      if (check) CHECK(done.result.findings[0].where.message.find("tensor memory: the address is that of lanes ") == 0);
    }
  }
}

TEST_CASE("registers of every shape and number of repetitions") {
  unsigned seed = 1;
  for (const Shape& shape : shapes)
    for (uint32_t repetitions = 1; repetitions * shape.registers <= 128; repetitions *= 2)
      for (const bool packed : {false, true}) {
        const uint32_t count = repetitions * shape.registers;
        if (packed && count * shape.lane_bits / shape.registers / 16 > first_register_column) continue;
        for (const uint32_t lane : {0u, shape.lanes % 32}) {
          const std::string name = std::string(shape.name) + ".x" + std::to_string(repetitions);
          CAPTURE(name);
          CAPTURE(packed);
          const std::vector<uint32_t> before = random_cells(seed++);
          const bool late = seed % 2 == 0;
          const auto cell = [&](uint32_t thread, uint32_t index, uint32_t half) {
            return cell_of(shape, thread, index, packed, half);
          };
          PtxRun loaded =
              run(transfer(name + (packed ? ".pack::16b.b32" : ".b32"), true, count, lane, ""), before, late);
          REQUIRE_MESSAGE(loaded.ok(), loaded.error << loaded.failure());
          check_load(before, loaded.buffer<uint32_t>(2), count, lane, packed, cell);
          PtxRun stored =
              run(transfer(name + (packed ? ".unpack::16b.b32" : ".b32"), false, count, lane, ""), before, late);
          REQUIRE_MESSAGE(stored.ok(), stored.error << stored.failure());
          check_store(before, stored.buffer<uint32_t>(2), count, lane, packed, cell);
        }
      }
}

TEST_CASE("16x32bx2: the second half of the lanes has columns further on") {
  for (const uint32_t further : {16u, 100u})
    for (const uint32_t repetitions : {1u, 2u, 16u}) {
      const std::vector<uint32_t> before = random_cells(further + repetitions);
      // SM100_TMEM_LOAD_16dp32b1x: lanes ((16,2)) with strides of a lane and of the second half.
      const auto cell = [&](uint32_t thread, uint32_t index, uint32_t) {
        return Cell{thread % 16, index + thread / 16 * further};
      };
      const std::string name = "16x32bx2.x" + std::to_string(repetitions) + ".b32";
      const std::string between = ", " + std::to_string(further);
      PtxRun loaded = run(transfer(name, true, repetitions, 16, between), before, false);
      REQUIRE_MESSAGE(loaded.ok(), loaded.error << loaded.failure());
      check_load(before, loaded.buffer<uint32_t>(2), repetitions, 16, false, cell);
      PtxRun stored = run(transfer(name, false, repetitions, 0, between), before, false);
      REQUIRE_MESSAGE(stored.ok(), stored.error << stored.failure());
      check_store(before, stored.buffer<uint32_t>(2), repetitions, 0, false, cell);
    }
}

// Tensor memory after the kernel, which begins with the four values in the first columns of every lane.
std::vector<uint32_t> cells_after(const TensorKernel& kernel, const std::array<uint32_t, 4>& values) {
  std::vector<uint32_t> cells(128 * 32);
  for (size_t lane = 0; lane < 128; ++lane)
    for (size_t i = 0; i < 4; ++i)
      cells[lane * 32 + i] = values[i];
  const PtxRun run = run_tensor_kernel(kernel, cells);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  return run.buffer<uint32_t>(2);
}

// ld.red: the smallest or largest of a thread's registers, by min and max of floats and integers.
TEST_CASE("loads that reduce") {
  struct Case {
    const char* operation;
    std::array<uint32_t, 4> values;
    uint32_t expected;
  };
  const uint32_t nan = 0x7fc00000, one = 0x3f800000, minus_two = 0xc0000000, zero = 0, minus_zero = 0x80000000;
  const Case cases[] = {
      {"min.f32", {one, minus_two, nan, zero}, minus_two},
      {"max.f32", {one, minus_two, nan, zero}, one},
      {"max.abs.f32", {one, minus_two, zero, zero}, 0x40000000},
      {"min.abs.f32", {one, minus_two, one, one}, one},
      {"min.NaN.f32", {one, minus_two, nan, zero}, 0x7fffffff},
      {"max.f32", {nan, nan, nan, nan}, 0x7fffffff},
      {"min.f32", {zero, minus_zero, zero, zero}, minus_zero},
      {"max.f32", {minus_zero, zero, minus_zero, minus_zero}, zero},
      {"min.s32", {1, 0xffffffff, 7, 0}, 0xffffffff},
      {"max.s32", {1, 0xffffffff, 7, 0}, 7},
      {"min.u32", {1, 0xffffffff, 7, 2}, 1},
      {"max.u32", {1, 0xffffffff, 7, 0}, 0xffffffff},
  };
  for (const Case& one_case : cases) {
    CAPTURE(one_case.operation);
    const bool is_float = std::string(one_case.operation).find("f32") != std::string::npos;
    TensorKernel kernel;
    kernel.columns = 32;
    const std::string list = registers("%z", 4);
    kernel.behind = "  .reg .b32 %z<5>;\n  tcgen05.ld.red.sync.aligned.32x32b.x4." + std::string(one_case.operation) +
                    " " + list + ", " + (is_float ? "%f" : "%z4") + ", [%mine];\n  tcgen05.wait::ld.sync.aligned;\n" +
                    (is_float ? "  mov.b32 %z4, %f;\n" : "") +
                    "  add.u32 %v, %mine, 8;\n  tcgen05.st.sync.aligned.32x32b.x4.b32 [%v], " + list +
                    ";\n  add.u32 %v, %mine, 12;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%v], {%z4};\n"
                    "  tcgen05.wait::st.sync.aligned;\n";
    kernel.begin = "  .reg .f32 %f;\n";
    kernel.target = "sm_103a";
    const std::vector<uint32_t> after = cells_after(kernel, one_case.values);
    unsigned wrong = 0;
    for (size_t lane = 0; lane < 128; ++lane) {
      for (size_t i = 0; i < 4; ++i)
        wrong += after[lane * 32 + 8 + i] != one_case.values[i];
      wrong += after[lane * 32 + 12] != one_case.expected;
    }
    CHECK(wrong == 0);
  }
}

// ld with .spcompress: in the first register the indices of the two kept registers, two bits each.
TEST_CASE("loads that keep two of four registers") {
  struct Case {
    const char* operation;
    std::array<uint32_t, 4> values;
    uint32_t indices, first, second, reduced;
  };
  const uint32_t nan = 0x7fc00000, one = 0x3f800000, minus_two = 0xc0000000, zero = 0, minus_zero = 0x80000000;
  const Case cases[] = {
      {"max.sp::2:4", {one, minus_two, zero, minus_two}, 0b1000, one, zero, one},
      {"min.sp::2:4", {one, minus_two, zero, minus_two}, 0b1101, minus_two, minus_two, minus_two},
      {"max.sp::2:4.abs", {one, minus_two, zero, one}, 0b0100, one, minus_two, 0x40000000},
      {"min.sp::2:4", {one, zero, nan, minus_zero}, 0b1110, nan, minus_zero, minus_zero},
      {"max.sp::2:4", {minus_zero, minus_two, zero, minus_two}, 0b1000, minus_zero, zero, zero},
  };
  for (const Case& one_case : cases)
    for (const bool reduces : {false, true}) {
      CAPTURE(one_case.operation);
      CAPTURE(reduces);
      TensorKernel kernel;
      kernel.columns = 32;
      kernel.version = "9.4";
      kernel.target = "sm_107a";
      kernel.begin = "  .reg .f32 %f;\n";
      kernel.behind = std::string("  .reg .b32 %z<4>;\n  mov.b32 %f, 0;\n  tcgen05.ld.") + (reduces ? "red." : "") +
                      "spcompress.sync.aligned.32x32b.x4." + one_case.operation + ".f32.b2 {%z0}, {%z1, %z2}" +
                      (reduces ? ", %f" : "") +
                      ", [%mine];\n  tcgen05.wait::ld.sync.aligned;\n  mov.b32 %z3, %f;\n  add.u32 %v, %mine, 8;\n"
                      "  tcgen05.st.sync.aligned.32x32b.x4.b32 [%v], {%z0, %z1, %z2, %z3};\n"
                      "  tcgen05.wait::st.sync.aligned;\n";
      const std::vector<uint32_t> after = cells_after(kernel, one_case.values);
      for (size_t lane = 0; lane < 128; ++lane) {
        const uint32_t* written = &after[lane * 32 + 8];
        REQUIRE(written[0] == one_case.indices);
        REQUIRE(written[1] == one_case.first);
        REQUIRE(written[2] == one_case.second);
        REQUIRE(written[3] == (reduces ? one_case.reduced : 0));
      }
    }
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::transfer_test
