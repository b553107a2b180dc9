#include "tests/engines/engine_run.h"

#include <cstdio>
#include <utility>

namespace ptxrewrite::test {
namespace {

std::string text_of(const emulator::Failure& failure) {
  char place[200];
  std::snprintf(place, sizeof place, " (kind %d, fault %d, block %u,%u,%u thread %u,%u,%u, source byte %u)",
                static_cast<int>(failure.kind), static_cast<int>(failure.fault), failure.block.x, failure.block.y,
                failure.block.z, failure.thread.x, failure.thread.y, failure.thread.z,
                static_cast<unsigned>(failure.range.begin));
  return failure.message + place;
}

std::string numbers(const char* what, uint64_t interpreted, uint64_t generated) {
  return std::string(what) + ": " + std::to_string(interpreted) + " interpreted, " + std::to_string(generated) +
         " generated";
}

std::string counter_difference(const emulator::Counters& a, const emulator::Counters& b) {
  if (a.warp_instructions != b.warp_instructions)
    return numbers("warp instructions", a.warp_instructions, b.warp_instructions);
  if (a.thread_instructions != b.thread_instructions)
    return numbers("thread instructions", a.thread_instructions, b.thread_instructions);
  if (a.blocks != b.blocks || a.warps != b.warps) return numbers("warps", a.warps, b.warps);
  for (size_t f = 0; f < a.functions.size(); ++f)
    for (size_t i = 0; i < a.functions[f].instructions.size(); ++i) {
      const emulator::InstructionCounters &x = a.functions[f].instructions[i], &y = b.functions[f].instructions[i];
      const std::string place = a.functions[f].function + ", instruction " + std::to_string(i);
      if (x.executions != y.executions) return numbers((place + ", executions").c_str(), x.executions, y.executions);
      if (x.lanes != y.lanes) return numbers((place + ", lanes").c_str(), x.lanes, y.lanes);
      if (x.guarded_off != y.guarded_off)
        return numbers((place + ", guarded off").c_str(), x.guarded_off, y.guarded_off);
    }
  return {};
}

} // namespace

void take_result(Result<emulator::LaunchResult> result, EngineRun& run) {
  if (!result) {
    run.refused = result.error().message;
    return;
  }
  if (result->failure) run.failure = text_of(*result->failure);
  run.printed = std::move(result->printed);
  run.counters = std::move(result->counters);
}

UsesEngine::UsesEngine(emulator::Engine engine)
    : usual_(emulator::default_engine()), before_(emulator::warp_instructions_by_code()) {
  emulator::default_engine() = engine;
}

UsesEngine::~UsesEngine() {
  emulator::default_engine() = usual_;
}

bool has_generator() {
  const std::string reason = emulator::why_no_generator();
  if (!reason.empty()) std::printf("skipped: %s\n", reason.c_str());
  return reason.empty();
}

std::string difference(const EngineRun& a, const EngineRun& b) {
  if (a.refused != b.refused) return "refused: '" + a.refused + "' interpreted, '" + b.refused + "' generated";
  if (a.failure != b.failure) return "failure: '" + a.failure + "' interpreted, '" + b.failure + "' generated";
  for (size_t i = 0; i < a.memory.size(); ++i)
    for (size_t at = 0; at < a.memory[i].size(); ++at)
      if (a.memory[i][at] != b.memory[i][at])
        return numbers(("buffer " + std::to_string(i) + ", byte " + std::to_string(at)).c_str(),
                       static_cast<uint64_t>(a.memory[i][at]), static_cast<uint64_t>(b.memory[i][at]));
  if (a.printed != b.printed) return "printed: '" + a.printed + "' interpreted, '" + b.printed + "' generated";
  return counter_difference(a.counters, b.counters);
}

bool EngineTally::add(const std::string& what, const EngineRun& interpreted, const EngineRun& by_code) {
  ++launches;
  if (!interpreted.refused.empty()) ++refused;
  if (!interpreted.failure.empty()) ++failed_launches;
  warp_instructions += by_code.counters.warp_instructions;
  generated += by_code.generated;
  const std::string wrong = difference(interpreted, by_code);
  if (wrong.empty()) return true;
  if (++differences <= 20) std::printf("%s: %s\n", what.c_str(), wrong.c_str());
  return false;
}

int EngineTally::finish(const char* name) const {
  const double share =
      warp_instructions ? 100.0 * static_cast<double>(generated) / static_cast<double>(warp_instructions) : 0;
  std::printf("%s: %llu kernels, %llu launches (%llu failed, %llu refused by both), %llu warp instructions, %.1f %% of "
              "them by generated code; %llu launches differ\n",
              name, static_cast<unsigned long long>(kernels), static_cast<unsigned long long>(launches),
              static_cast<unsigned long long>(failed_launches), static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(warp_instructions), share, static_cast<unsigned long long>(differences));
  const bool was_a_test = share > 10;
  if (!was_a_test) std::printf("too little was executed by generated code\n");
  return differences == 0 && was_a_test ? 0 : 1;
}

} // namespace ptxrewrite::test
