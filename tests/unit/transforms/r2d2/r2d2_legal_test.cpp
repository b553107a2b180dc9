// R2D2's legal form beyond candidate 1: the choice, uniform bases, launch parameters, tests in the kernel.
#include "launch/variants.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"
#include "transforms/common/choice.h"
#include "transforms/r2d2/uniform_base.h"

#include <initializer_list>

namespace ptxrewrite::tests::r2d2_legal_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::Discharge;
using transforms::OutputForm;
using transforms::legal::KernelCost;

namespace {

std::string module_text(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u32 n, .param .u32 m)\n"
         "{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n" +
         body + "}\n";
}

transforms::PassOptions options(std::initializer_list<std::pair<const char*, const char*>> list) {
  transforms::PassOptions result;
  for (const auto& [name, value] : list)
    result.set(name, value);
  return result;
}

ir::LaunchValues launch_of(uint32_t threads, uint32_t blocks, uint32_t n, uint32_t m) {
  ir::LaunchValues launch;
  launch.block = {threads, 1, 1};
  launch.grid = {blocks, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(n, 4);
  launch.add_parameter(m, 4);
  return launch;
}

// The bytes of one parameter as a number.
uint64_t number_of(std::span<const std::byte> bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    number = number << 8 | static_cast<uint64_t>(bytes[i]);
  return number;
}

// The launcher's choice for this launch of the rewritten module: the variant's launch with its computed parameters, or
// nullopt for the original.
std::optional<ir::LaunchValues> variant_launch(const ir::Module& module, const ir::LaunchValues& launch) {
  launch::LaunchFacts facts;
  facts.block = {launch.block[0], launch.block[1], launch.block[2]};
  facts.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  std::vector<std::byte> block;
  for (const auto& parameter : launch.parameters) {
    while (block.size() % parameter.size() != 0)
      block.push_back({});
    for (uint8_t byte : parameter)
      block.push_back(std::byte(byte));
  }
  auto variants = launch::Variants::of(module, nullptr);
  REQUIRE(variants);
  auto choice = variants->choose("k", block, facts.grid, facts.block);
  REQUIRE(choice);
  if (choice->is_original) return std::nullopt;
  ir::LaunchValues result = launch;
  launch::Signature signature = launch::signature_of(*choice->entry);
  for (size_t i = launch.parameters.size(); i < signature.parameters.size(); ++i) {
    const launch::Parameter& parameter = signature.parameters[i];
    result.add_parameter(number_of(std::span(choice->parameter_block).subspan(parameter.offset, parameter.bytes)),
                         static_cast<unsigned>(parameter.bytes));
  }
  return result;
}

// Runs both on a launch; `is_variant`: whether the launcher has to select the variant.
void compare(const std::string& text, const transforms::PassOptions& how, const ir::LaunchValues& launch,
             bool is_variant) {
  Rewrite rewrite(text, "k", OutputForm::legal, {}, how);
  REQUIRE(rewrite.changed());
  std::string file;
  {
    // As the pass manager leaves the module.
    for (auto& addition : rewrite.context.additions)
      rewrite.rewritten->functions.push_back(std::move(addition));
    for (auto& function : rewrite.rewritten->functions) {
      if (function->is_ssa) ir::destruct_ssa(*function);
      ir::print(*function, file);
    }
  }
  std::unique_ptr<ir::Module> module = read_text(".version 8.0\n.target sm_80\n.address_size 64\n" + file);
  std::optional<ir::LaunchValues> variant = variant_launch(*module, launch);
  CHECK(variant.has_value() == is_variant);
  if (!variant) return;
  CHECK(KernelEvaluator(kernel(*module, "k__r2d2"), *variant).run() == KernelEvaluator(*rewrite.before, launch).run());
}

// Neighbouring rows: 4*(i + n), 4*i, 4*(i - n) with i = ctaid.x * ntid.x + tid.x, and a product of sizes.
const char* const rows = R"(
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
ld.param.u32 %r2, [m];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ntid.x;
mov.u32 %r5, %tid.x;
mad.lo.s32 %r6, %r3, %r4, %r5;
add.s32 %r7, %r6, %r1;
sub.s32 %r8, %r6, %r1;
mul.wide.s32 %rd2, %r6, 4;
mul.wide.s32 %rd3, %r7, 4;
mul.wide.s32 %rd4, %r8, 4;
add.s64 %rd5, %rd1, %rd2;
add.s64 %rd6, %rd1, %rd3;
add.s64 %rd7, %rd1, %rd4;
mul.lo.s32 %r9, %r1, %r2;
add.s32 %r10, %r9, %r5;
st.global.u32 [%rd5], %r10;
st.global.u32 [%rd6], %r10;
st.global.u32 [%rd7+8], %r10;
ret;
)";

KernelCost cost(double weighted, std::initializer_list<ir::MachineFigures> figures) {
  KernelCost result;
  result.weighted = weighted;
  for (const ir::MachineFigures& row : figures)
    result.figures.emplace_back("sm_" + std::to_string(80 + 10 * result.figures.size()), row);
  return result;
}

} // namespace

TEST_CASE("A candidate wins only if it loses nowhere") {
  using transforms::legal::wins;
  const KernelCost before = cost(100, {{100, 32, 0}, {110, 32, 0}});
  CHECK(wins(cost(100, {{99, 32, 0}, {110, 32, 0}}), before, true, 0));
  CHECK_FALSE(wins(cost(50, {{100, 32, 0}, {110, 32, 0}}), before, true, 0)); // no gain
  CHECK_FALSE(wins(cost(50, {{80, 32, 0}, {111, 32, 0}}), before, true, 0));  // one more on the second machine
  CHECK_FALSE(wins(cost(50, {{80, 32, 8}, {100, 32, 0}}), before, true, 0));  // spills
  CHECK_FALSE(wins(cost(50, {{80, 33, 0}, {100, 32, 0}}), before, true, 0));  // 33 registers: 48 warps instead of 64
  CHECK(wins(cost(50, {{80, 32, 0}, {100, 26, 0}}), before, true, 0));
  // 25 to 32 registers are one step, and below 32 the 64 warps of an SM are reached anyway.
  CHECK(wins(cost(100, {{99, 25, 0}}), cost(100, {{100, 18, 0}}), true, 0));
  // By the model: the part that is asked for in place; a second kernel must save at least four and a twentieth.
  CHECK(wins(cost(98, {}), cost(100, {}), false, 0.02));
  CHECK_FALSE(wins(cost(99, {}), cost(100, {}), false, 0.02));
  CHECK(wins(cost(995, {}), cost(1000, {}), false, 0.005));
  CHECK_FALSE(wins(cost(996, {}), cost(1000, {}), false, 0.005));
  CHECK_FALSE(wins(cost(0, {}), cost(0, {}), false, 0));
  CHECK_FALSE(wins(cost(96, {}), cost(100, {}), true, 0));
  CHECK(wins(cost(95, {}), cost(100, {}), true, 0));
  CHECK_FALSE(wins(cost(17, {}), cost(20, {}), true, 0));
}

TEST_CASE("Of two winners the one with fewer instructions over all machines is better, then fewer registers") {
  using transforms::legal::is_better;
  const KernelCost before = cost(100, {{100, 32, 0}, {200, 32, 0}});
  CHECK(is_better(cost(0, {{90, 32, 0}, {200, 32, 0}}), cost(0, {{95, 32, 0}, {195, 32, 0}}), before));
  CHECK(is_better(cost(0, {{90, 30, 0}, {200, 32, 0}}), cost(0, {{90, 32, 0}, {200, 32, 0}}), before));
  CHECK_FALSE(is_better(cost(0, {{90, 32, 0}, {200, 32, 0}}), cost(0, {{90, 32, 0}, {200, 32, 0}}), before));
}

TEST_CASE("Uniform bases and launch parameters: the same stores, and the original where an index leaves 32 bits") {
  const std::string text = module_text(rows);
  for (const char* candidates : {"2", "3", "2+3", "1+2+3", "1+2+3+5"}) {
    CAPTURE(candidates);
    const transforms::PassOptions how = options({{"candidates", candidates}, {"force", "1"}});
    compare(text, how, launch_of(8, 3, 100, 7), true);
    compare(text, how, launch_of(8, 3, 0xffffff00, 0xfffffff9), true); // negative sizes
    // i + n reaches 2^31: candidate 3 alone moves only computations that cannot wrap.
    compare(text, how, launch_of(8, 3, 0x7ffffff0, 7), std::string(candidates) == "3");
  }
}

TEST_CASE("A division by zero is the original's business") {
  const std::string text = module_text(R"(
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
ld.param.u32 %r2, [m];
div.s32 %r3, %r1, %r2;
mov.u32 %r4, %tid.x;
add.s32 %r5, %r3, %r4;
st.global.u32 [%rd1], %r5;
ret;
)");
  const transforms::PassOptions how = options({{"candidates", "3"}, {"force", "1"}});
  compare(text, how, launch_of(8, 3, 100, 0), false);
}

TEST_CASE("Where nothing may be left to a launcher, the kernel tests the conditions or stays as it is") {
  const std::string text = module_text(rows);
  const transforms::PassOptions proved = options({{"candidates", "1+2+3+5"}, {"force", "1"}, {"discharge", "proved"}});
  CHECK_FALSE(Rewrite(text, "k", OutputForm::legal, {}, proved).changed());

  const transforms::PassOptions kernel_test =
      options({{"candidates", "2"}, {"force", "1"}, {"discharge", "proved+kernel"}});
  Rewrite tested(text, "k", OutputForm::legal, {}, kernel_test);
  REQUIRE(tested.changed());
  CHECK(tested.obligations(Discharge::in_kernel) > 0);
  CHECK(tested.obligations(Discharge::launch_checked) == 0);
  CHECK(tested.context.additions.empty());
  // True, and false at either end: one of the two bodies computes the original's results.
  for (uint32_t n : {100u, 0xffffff00u, 0x7ffffff0u, 0x80000005u}) {
    CAPTURE(n);
    CHECK(tested.same_traces(launch_of(8, 3, n, 7)));
  }

  const transforms::PassOptions force = options({{"candidates", "2"}, {"force", "1"}, {"discharge", "proved"}});
  Rewrite assumed(text, "k", OutputForm::legal, {"no-index-overflow"}, force);
  REQUIRE(assumed.changed());
  CHECK(assumed.obligations(Discharge::assumed) > 0);
  CHECK(assumed.same_traces(launch_of(8, 3, 100, 7)));
}

TEST_CASE("What a branch proves for one access is not taken for granted at another") {
  // 2^25 * tid.x + ctaid.y fits 32 bits only if tid.x < 16; the second address is computed without it.
  const std::string text = module_text(R"(
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.y;
mad.lo.s32 %r3, %r1, 33554432, %r2;
setp.ge.u32 %p1, %r1, 16;
@%p1 bra $Far;
mul.wide.s32 %rd2, %r3, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r1;
$Far:
mul.wide.u32 %rd4, %r1, 134217728;
mul.wide.u32 %rd5, %r2, 4;
add.s64 %rd6, %rd4, %rd5;
add.s64 %rd7, %rd1, %rd6;
st.global.u32 [%rd7+4], %r1;
ret;
)");
  const transforms::PassOptions how = options({{"candidates", "2"}, {"force", "1"}, {"discharge", "proved"}});
  Rewrite rewrite(text, "k", OutputForm::legal, {}, how);
  CHECK(rewrite.changed());
  ir::LaunchValues launch = launch_of(128, 1, 0, 0);
  launch.grid = {1, 2, 1};
  CHECK(rewrite.same_traces(launch));
  CHECK(rewrite.obligations(Discharge::proved) == rewrite.context.ledger.size());
}

// The best combinations by a search that lowered each one, before candidates had a bound
// (transforms/common/gain_bound.h).
TEST_CASE("by the model, combinations win that a complete search found") {
  const std::pair<const char*, const char*> kernels[] = {{"convolution3d", "2+3"},
                                                         {"stencil_coarse", "2+3+5"},
                                                         {"softmax", "3+5"},
                                                         {"gaussian_factors", "3"},
                                                         {"gaussian_eliminate", "2+3"}};
  for (const auto& [name, combination] : kernels) {
    CAPTURE(name);
    const std::string kernel_name = name, sample = kernel_name.substr(0, kernel_name.find('_'));
    const Result<std::string> text = read_file(source_path("samples/" + sample + "/" + sample + ".ptx"));
    REQUIRE(text);
    const Rewrite rewrite(*text, kernel_name, OutputForm::legal, {}, options({{"cost", "model"}}));
    CHECK(rewrite.remarks_with("candidate " + std::string(combination) + " wins") == 1);
  }
}

// The bases of matmul_tiled's rows are one addition each, which ptxas joins with the product as it does with the
// original's: with candidate 2 alone, or with 3, the model counts as many instructions.
TEST_CASE("by the model, a candidate that hardly removes more than it adds is not lowered") {
  const Result<std::string> text = read_file(source_path("samples/matmul/matmul.ptx"));
  REQUIRE(text);
  Rewrite rewrite(*text, "matmul_tiled", OutputForm::legal, {}, options({{"cost", "model"}}));
  CHECK_FALSE(rewrite.changed());
  CHECK(rewrite.remarks_with("cannot save") == 1);
  CHECK(rewrite.context.analyses.lowerings().computed() == 1); // the original
}

TEST_CASE("plans that were made under one policy are not used under another") {
  std::unique_ptr<ir::Module> module = read_text(module_text(rows));
  ir::Function& function = kernel(*module, "k");
  REQUIRE(ir::construct_ssa(function));
  transforms::AnalysisCache analyses;
  const transforms::legal::DischargePolicy proved, by_launcher{.launch = true};
  CHECK(transforms::legal::has_base_plans(function, analyses, by_launcher, false));
  CHECK_FALSE(transforms::legal::has_base_plans(function, analyses, proved, false));
  CHECK(transforms::legal::has_base_plans(function, analyses, by_launcher, false));
  CHECK_FALSE(transforms::legal::has_base_plans(function, analyses, by_launcher, true)); // no loop
}

} // namespace ptxrewrite::tests::r2d2_legal_test
