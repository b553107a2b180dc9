// CAE (dac-isca17 section 5.1.1) on kernels whose affine operands are known by inspection.
#include "emulator/machines/dac/compact_affine.h"
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::compact_affine_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// Executions by affine units of the instructions that contain the word, and all their executions.
std::pair<uint64_t, uint64_t> affine_of(const PtxRun& run, const CompactAffine& units, std::string_view word) {
  std::pair<uint64_t, uint64_t> sum;
  for (const auto& [number, row] : units.rows()) {
    const SourceRange range = row.function->instructions[row.instruction].range;
    if (run.module->source.text().substr(range.begin, range.end - range.begin).find(word) == std::string_view::npos)
      continue;
    sum.first += row.affine;
    sum.second += row.executions;
  }
  return sum;
}

const std::string text = kernel("k", ".param .u64 a", R"(
  .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [a];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mul.lo.u32 %r2, %r1, %r1;
  add.u32 %r3, %r2, 1;
  ld.global.u32 %r4, [%rd3];
  sub.u32 %r5, %r4, %r1;
  setp.lt.u32 %p1, %r1, 16;
  mov.u32 %r6, %ntid.x;
  setp.eq.u32 %p2, %r6, 7;
  @%p1 bra THEN;
  shl.b32 %r7, %r1, 3;
THEN:
  neg.s32 %r8, %r1;
  st.global.u32 [%rd3], %r8;
  ret;)");

} // namespace

TEST_CASE("CAE: strides through sums and products by scalars; nothing behind loads, nothing in parted warps") {
  CompactAffine units;
  const PtxRun run =
      run_ptx(text, {.kernel = "k", .grid = {2}, .block = {64}, .observer = &units}, {zeros<uint32_t>(64)});
  INFO(run.error);
  REQUIRE(run.ok());
  using Pair = std::pair<uint64_t, uint64_t>;
  CHECK(affine_of(run, units, "mov.u32 %r1") == Pair{4, 4});
  CHECK(affine_of(run, units, "mul.wide") == Pair{4, 4});
  CHECK(affine_of(run, units, "add.s64") == Pair{4, 4});
  CHECK(affine_of(run, units, "mul.lo") == Pair{0, 4}); // a square
  CHECK(affine_of(run, units, "add.u32 %r3") == Pair{0, 4});
  CHECK(affine_of(run, units, "ld.global") == Pair{0, 4});
  CHECK(affine_of(run, units, "sub.u32") == Pair{0, 4}); // loaded zeros have a stride, but come from memory
  CHECK(affine_of(run, units, "setp.lt") == Pair{0, 4});
  CHECK(affine_of(run, units, "setp.eq") == Pair{4, 4});
  CHECK(affine_of(run, units, "shl") == Pair{2, 4}); // half of the warps have diverged
  CHECK(affine_of(run, units, "neg") == Pair{4, 4}); // all have reconverged
}

TEST_CASE("CAE: in rows of less than a warp only scalars are affine") {
  CompactAffine units;
  const PtxRun run =
      run_ptx(text, {.kernel = "k", .grid = {1}, .block = {8, 8}, .observer = &units}, {zeros<uint32_t>(64)});
  REQUIRE(run.ok());
  using Pair = std::pair<uint64_t, uint64_t>;
  CHECK(affine_of(run, units, "mov.u32 %r1") == Pair{0, 2});
  CHECK(affine_of(run, units, "mul.wide") == Pair{0, 2});
  CHECK(affine_of(run, units, "mov.u32 %r6") == Pair{2, 2});
}

} // namespace ptxrewrite::tests::compact_affine_test
