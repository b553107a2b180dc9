// Spilling: the remaining values fit, as checked by the verifier, and its memory accesses are those of slots. Runs of
// all samples show that results stay the same (ctest spill/samples_*).
#include "transforms/registers/spill.h"

#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/random_functions.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

namespace ptxrewrite::tests::spill_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using transforms::SpillStatistics;

namespace {

struct Spilled {
  ReadText text;
  SpillStatistics statistics;
  bool fits = false;

  Spilled(const std::string& ptx, AllocationOptions options) : text(ptx) {
    REQUIRE(text.ok());
    for (const auto& function : text.module->functions)
      if (function->has_body && construct_ssa(*function).ok()) spill(*function, options);
  }
  void spill(Function& function, const AllocationOptions& options) {
    Result<Allocation> allocation = transforms::spill_to_limit(function, options, statistics);
    fits = allocation.ok();
    if (!allocation) return;
    CHECK(allocation->registers <= options.register_limit);
    CHECK(allocation->predicates <= options.predicate_limit);
    for (const std::string& error : verify_allocation(function, *allocation, options))
      FAIL_CHECK(error);
    check_slots(function);
  }
  // Loads and stores of one slot have one width and stay in bounds; every loaded slot is stored somewhere.
  void check_slots(const Function& function) {
    std::map<int64_t, unsigned> width, stored;
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block)) {
        if (function.instructions[id].kind != InstructionKind::real) continue;
        const Form& form = function.form_of(id);
        if (form.space != StateSpace::local) continue;
        for (const Operand& operand : function.operands_of(id)) {
          if (!operand.is(OperandKind::address)) continue;
          unsigned bytes = byte_width(form.type());
          auto [place, fresh] = width.try_emplace(operand.immediate, bytes);
          CHECK(place->second == bytes);
          CHECK(operand.immediate % bytes == 0);
          if (form.opcode == Opcode::st) stored[operand.immediate] = bytes;
        }
      }
    int64_t end = 0;
    for (auto [offset, bytes] : width) {
      CHECK(offset >= end);
      CHECK(stored.count(offset) == 1);
      end = offset + bytes;
    }
    CHECK(end <= statistics.bytes);
  }
  std::string print() const { return ir::print(*text.module); }
};

// `count` values, all of which are live until the end.
std::string sum_of_loads(unsigned count) {
  std::string loads, sum = "mov.u32 %s, 0;\n";
  for (unsigned i = 0; i < count; ++i) {
    std::string value = "%v" + std::to_string(i);
    loads += "ld.global.u32 " + value + ", [%a+" + std::to_string(4 * i) + "];\n";
    sum += "xor.b32 %s, %s, " + value + ";\n";
  }
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 "
         "%v<" +
         std::to_string(count) + ">, %s;\nld.param.u64 %a, [p];\n" + loads + "bar.sync 0;\n" + sum +
         "st.global.u32 [%a], %s;\nret;\n}\n";
}

} // namespace

TEST_CASE("nothing happens where everything fits") {
  Spilled one(sum_of_loads(20), {.register_limit = 32});
  CHECK(one.fits);
  CHECK(one.statistics.spilled == 0);
  CHECK(one.print().find("local") == std::string::npos);
}

TEST_CASE("what does not fit waits in as many slots as there are too many values") {
  Spilled one(sum_of_loads(40), {.register_limit = 32});
  CHECK(one.fits);
  // 40 words and the address, which can be reloaded from its parameter.
  CHECK(one.statistics.spilled >= 8);
  CHECK(one.statistics.spilled <= 12);
  CHECK(one.statistics.bytes == 4 * one.statistics.spilled);
}

// Of 500 words 476 have no register. One of them a round would end at the limit of rounds.
TEST_CASE("hundreds of values of one place wait in memory") {
  Spilled one(sum_of_loads(500), {.register_limit = 24});
  CHECK(one.fits);
  CHECK(one.statistics.spilled >= 476);
  CHECK(one.statistics.spilled <= 484);
  CHECK(one.statistics.rounds < 150);
}

// Both parameters of the loop wait in memory and are exchanged each time: the loads have to come before the stores.
TEST_CASE("values that blocks exchange, spilled in one round") {
  std::string more_loads, more_reads;
  for (unsigned i = 0; i < 200; ++i) {
    more_loads += "ld.global.u32 %v" + std::to_string(i) + ", [%a+" + std::to_string(4 * i) + "];\n";
    more_reads += "xor.b32 %s, %s, %v" + std::to_string(i) + ";\n";
  }
  Spilled one(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
              ".reg .b64 %a; .reg .b32 %v<200>, %s, %x, %y, %z, %n; .reg .pred %p;\nld.param.u64 %a, [p];\n" +
                  more_loads +
                  "ld.global.u32 %x, [%a+2000];\nld.global.u32 %y, [%a+2004];\nmov.u32 %n, 0;\nmov.u32 %s, 0;\n"
                  "L: mov.u32 %z, %x; mov.u32 %x, %y; mov.u32 %y, %z;\nadd.u32 %n, %n, 1;\nbar.sync 0;\n"
                  "setp.lt.u32 %p, %n, 9;\n@%p bra L;\n" +
                  more_reads + "xor.b32 %s, %s, %x;\nmul.lo.u32 %s, %s, %y;\nst.global.u32 [%a], %s;\nret;\n}\n",
              {.register_limit = 8});
  CHECK(one.fits);
  CHECK(verify(*one.text.module).empty());
}

// PTX ISA 9.7.15.7: accessing a product's registers before its wait is undefined behaviour.
TEST_CASE("registers of asynchronous matrix products never wait in memory") {
  std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
      ".reg .b64 %a, %d; .reg .b32 %v<30>, %s<4>, %f<4>, %x; .reg .pred %p;\n"
      "ld.param.u64 %a, [p];\nld.param.u64 %d, [q];\nsetp.ne.u64 %p, %a, 0;\n";
  const auto each = [&](unsigned count, const auto& line) {
    for (unsigned i = 0; i < count; ++i)
      text += line(std::to_string(i));
  };
  each(4,
       [](const std::string& i) { return "ld.global.u32 %f" + i + ", [%a+4" + i + "];\nmov.b32 %s" + i + ", 0;\n"; });
  text += "wgmma.fence.sync.aligned;\n"
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%s0, %s1, %s2, %s3}, {%f0, %f1, %f2, %f3}, %d, %p, 1, 1, "
          "0;\nwgmma.commit_group.sync.aligned;\nmov.u32 %x, 0;\n";
  // Long-lived and seldom accessed, the sums would be the first to wait while these values are live.
  for (unsigned first = 0; first < 30; first += 15) {
    for (unsigned i = first; i < first + 15; ++i)
      text += "ld.global.u32 %v" + std::to_string(i) + ", [%a+" + std::to_string(4 * i) + "];\n";
    text += "bar.sync 0;\n";
    for (unsigned i = first; i < first + 15; ++i)
      text += "xor.b32 %x, %x, %v" + std::to_string(i) + ";\n";
  }
  text += "wgmma.wait_group.sync.aligned 0;\n";
  each(4, [](const std::string& i) { return "xor.b32 %x, %x, %s" + i + ";\n"; });
  text += "st.global.u32 [%a], %x;\nret;\n}\n";
  Spilled one(text, {.register_limit = 20});
  CHECK(one.fits);
  CHECK(one.statistics.spilled > 0);
  const Function& function = *one.text.module->functions[0];
  std::set<uint32_t> of_products;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, Opcode::wgmma)) {
        for_each_use(function, id, [&](ValueId value) { of_products.insert(value.index()); });
        for_each_definition(function, id, [&](ValueId value) { of_products.insert(value.index()); });
      }
  CHECK(of_products.size() >= 12);
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real || function.form_of(id).space != StateSpace::local)
        continue;
      for_each_use(function, id, [&](ValueId value) {
        if (bit_width(function.values[value].type) == 32) CHECK(!of_products.contains(value.index()));
      });
      for_each_definition(function, id, [&](ValueId value) {
        if (bit_width(function.values[value].type) == 32) CHECK(!of_products.contains(value.index()));
      });
    }
}

TEST_CASE("special registers are read again instead of waiting") {
  std::string reads, uses;
  for (const char* name : {"tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z", "laneid"}) {
    std::string value = "%s" + std::to_string(reads.size());
    reads += ".reg .b32 " + value + "; mov.u32 " + value + ", %" + name + ";\n";
    uses += "st.global.u32 [%rd1], " + value + ";\n";
  }
  Spilled one(kernel("ld.param.u64 %rd1, [p];\n" + reads + "bar.sync 0;\n" + uses), {.register_limit = 4});
  CHECK(one.fits);
  CHECK(one.statistics.spilled == 0);
  CHECK(one.statistics.recomputed >= 3);
}

TEST_CASE("a limit below what one instruction needs is an error, and the function stays right") {
  Spilled one(kernel("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};"),
              {.register_limit = 3});
  CHECK(!one.fits);
  CHECK(verify(*one.text.module).empty());
}

TEST_CASE("all samples fit into few registers, and random functions into three predicates and eight registers") {
  for (const char* sample : {"matmul", "hotspot", "aes", "nw", "sgemm", "flash_attention", "lavamd"})
    for (uint32_t limit : {32, 16}) {
      CAPTURE(sample);
      CAPTURE(limit);
      std::string path = std::string("samples/") + sample + "/" + sample + ".ptx";
      Spilled one(read_file(tests::source_path(path)).value(), {.register_limit = limit});
      CHECK(one.fits);
      CHECK(verify(*one.text.module).empty());
    }
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Spilled one(tests::RandomKernel(seed).text(), {.register_limit = 8, .predicate_limit = 3});
    CHECK(verify(*one.text.module).empty());
  }
}

} // namespace ptxrewrite::tests::spill_test
