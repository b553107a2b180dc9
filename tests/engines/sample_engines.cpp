// Launch files, interpreted and as generated code: the same buffers, counters, failures and texts after all launches.
//
//   sample_engines [--size SIZE] [--tier quick|full] [--fuel N] FILE.toml...
//
// --tier: all code is of this tier: quick code of our own encoder, or full code by LLVM from the first instruction.
// Exit code 77: there is no LLVM.
#include "cuda/session.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"
#include "support/file_io.h"
#include "tests/engines/engine_run.h"

#include <cstdio>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

// The launches of a plan, each with its counters; the buffers are those after the last one.
std::vector<EngineRun> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, uint64_t fuel,
                                emulator::Engine engine) {
  std::vector<EngineRun> runs;
  const UsesEngine used(engine);
  const auto device = cuda::make_emulator_device({.host_threads = 1, .fuel = fuel});
  auto session = cuda::run_plan(plan, module, *device, {.fetch_all = true});
  if (!session) {
    runs.emplace_back().refused = session.error().message;
    return runs;
  }
  for (cuda::SessionRun& launched : session->runs) {
    EngineRun& run = runs.emplace_back();
    emulator::LaunchResult result;
    result.counters = std::move(launched.counters);
    result.printed = std::move(launched.printed);
    result.failure = std::move(launched.failure);
    take_result(std::move(result), run);
  }
  if (runs.empty()) return runs;
  runs.back().memory = std::move(session->buffers);
  for (auto& variable : session->variables)
    runs.back().memory.push_back(std::move(variable));
  runs.back().generated = used.generated();
  return runs;
}

bool test_file(const std::string& path, const std::string& size, uint64_t fuel, EngineTally& tally) {
  const auto text = read_file(path);
  if (!text) return false;
  Diagnostics diagnostics;
  const SourceFile source(path, *text);
  const auto file = launch::read_launch_file(source, diagnostics);
  const auto plan = file ? launch::make_plan(*file, {.size = size, .target = {}}, diagnostics) : std::nullopt;
  const auto ptx = plan ? read_file(plan->ptx) : Result<std::string>(Error{"no plan", {}});
  const auto module = ptx ? grammar::read_module(SourceFile(plan->ptx, *ptx), diagnostics) : nullptr;
  if (!module) return false;
  const std::vector<EngineRun> interpreted = run_plan(*plan, *module, fuel, emulator::Engine::interpreter);
  const std::vector<EngineRun> generated = run_plan(*plan, *module, fuel, emulator::Engine::generated);
  ++tally.kernels;
  if (interpreted.size() != generated.size()) {
    std::printf("%s: %zu launches interpreted, %zu generated\n", path.c_str(), interpreted.size(), generated.size());
    ++tally.differences;
    return true;
  }
  for (size_t i = 0; i < interpreted.size(); ++i)
    tally.add(path + ", launch " + std::to_string(i), interpreted[i], generated[i]);
  return true;
}

int run(std::vector<std::string> files) {
  if (!has_generator()) return 77;
  std::string size;
  uint64_t fuel = emulator::default_fuel;
  while (files.size() > 2 && files[0].starts_with("--")) {
    if (files[0] == "--size")
      size = files[1];
    else if (files[0] == "--fuel")
      fuel = std::stoull(files[1]);
    else if (files[0] == "--tier" && (files[1] == "quick" || files[1] == "full"))
      emulator::default_tier() = files[1] == "quick" ? emulator::CodeTier::quick : emulator::CodeTier::full;
    else
      return 2;
    files.erase(files.begin(), files.begin() + 2);
  }
  EngineTally tally;
  for (const std::string& path : files)
    if (!test_file(path, size, fuel, tally)) {
      std::printf("%s: cannot be read\n", path.c_str());
      return 2;
    }
  return tally.finish("launch files");
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  return ptxrewrite::test::run({arguments + 1, arguments + count});
}
