// Register files that RegLess is compared with: what RFV maps and RFH places, on blocks written by hand, beside what
// their papers' rules say of them; over random blocks, that each access has one place and nothing costs more.
#include "emulator/machines/regless/register_hierarchy.h"
#include "emulator/machines/regless/renamed_registers.h"
#include "ir/core/module.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace ptxrewrite::tests::register_files_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// One block of instructions; instruction i has id i.
struct Block {
  ir::Module module;
  ir::Function function{module};
  ir::RegisterProgram program;

  Block() {
    function.has_body = true;
    function.place_block(function.add_block());
    program = ir::register_blocks(function);
  }
  ir::RegisterInstruction& add(std::vector<unsigned> writes, std::vector<unsigned> reads) {
    ir::RegisterInstruction instruction;
    instruction.id = ir::InstructionId(static_cast<uint32_t>(program.blocks[0].instructions.size()));
    for (unsigned r : writes)
      instruction.writes.set(r), program.registers = std::max(program.registers, r + 1);
    for (unsigned r : reads)
      instruction.reads.set(r), program.registers = std::max(program.registers, r + 1);
    return program.blocks[0].instructions.emplace_back(instruction);
  }
  std::vector<RenamedRow> renamed() const { return renamed_registers(program, ir::WarpLiveness(program)); }
  // Energy per access: main file 1, operand file 0.25, last result file 0.1.
  std::vector<HierarchyRow> placed(uint32_t entries = 8, std::function<bool(ir::InstructionId)> is_private = {}) const {
    if (!is_private) is_private = [](ir::InstructionId) { return true; };
    const HierarchySettings settings{
        .operand_entries = entries, .read_energy = {0.1, 0.25, 1}, .write_energy = {0.1, 0.25, 1}};
    return place_in_hierarchy(program, ir::WarpLiveness(program), settings, is_private);
  }
};

using Counts = std::array<uint16_t, file_levels>; // last result, operand, main

} // namespace

TEST_CASE("a renamed register has room from its first write to its last read") {
  Block block;
  block.add({0}, {});     // R0
  block.add({1}, {0});    // R0 and R1
  block.add({2}, {0, 1}); // both for the last time, and R2
  block.add({3}, {2});
  block.add({}, {3});
  const std::vector<RenamedRow> rows = block.renamed();
  const std::array<uint16_t, 5> mapped = {1, 2, 3, 2, 1}, allocated = {1, 1, 1, 1, 0};
  for (size_t i = 0; i < mapped.size(); ++i) {
    CAPTURE(i);
    CHECK(rows[i].mapped == mapped[i]);
    CHECK(rows[i].allocations == allocated[i]);
  }
  CHECK(rows[2].reads == 2);
  CHECK(rows[2].writes == 1);
}

TEST_CASE("a write of a register that is needed gets no new room") {
  Block block;
  block.add({0}, {});
  block.add({0}, {0});
  block.add({}, {0});
  CHECK(block.renamed()[1].allocations == 0);
  CHECK(block.renamed()[1].mapped == 1);
}

TEST_CASE("a value that the next instruction reads lies in the last result file") {
  Block block;
  block.add({0}, {});
  block.add({1}, {0});
  block.add({}, {1});
  const std::vector<HierarchyRow> rows = block.placed();
  CHECK(rows[0].writes == Counts{1, 0, 0});
  CHECK(rows[1].reads == Counts{1, 0, 0});
  CHECK(rows[1].writes == Counts{1, 0, 0}); // R0 is dead when R1 is written
  CHECK(rows[2].reads == Counts{1, 0, 0});
}

TEST_CASE("values that other units read lie in the operand file") {
  Block block;
  block.add({0}, {});
  block.add({}, {0}); // a store, say
  const std::vector<HierarchyRow> rows = block.placed(8, [](ir::InstructionId id) { return id.index() == 0; });
  CHECK(rows[0].writes == Counts{0, 1, 0});
  CHECK(rows[1].reads == Counts{0, 1, 0});
}

TEST_CASE("results of loads, and what reads them in another strand, lie in the main file") {
  Block block;
  block.add({0}, {});
  block.add({1}, {0}).long_latency = true;
  block.add({2}, {0});
  block.add({3}, {1, 2}); // starts a strand
  block.add({}, {3});
  const std::vector<HierarchyRow> rows = block.placed();
  CHECK(rows[1].writes == Counts{0, 0, 1});
  CHECK(rows[2].writes == Counts{0, 0, 1}); // not read in its strand
  CHECK(rows[3].reads == Counts{0, 0, 2});
  CHECK(rows[3].writes == Counts{1, 0, 0});
}

TEST_CASE("what leaves the block is written to the main file, too") {
  Block block;
  block.add({0}, {});
  block.add({1}, {0});
  block.add({2}, {0});
  block.program.blocks[0].successors = {0}; // a loop: R1 and R2 are read before they are written
  block.program.blocks[0].instructions[0].reads.set(1);
  block.program.blocks[0].instructions[0].reads.set(2);
  const std::vector<HierarchyRow> rows = block.placed();
  CHECK(rows[1].writes[2] == 1);
  CHECK(rows[2].writes[2] == 1);
  CHECK(rows[0].reads == Counts{0, 0, 2});
}

TEST_CASE("a register that is read often is filled into the operand file by its first read") {
  Block block;
  for (int i = 0; i < 4; ++i)
    block.add({}, {0});
  const std::vector<HierarchyRow> rows = block.placed();
  CHECK(rows[0].reads == Counts{0, 0, 1});
  CHECK(rows[0].fills == 1);
  for (size_t i = 1; i < 4; ++i)
    CHECK(rows[i].reads == Counts{0, 1, 0});
}

TEST_CASE("without entries everything is in the main file or the last result file") {
  Block block;
  for (int i = 0; i < 4; ++i)
    block.add({}, {0});
  for (const HierarchyRow& row : block.placed(0))
    CHECK(row.reads == Counts{0, 0, 1});
}

TEST_CASE(
    "random blocks: what is placed costs no more than the main file, and no more values meet than there are entries") {
  std::mt19937 random(7);
  constexpr std::array<double, file_levels> energy = {0.1, 0.25, 1};
  for (int round = 0; round < 300; ++round) {
    Block block;
    const auto registers = 2 + random() % 10, length = 1 + random() % 30;
    for (size_t i = 0; i < length; ++i) {
      std::vector<unsigned> reads(random() % 3);
      for (unsigned& read : reads)
        read = static_cast<unsigned>(random() % registers);
      block.add({static_cast<unsigned>(random() % registers)}, reads).long_latency = random() % 9 == 0;
    }
    const uint32_t entries = random() % 5;
    double spent = 0, in_main = 0;
    for (const HierarchyRow& row : block.placed(entries, [](ir::InstructionId id) { return id.index() % 4 > 0; })) {
      // Each read is from one file, a write goes to one or two.
      CHECK(row.reads[0] + row.reads[1] + row.reads[2] == row.registers_read);
      CHECK(row.writes[0] + row.writes[1] + row.writes[2] >= row.registers_written);
      CHECK(row.writes[2] <= row.registers_written);
      CHECK(row.writes[0] + row.writes[1] <= row.registers_written);
      CHECK(row.reads[0] <= 1);
      CHECK(row.reads[1] <= entries);
      CHECK(row.fills <= entries);
      in_main += row.registers_read + row.registers_written;
      spent += row.fills * energy[1];
      for (size_t level = 0; level < file_levels; ++level)
        spent += energy[level] * (row.reads[level] + row.writes[level]);
    }
    CHECK(spent <= in_main + 1e-9);
  }
}

} // namespace ptxrewrite::tests::register_files_test
