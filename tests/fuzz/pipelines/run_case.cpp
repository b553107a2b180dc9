// Pipelines on the emulator.
#include "tests/fuzz/pipelines/run_case.h"

#include "emulator/core/emulator.h"
#include "emulator/tensor_copies/tensor_map_object.h"
#include "ir/core/function.h"
#include "launch/variants.h"
#include "tests/fuzz/kernels/differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace ptxrewrite::fuzz::pipelines {
namespace {

template <class Value> void append(std::vector<std::byte>& block, const Value& value, size_t alignment) {
  block.resize((block.size() + alignment - 1) / alignment * alignment);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&value, 1));
  block.insert(block.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> parameter_block(const Case& launched, const std::vector<uint64_t>& addresses) {
  std::vector<std::byte> block;
  for (const Parameter& parameter : launched.parameters)
    switch (parameter.kind) {
    case Parameter::Kind::address:
      append(block, addresses[parameter.buffer], 8);
      break;
    case Parameter::Kind::map: {
      ir::TensorMap map = parameter.map;
      map.address = addresses[parameter.buffer];
      append(block, emulator::encode_tensor_map(map), ir::tensor_map_alignment);
      break;
    }
    case Parameter::Kind::number:
      append(block, parameter.number, 4);
      break;
    }
  return block;
}

} // namespace

Run run(const Case& launched, const std::string& text, const RunOptions& options) {
  Run result;
  const std::unique_ptr<ir::Module> module = read_text(text, result.failed);
  if (!module) return result;
  emulator::DeviceMemory memory;
  const auto refuse = [&](const std::string& reason) {
    result.refused = reason;
    return result;
  };
  auto program = emulator::Program::load(*module, memory);
  if (!program) return refuse(program.error().message);
  std::vector<uint64_t> addresses;
  for (const std::vector<uint32_t>& contents : launched.buffers) {
    const Result<uint64_t> address = memory.allocate(contents.size() * 4, "buffer");
    if (!address || !memory.write(*address, std::as_bytes(std::span(contents)))) return refuse("no memory");
    addresses.push_back(*address);
  }
  const std::vector<std::byte> parameters = parameter_block(launched, addresses);
  const launch::Dim3 grid{launched.blocks, 1, 1}, block{launched.threads, 1, 1};
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
  request.shared_bytes = launched.shared_bytes;
  request.check = options.check;
  request.late_copies = options.late_copies;
  request.fuel = 100'000; // kernels need some thousands
  Result<emulator::LaunchResult> done = (*program)->launch(request);
  if (!done) return refuse(done.error().message);
  if (done->failure)
    result.failed = done->failure->message;
  else if (!done->findings.empty())
    result.failed = "check mode: " + done->findings.front().where.message;
  result.output.resize(launched.buffers.back().size());
  if (!memory.read(addresses.back(), std::as_writable_bytes(std::span(result.output))))
    result.failed = "the output is gone";
  return result;
}

std::string wrong_in(const Case& launched, const Run& run) {
  if (!run.refused.empty()) return "refused: " + run.refused;
  if (!run.failed.empty()) return run.failed;
  const auto [found, wanted] = std::ranges::mismatch(run.output, launched.expected);
  if (found == run.output.end()) return {};
  return fmt::format("word {} is {:#x} instead of {:#x}", found - run.output.begin(), *found, *wanted);
}

} // namespace ptxrewrite::fuzz::pipelines
