// The listing of `lower` is what `score` counts: line by line and in all, on machines of every generation. A listing
// that left out what an instruction costs, or counted it twice, would not sum up to the lowering that the timing model
// asks (evaluate/common/machine_weights.h).
#include "evaluate/common/machine_weights.h"
#include "evaluate/lower/machine_listing.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

namespace ptxrewrite::tests::machine_listing_test {

using namespace ptxrewrite;
using evaluate::MachineListing;
using evaluate::MachineListingLine;

namespace {

constexpr uint32_t capabilities[] = {13, 20, 35, 52, 60, 70, 75, 80, 90, 120};

std::vector<std::string> sample_paths() {
  std::vector<std::string> paths;
  for (const auto& folder : std::filesystem::directory_iterator(tests::source_path("samples")))
    if (folder.is_directory())
      for (const auto& file : std::filesystem::directory_iterator(folder.path()))
        if (file.path().extension() == ".ptx") paths.push_back(file.path());
  std::ranges::sort(paths);
  return paths;
}

uint32_t sum_of(const MachineListing& listing) {
  uint32_t sum = listing.prologue + listing.prologue_uniform + listing.subroutines + listing.copies;
  for (const MachineListingLine& line : listing.lines)
    sum += line.instructions;
  return sum;
}

const MachineListingLine& line_with(const MachineListing& listing, std::string_view text) {
  const auto found = std::ranges::find_if(
      listing.lines, [&](const MachineListingLine& line) { return line.ptx.find(text) != std::string::npos; });
  REQUIRE(found != listing.lines.end());
  return *found;
}

bool has_remark(const MachineListingLine& line, std::string_view text) {
  return std::ranges::any_of(line.remarks,
                             [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

// One index, one float loaded and stored: c[i] = a[i] + a[i].
constexpr const char* one_kernel = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r2, 3;
  add.s32 %r4, %r3, %r1;
  and.b32 %r5, %r4, 511;
  mul.wide.s32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  mul.f32 %f2, %f1, 0f40400000;
  add.f32 %f3, %f2, %f1;
  add.s32 %r6, %r2, 77;
  st.global.f32 [%rd3], %f3;
  ret;
}
)";

} // namespace

TEST_CASE("a listing sums up to what the timing model counts") {
  size_t kernels = 0;
  for (const std::string& path : sample_paths()) {
    ReadText text(read_file(path).value());
    REQUIRE(text.ok());
    for (uint32_t capability : capabilities) {
      const ir::Machine& machine = ir::machine_for(capability);
      evaluate::MachineWeights weights(machine, capability);
      for (const auto& function : text.module->functions) {
        if (!function->has_body) continue;
        const MachineListing listing = evaluate::machine_listing(*function, machine, capability);
        const ir::Lowering& lowering = weights.lowering(*function);
        CHECK(listing.instructions == lowering.static_instructions());
        CHECK(listing.uniform == lowering.static_uniform_instructions());
        CHECK_MESSAGE(sum_of(listing) == listing.instructions, path << " " << listing.function << " sm_" << capability);
        ++kernels;
      }
    }
  }
  CHECK(kernels > 1000);
}

TEST_CASE("each line of a listing is what the timing model weighs its instruction with") {
  ReadText text(one_kernel);
  REQUIRE(text.ok());
  const ir::Function& function = text.function();
  for (uint32_t capability : capabilities) {
    const ir::Machine& machine = ir::machine_for(capability);
    evaluate::MachineWeights weights(machine, capability);
    const MachineListing listing = evaluate::machine_listing(function, machine, capability);
    size_t place = 0;
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block)) {
        if (function.instructions[id].kind != ir::InstructionKind::real) continue;
        REQUIRE(place < listing.lines.size());
        CHECK_MESSAGE(listing.lines[place].instructions == weights(function, id), listing.lines[place].ptx);
        CHECK(listing.lines[place].machine.size() <= listing.lines[place].instructions);
        ++place;
      }
    CHECK(place == listing.lines.size());
  }
}

// As ptxas 11.8 makes them, shown by nvdisasm: LEA R.., IMAD.WIDE, FFMA on sm_80.
TEST_CASE("a listing says where the work of an instruction is done") {
  ReadText text(one_kernel);
  REQUIRE(text.ok());
  const MachineListing listing = evaluate::machine_listing(text.function(), ir::machine_for(80), 80);
  const MachineListingLine& shift = line_with(listing, "shl.b32");
  CHECK(shift.instructions == 0);
  CHECK(has_remark(shift, "fused into line 11 (shift-add)"));
  CHECK(line_with(listing, "add.s32 %r4").machine == std::vector<std::string>{"LEA"});
  CHECK(line_with(listing, "add.s64").machine.back() == "IMAD.WIDE");
  CHECK(has_remark(line_with(listing, "mul.f32"), "fused into line 17 (multiply-add)"));
  CHECK(line_with(listing, "add.f32").machine == std::vector<std::string>{"FFMA"});
  CHECK(has_remark(line_with(listing, "ld.param.u32"), "folded into line 11"));
  CHECK(has_remark(line_with(listing, "add.s32 %r6"), "dead (no effect)"));
  CHECK(line_with(listing, "mov.u32").machine == std::vector<std::string>{"S2R"});
  CHECK(line_with(listing, "ld.global").pipe == "memory");
}

} // namespace ptxrewrite::tests::machine_listing_test
