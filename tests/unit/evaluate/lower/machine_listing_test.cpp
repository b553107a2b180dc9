// The listing of `lower` agrees with the counts of `score`: line by line and in total, on machines of every generation.
// A listing that omitted the cost of an instruction, or counted it twice, would not sum up to the lowering used by the
// timing model (evaluate/launches/machine_weights.h).
#include "evaluate/launches/machine_weights.h"
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

// As made by ptxas 11.8 and shown by nvdisasm: LEA R.., IMAD.WIDE, FFMA on sm_80.
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

namespace {

// `words` values are loaded, then a barrier, then stored: at the barrier all of them are live.
std::string kernel_that_keeps(unsigned words) {
  std::string text =
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<" +
      std::to_string(words) + ">; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n";
  for (unsigned i = 0; i < words; ++i)
    text += "ld.global.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) + "];\n";
  text += "bar.sync 0;\n";
  for (unsigned i = 0; i < words; ++i)
    text += "st.global.u32 [%rd1+" + std::to_string(4 * (words - 1 - i)) + "], %r" + std::to_string(i) + ";\n";
  return text + "ret;\n}\n";
}

} // namespace

// For every assembler: of n words that are live at a barrier, at most the number of nameable registers are in
// registers, and each of the others is written to local memory and read again.
TEST_CASE("what finds no register waits in local memory, and is counted") {
  struct Case {
    uint32_t capability, most;
    unsigned words;
  };
  for (const Case& one : {Case{20, 63, 50}, Case{20, 63, 100}, Case{35, 255, 100}, Case{35, 255, 300},
                          Case{80, 255, 200}, Case{80, 255, 300}, Case{120, 255, 280}}) {
    CAPTURE(one.capability);
    CAPTURE(one.words);
    ReadText text(kernel_that_keeps(one.words));
    REQUIRE_MESSAGE(text.ok(), text.messages());
    const ir::Machine& machine = ir::machine_for(one.capability);
    const MachineListing listing = evaluate::machine_listing(text.function(), machine, one.capability);
    CHECK(listing.registers <= one.most);
    CHECK(listing.registers_wanting == 0);
    const uint32_t least = one.words > one.most ? one.words - one.most : 0;
    CHECK(listing.spill_stores >= least);
    CHECK(listing.spill_loads >= least);
    CHECK(listing.spill_stores <= least + least / 2 + 20); // not everything
    CHECK((listing.spill_stores > 0) == (least > 0));
    CHECK(sum_of(listing) == listing.instructions);
    uint32_t named = 0; // named by the remarks of the lines
    for (const MachineListingLine& line : listing.lines)
      named += has_remark(line, "STL") || has_remark(line, "LDL");
    CHECK((named > 0) == (least > 0));
    evaluate::MachineWeights weights(machine, one.capability);
    CHECK(weights.lowering(text.function()).static_instructions() == listing.instructions);
    // The loads and stores of the text, and two of spills for each word in local memory.
    CHECK(listing.instructions >= 2 * one.words + listing.spill_stores + listing.spill_loads);
  }
}

TEST_CASE("spills are as many as ptxas makes") {
  const std::string text = kernel_that_keeps(300);
  const Result<ir::FiguresByFunction> figures = ir::machine_figures(text, "sm_80");
  if (!figures) {
    MESSAGE("skipped: no ptxas for sm_80");
    return;
  }
  ReadText read(text);
  REQUIRE(read.ok());
  const MachineListing listing = evaluate::machine_listing(read.function(), ir::machine_for(80), 80);
  const ir::MachineFigures& made = figures->at("k");
  const uint32_t bytes = 4 * (listing.spill_stores + listing.spill_loads);
  CHECK(made.spilled_bytes > 0);
  CHECK(bytes >= made.spilled_bytes * 0.8);
  CHECK(bytes <= made.spilled_bytes * 1.2);
  CHECK(listing.instructions >= made.instructions * 0.9);
  CHECK(listing.instructions <= made.instructions * 1.1);
}

} // namespace ptxrewrite::tests::machine_listing_test
