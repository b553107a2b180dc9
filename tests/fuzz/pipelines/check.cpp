#include "tests/fuzz/pipelines/check.h"

#include "emulator/core/emulator.h"
#include "ir/core/function.h"
#include "launch/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace ptxrewrite::fuzz::pipelines {

Run run(const Pipeline& pipeline, const std::string& text, const RunOptions& options) {
  Run result;
  const std::unique_ptr<ir::Module> module = read_text(text, result.failed);
  if (!module) return result;
  emulator::DeviceMemory memory;
  auto program = emulator::Program::load(*module, memory);
  if (!program) {
    result.refused = program.error().message;
    return result;
  }
  const std::vector<uint32_t> input = input_of(pipeline);
  result.output.resize(pipeline.output_words());
  const Result<uint64_t> in = memory.allocate(input.size() * 4, "in");
  const Result<uint64_t> out = memory.allocate(result.output.size() * 4, "out");
  if (!in || !out || !memory.write(*in, std::as_bytes(std::span(input))) ||
      !memory.write(*out, std::as_bytes(std::span(result.output)))) {
    result.refused = "no memory";
    return result;
  }
  std::vector<std::byte> parameters(20);
  std::memcpy(parameters.data(), &*in, 8);
  std::memcpy(parameters.data() + 8, &*out, 8);
  std::memcpy(parameters.data() + 16, &pipeline.tiles, 4);
  const launch::Dim3 grid{pipeline.blocks, 1, 1}, block{pipeline.threads(), 1, 1};
  Result<launch::Variants> variants = launch::Variants::of(*module, nullptr);
  if (!variants) {
    result.failed = variants.error().message;
    return result;
  }
  Result<launch::VariantChoice> choice = variants->choose("pipeline", parameters, grid, block);
  if (!choice) {
    result.failed = choice.error().message;
    return result;
  }
  emulator::LaunchRequest request;
  request.kernel = choice->is_original ? "pipeline" : std::string(module->text(choice->entry->name));
  request.grid = {grid.x, grid.y, grid.z};
  request.block = {choice->block.x, choice->block.y, choice->block.z};
  request.parameters = choice->parameter_block;
  request.check = options.check;
  request.late_copies = options.late_copies;
  request.fuel = 100'000; // kernels need some thousands
  Result<emulator::LaunchResult> launched = (*program)->launch(request);
  if (!launched) {
    result.refused = launched.error().message;
    return result;
  }
  if (launched->failure)
    result.failed = launched->failure->message;
  else if (!launched->findings.empty())
    result.failed = "check mode: " + launched->findings.front().where.message;
  if (!memory.read(*out, std::as_writable_bytes(std::span(result.output)))) result.failed = "the output is gone";
  return result;
}

std::string wrong_in(const Pipeline& pipeline, const Run& run) {
  if (!run.refused.empty()) return "refused: " + run.refused;
  if (!run.failed.empty()) return run.failed;
  const std::vector<uint32_t> right = expected(pipeline, input_of(pipeline));
  const auto [found, wanted] = std::ranges::mismatch(run.output, right);
  if (found == run.output.end()) return {};
  return fmt::format("word {} is {:#x} instead of {:#x}", found - run.output.begin(), *found, *wanted);
}

} // namespace ptxrewrite::fuzz::pipelines
