#include "tests/fuzz/kernels/differential.h"

#include "emulator/core/engine.h"
#include "emulator/machines/regless/staging_plan.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/verify/verify.h"
#include "launch/persistent_grid.h"
#include "launch/variants.h"
#include "tests/fuzz/random.h"
#include "transforms/manager/pipeline.h"
#include "transforms/manager/text_insertion.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace ptxrewrite::fuzz {

namespace {

// A pass in a chain: r2d2 uses the model's cost, since asking ptxas takes longer than everything else.
std::string step(const transforms::PassDescription& pass) {
  const bool has_cost =
      std::any_of(pass.options.begin(), pass.options.end(),
                  [](const transforms::PassOptionDescription& option) { return option.name == "cost"; });
  return std::string(pass.name) + (has_cost ? "(cost=model)" : "");
}

// With options that make it change small kernels, profitable or not.
std::string forced_step(const transforms::PassDescription& pass) {
  if (pass.name == "spill") return "spill(limit=14,predicates=4)";
  if (pass.name == "schedule") return "schedule(force)";
  return step(pass);
}

constexpr uint64_t fuel = 2'000'000; // warp instructions per block: kernels need thousands

std::string describe(const emulator::Failure& failure) {
  const auto& t = failure.thread;
  const auto& b = failure.block;
  char place[120];
  std::snprintf(place, sizeof place, " (block %u,%u,%u thread %u,%u,%u, source byte %u)", b.x, b.y, b.z, t.x, t.y, t.z,
                static_cast<unsigned>(failure.range.begin));
  return failure.message + place;
}

std::vector<std::byte> as_bytes(const std::vector<uint8_t>& values) {
  std::vector<std::byte> bytes(values.size());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size());
  return bytes;
}

// A kernel with a guard has the original body after the rewritten one, under a label derived from its name. The result
// says whether that body ran.
Emulation::Guard guard_of(const ir::Module& module, const std::string& kernel, const emulator::Counters& counters) {
  for (const emulator::FunctionCounters& row : counters.functions)
    for (ir::BlockId block : row.source->layout) {
      const ir::Block& body = row.source->blocks[block];
      if (!body.label || !module.text(body.label).starts_with("$L_" + kernel + "_original")) continue;
      for (ir::InstructionId id : row.source->instructions_in(block))
        if (row.instructions[id.index()].executions != 0) return Emulation::Guard::failed;
      return Emulation::Guard::passed;
    }
  return Emulation::Guard::none;
}

launch::Dim3 dimensions_of(const std::array<uint32_t, 3>& size) {
  return {size[0], size[1], size[2]};
}

} // namespace

Emulation emulate(const ir::Module& module, const Kernel& kernel, const Shape& shape, emulator::Observer* observer,
                  const emulator::MachineData& machines) {
  Emulation emulation;
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  const auto refuse = [&](const Error& error) {
    emulation.refused = error.message;
    return emulation;
  };
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(module, memory);
  if (!program) return refuse(program.error());
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const std::vector<std::byte> contents = as_bytes(kernel.buffer_contents(i, shape));
    Result<uint64_t> address = memory.allocate(contents.size(), kernel.buffers[i].name);
    if (!address) return refuse(address.error());
    if (Status status = memory.write(*address, contents); !status) return refuse(status.error());
    addresses.push_back(*address);
  }
  const std::vector<std::byte> parameters = as_bytes(kernel.parameter_block(shape, addresses));
  Result<launch::Variants> variants = launch::Variants::of(module, nullptr);
  if (!variants) return refuse(variants.error());
  Result<launch::VariantChoice> choice =
      variants->choose(kernel.name, parameters, dimensions_of(shape.grid), dimensions_of(shape.block));
  if (!choice) return refuse(choice.error());
  emulation.has_variants = !variants->of_kernel(kernel.name).empty();
  if (const ir::Function* original = launch::find_kernel(module, kernel.name))
    emulation.facts = launch::facts_of(launch::signature_of(*original), parameters, dimensions_of(shape.grid),
                                       dimensions_of(shape.block));
  emulation.entry = choice->is_original ? kernel.name : std::string(module.text(choice->entry->name));

  emulator::LaunchRequest request;
  request.kernel = emulation.entry;
  request.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
  if (choice->grid == launch::GridMode::persistent) { // mostly fewer blocks than planned, so that each does several
    const launch::Dim3 grid = launch::persistent_grid(dimensions_of(shape.grid), 1 + kernel.seed % 4);
    request.grid = {grid.x, grid.y, grid.z};
  }
  request.block = {choice->block.x, choice->block.y, choice->block.z};
  request.shared_bytes = kernel.dynamic_shared_size();
  request.parameters = choice->parameter_block;
  request.host_threads = 1 + static_cast<unsigned>(kernel.seed % 2);              // results must not depend on it
  const bool watched = emulator::default_engine() != emulator::Engine::generated; // generated code is not
  request.check = watched && !kernel.races;
  request.late_copies = watched && kernel.seed % 2 == 0; // nor on when asynchronous copies take place
  request.fuel = fuel;
  request.observer = observer;
  request.machines = machines;
  Result<emulator::LaunchResult> result = (*program)->launch(request);
  if (!result) return refuse(result.error());
  if (result->failure)
    emulation.failed = describe(*result->failure);
  else if (!result->findings.empty())
    emulation.failed = "check mode: " + describe(result->findings.front().where);
  emulation.machines = std::move(result->machines);
  emulation.guard = guard_of(module, kernel.name, result->counters);
  for (size_t i = 0; i < addresses.size(); ++i) {
    emulation.buffers.emplace_back(kernel.buffer_size(i, shape));
    if (Status status = memory.read(addresses[i], std::as_writable_bytes(std::span(emulation.buffers.back()))); !status)
      emulation.failed = status.error().message;
  }
  return emulation;
}

std::string Chain::name() const {
  std::string text = passes.empty() ? "identity" : passes;
  if (form == transforms::OutputForm::hardware) text += " --form hardware";
  if (form == transforms::OutputForm::annotated) text += " --form annotated";
  for (const std::string& word : assumptions)
    text += " --assume " + word;
  return text;
}

std::vector<Chain> linear_chains(const Kernel& kernel) {
  using transforms::OutputForm;
  const std::string together = "r2d2(force,candidates=1+2+3+5)";
  std::vector<Chain> chains = {{"r2d2", OutputForm::hardware, {}}, {together, OutputForm::legal, {}}};
  if (!kernel.may_wrap)
    for (size_t i = 0; i < 2; ++i)
      chains.push_back({chains[i].passes, chains[i].form, {"no-index-overflow"}});
  for (const char* options : {"cost=model", "force,candidates=1", "force,candidates=2", "force,candidates=3",
                              "force,candidates=5", "force,discharge=proved+kernel", "persistent,cost=model"})
    chains.push_back({"r2d2(" + std::string(options) + ")", OutputForm::legal, {}});
  return chains;
}

std::vector<Chain> composite_chains() {
  using transforms::OutputForm;
  return {{"composite(cost=model)", OutputForm::legal, {}},
          {"composite(force)", OutputForm::legal, {}},
          {"composite", OutputForm::hardware, {}}};
}

std::vector<Chain> run_ahead_chains() {
  using transforms::OutputForm;
  std::vector<Chain> chains = {{"dac", OutputForm::legal, {}}};
  for (const char* options :
       {"force,form=ring,threads=1024,distance=2", "force,form=ring,distance=3", "force,form=ring,distance=1",
        "force,form=registers,distance=1", "force,form=registers,distance=3", "force,form=prefetch",
        "force,form=producer,distance=2"})
    chains.push_back({"dac(" + std::string(options) + ")", OutputForm::legal, {}});
  chains.push_back({"r2d2(force,candidates=1+2+3+5),dac(force,distance=2)", OutputForm::legal, {}});
  return chains;
}

std::vector<Chain> chains_for(uint64_t seed, size_t longer) {
  using transforms::OutputForm;
  std::vector<Chain> chains = {{"", OutputForm::legal, {}}};
  const std::vector<transforms::PassDescription>& passes = transforms::all_passes();
  for (const transforms::PassDescription& pass : passes)
    for (const OutputForm form : {OutputForm::legal, OutputForm::annotated, OutputForm::hardware})
      chains.push_back({step(pass), form, {}});
  Random random(seed * 31 + 7);
  for (size_t i = 0; i < longer; ++i) {
    Chain chain;
    if (random.one_in(3)) chain.form = OutputForm::hardware;
    for (size_t at = 0, steps = 2 + random.below(3); at < steps; ++at) {
      chain.passes += at == 0 ? "" : ",";
      chain.passes += forced_step(random.pick(passes));
    }
    chains.push_back(std::move(chain));
  }
  return chains;
}

std::unique_ptr<ir::Module> read_text(const std::string& text, std::string& failed) {
  Diagnostics diagnostics;
  const SourceFile source("kernel.ptx", text);
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  if (!module) failed = diagnostics.list().empty() ? "not read" : render(diagnostics.list().front(), source);
  return module;
}

Rewriting rewrite(const std::string& text, const Chain& chain) {
  Rewriting result;
  const std::unique_ptr<ir::Module> module = read_text(text, result.failed);
  if (!module) return result;
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(chain.passes);
  if (!pipeline) {
    result.failed = pipeline.error().message;
    return result;
  }
  transforms::RunOptions options;
  options.form = chain.form;
  options.assumptions = chain.assumptions;
  options.verify_each = true;
  Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
  if (!report) result.failed = report.error().message;
  if (!report) return result;
  result.text = ir::print(*module);
  result.ledger = std::move(report->ledger);
  return result;
}

std::string disagreement(const std::string& text, const Kernel& kernel, const Shape& shape, const Chain& chain,
                         const emulator::AffineSettings& affine) {
  std::string failed;
  const std::unique_ptr<ir::Module> original = read_text(text, failed);
  if (!original) return "";
  const Emulation expected = emulate(*original, kernel, shape);
  if (!expected.refused.empty() || !expected.failed.empty()) return "";
  const Rewriting rewriting = rewrite(text, chain);
  if (!rewriting.failed.empty()) return rewriting.failed;
  const std::unique_ptr<ir::Module> rewritten = read_text(rewriting.text, failed);
  if (!rewritten) return "printed text: " + failed;
  const Emulation actual = emulate(*rewritten, kernel, shape, nullptr, affine);
  if (!actual.refused.empty()) return "";
  return actual.failed.empty() ? difference(kernel, shape, expected.buffers, actual.buffers) : actual.failed;
}

std::string disagreement_when_skipping(const std::string& text, const Kernel& kernel, const Shape& shape,
                                       const emulator::SkipSettings& settings) {
  std::string failed;
  const std::unique_ptr<ir::Module> module = read_text(text, failed);
  if (!module) return "";
  const Emulation expected = emulate(*module, kernel, shape);
  if (!expected.refused.empty() || !expected.failed.empty()) return "";
  const Emulation skipping = emulate(*module, kernel, shape, nullptr, settings);
  return skipping.failed.empty() ? difference(kernel, shape, expected.buffers, skipping.buffers) : skipping.failed;
}

std::string annotated_for_staging(const ir::Module& module, const Kernel& kernel) {
  constexpr std::array<std::string_view, 3> limits = {"", "(live=12,bank=4)", "(live=6,bank=2)"};
  const auto pipeline = transforms::parse_pipeline("regless" + std::string(limits[kernel.seed % limits.size()]));
  transforms::RunOptions options;
  options.form = transforms::OutputForm::annotated;
  return transforms::annotated_text(module, *pipeline, options).text;
}

std::string disagreement_when_staged(const std::string& text, const Kernel& kernel, const Shape& shape,
                                     uint32_t entries) {
  std::string failed;
  const std::unique_ptr<ir::Module> original = read_text(text, failed);
  if (!original) return "";
  const Emulation expected = emulate(*original, kernel, shape);
  if (!expected.refused.empty() || !expected.failed.empty()) return "";
  // Every third kernel in an order that suits regions.
  const bool scheduled = kernel.seed % 3 == 1 && !kernel.races;
  const Chain chain{"schedule(force,goal=loads,live=32)", transforms::OutputForm::legal, {}};
  const std::unique_ptr<ir::Module> ordered = read_text(scheduled ? rewrite(text, chain).text : text, failed);
  if (!ordered) return failed;
  const std::unique_ptr<ir::Module> annotated = read_text(annotated_for_staging(*ordered, kernel), failed);
  if (!annotated) return failed;
  emulator::StagingSettings settings;
  settings.entries = entries ? entries : emulator::least_staging_entries(*annotated);
  const Emulation staged = emulate(*annotated, kernel, shape, nullptr, settings);
  if (!staged.refused.empty() || !staged.failed.empty()) return staged.refused + staged.failed;
  return difference(kernel, shape, expected.buffers, staged.buffers);
}

std::string difference(const Kernel& kernel, const Shape& shape, const std::vector<std::vector<uint8_t>>& expected,
                       const std::vector<std::vector<uint8_t>>& actual) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto mismatch = std::mismatch(expected[i].begin(), expected[i].end(), actual[i].begin(), actual[i].end());
    if (mismatch.first == expected[i].end()) continue;
    const auto at = static_cast<uint64_t>(mismatch.first - expected[i].begin());
    const uint64_t row = kernel.buffers[i].size_per_thread;
    char text[200];
    std::snprintf(text, sizeof text,
                  "buffer %s byte %llu (row %llu + %llu of %llu): 0x%02x instead of 0x%02x, %u threads",
                  kernel.buffers[i].name.c_str(), static_cast<unsigned long long>(at),
                  static_cast<unsigned long long>(row == 0 ? 0 : at / row),
                  static_cast<unsigned long long>(row == 0 ? at : at % row), static_cast<unsigned long long>(row),
                  *mismatch.second, *mismatch.first, shape.threads());
    return text;
  }
  return "";
}

} // namespace ptxrewrite::fuzz
