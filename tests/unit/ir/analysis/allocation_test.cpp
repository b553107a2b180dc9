// Register allocation: the guarantees of chordal graphs, the constraints of pairs and vectors, and that the verifier
// detects every register that is reused too early.
#include "ir/machine/registers/allocation.h"

#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/random_functions.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::allocation_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

ValueId named(const Function& function, const std::string& name) {
  for (ValueId value : function.values.ids())
    if (function.value_name(value) == name) return value;
  FAIL("no value is named " << name);
  return {};
}

struct Allocated {
  ReadText text;
  AllocationOptions options;
  Allocation allocation;

  explicit Allocated(const std::string& ptx, AllocationOptions wanted = {}) : text(ptx), options(wanted) {
    REQUIRE(text.ok());
    REQUIRE(construct_ssa(text.function()).ok());
    Result<Allocation> result = allocate_registers(text.function(), options);
    REQUIRE(result.ok());
    allocation = *result;
    for (const std::string& error : verify_allocation(text.function(), allocation, options))
      FAIL_CHECK(error);
  }
  uint16_t of(const std::string& name) { return allocation.first_register(named(text.function(), name)); }
};

} // namespace

TEST_CASE("straight code of single registers needs as many as are live") {
  Allocated one(kernel("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; ld.global.u32 %r3, [%rd1+8];\n"
                       "xor.b32 %r1, %r1, %r2; xor.b32 %r4, %r1, %r3; st.global.u32 [%rd1], %r4;"));
  CHECK(one.allocation.registers == one.allocation.live_registers);
  CHECK(one.allocation.moves.empty());
  // Three loaded words. The address is a register without a write.
  CHECK(one.allocation.registers == 3);
}

TEST_CASE("values of 64 bits begin at even registers") {
  Allocated one(kernel("ld.global.u32 %r1, [%rd1]; ld.global.f64 %d1, [%rd1+8]; ld.global.f64 %d2, [%rd1+16];\n"
                       "add.f64 %d1, %d1, %d2; st.global.f64 [%rd1], %d1; st.global.u32 [%rd1], %r1;"));
  for (ValueId value : one.text.function().values.ids())
    if (one.text.function().values[value].type == ScalarType::f64) CHECK(one.allocation.first_register(value) % 2 == 0);
}

TEST_CASE("vectors of loads and stores lie in neighbouring, aligned registers") {
  Allocated one(kernel("ld.global.u32 %r4, [%rd1+64]; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; bar.sync 0;\n"
                       "st.global.v4.f32 [%rd1+16], {%f1, %f2, %f3, %f4}; st.global.u32 [%rd1], %r4;"));
  CHECK(one.allocation.temporaries.empty());
  CHECK(one.of("%f1") % 4 == 0);
  CHECK(one.of("%f2") == one.of("%f1") + 1);
  CHECK(one.of("%f3") == one.of("%f1") + 2);
  CHECK(one.of("%f4") == one.of("%f1") + 3);
}

TEST_CASE("a vector whose elements stand elsewhere in another order is put together in a temporary") {
  Allocated one(kernel("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"
                       "st.global.v4.f32 [%rd1+16], {%f4, %f3, %f2, %f1};"));
  REQUIRE(one.allocation.temporaries.size() == 1);
  CHECK(one.allocation.temporaries[0].first % 4 == 0);
  CHECK(one.allocation.registers >= 8);
}

TEST_CASE("a guarded definition shares the register of what it keeps") {
  Allocated one(kernel("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; setp.lt.u32 %p1, %r2, 7;\n"
                       "@%p1 add.u32 %r1, %r2, 1; st.global.u32 [%rd1], %r1;"));
  CHECK(one.allocation.moves.empty());
  CHECK(one.allocation.registers == 2);
  CHECK(one.allocation.predicates == 1);
}

TEST_CASE("the halves of a pair are its registers") {
  Allocated one(kernel("ld.global.u64 %rd2, [%rd1]; bar.sync 0; mov.b64 {%r1, %r2}, %rd2; bar.sync 0;\n"
                       "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2;"));
  CHECK(one.of("%r1") == one.of("%rd2"));
  CHECK(one.of("%r2") == one.of("%rd2") + 1);
}

TEST_CASE("a copy, a literal and an address plus a constant take no register") {
  Allocated one(kernel("ld.global.u32 %r1, [%rd1]; mov.u32 %r2, %r1; add.u32 %r3, %r2, 5; add.u32 %r4, %r1, %r3;\n"
                       "add.s64 %rd2, %rd1, 16; st.global.u32 [%rd2], %r4;"));
  CHECK(one.of("%r2") == Allocation::no_register);
  CHECK(one.of("%rd2") == Allocation::no_register);
  // %r4 = %r1 + %r1 + 5 is one instruction, and %r1 dies in it.
  CHECK(one.of("%r3") == Allocation::no_register);
  CHECK(one.allocation.registers == 1);
}

TEST_CASE("a loop's counter stays in one register") {
  Allocated one(kernel("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4];\nL: add.u32 %r1, %r1, 3;\n"
                       "setp.lt.u32 %p1, %r1, %r2; @%p1 bra L; st.global.u32 [%rd1], %r1;"));
  CHECK(one.allocation.moves.empty());
  CHECK(one.allocation.registers == 2);
}

TEST_CASE("without a register left the allocation is an error") {
  ReadText text(kernel("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; ld.global.u32 %r3, [%rd1+8];\n"
                       "bar.sync 0; xor.b32 %r1, %r1, %r2; xor.b32 %r4, %r1, %r3; st.global.u32 [%rd1], %r4;"));
  REQUIRE(construct_ssa(text.function()).ok());
  CHECK(!allocate_registers(text.function(), {.register_limit = 2}).ok());
  CHECK(allocate_registers(text.function(), {.register_limit = 3}).ok());
}

TEST_CASE(
    "random functions: every allocation is right, with names kept too, and moves are the price of fewer registers") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    ReadText text(tests::RandomKernel(seed).text());
    REQUIRE(text.ok());
    if (!construct_ssa(text.function()).ok()) continue;
    for (bool keep : {false, true}) {
      AllocationOptions options{.predicate_limit = 16, .keep_names = keep};
      Result<Allocation> allocation = allocate_registers(text.function(), options);
      if (!allocation.ok()) FAIL(allocation.error().message << "\n" << print(*text.module));
      for (const std::string& error : verify_allocation(text.function(), *allocation, options))
        FAIL_CHECK(error);
      CHECK(allocation->registers >= allocation->live_registers);
      if (keep) CHECK(allocation->moves.empty());
    }
  }
}

// Assigns one value's register to another value that is live at the same time.
TEST_CASE("the verifier finds each register that two live values share") {
  for (const char* sample : {"samples/matmul/matmul.ptx", "samples/hotspot/hotspot.ptx"}) {
    ReadText text(read_file(tests::source_path(sample)).value());
    REQUIRE(text.ok());
    for (const auto& function : text.module->functions) {
      if (!function->has_body) continue;
      REQUIRE(construct_ssa(*function).ok());
      AllocationOptions options;
      ControlFlow flow(*function);
      MachineValues values(*function, flow, options.compute_capability);
      Allocation right = colour_registers(*function, values, options);
      REQUIRE(verify_allocation(*function, right, options).empty());
      unsigned changed = 0, seen = 0;
      for (ValueId victim : function->values.ids())
        for (ValueId other : function->values.ids()) {
          if (victim == other || changed >= 300 || !values.in_register(victim) || !values.in_register(other)) continue;
          if (values.units(victim) != values.units(other) || values.is_predicate(victim) != values.is_predicate(other))
            continue;
          // The victim is live, and read later, at the point where the other one is written.
          uint32_t written = values.ranges(other).front().begin;
          if (!values.live_at(victim, written) || !values.live_at(victim, written - 1)) continue;
          if (right.first_register(victim) == right.first_register(other)) continue;
          Allocation wrong = right;
          wrong.place(other, right.first_register(victim));
          ++changed;
          seen += verify_allocation(*function, wrong, options).empty() ? 0 : 1;
        }
      CHECK(changed > 0);
      CHECK(seen == changed);
    }
  }
}

} // namespace ptxrewrite::tests::allocation_test
