#include "tests/engines/access_launch.h"

#include <cstring>
#include <span>

namespace ptxrewrite::test {

EngineRun launch_accesses(const ir::Module& module, const AccessShape& shape, const AccessData& data, AccessWay way) {
  EngineRun run;
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(module, memory);
  if (!program) {
    run.refused = program.error().message;
    return run;
  }
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block = {shape.threads};
  request.grid = {shape.blocks};
  request.host_threads = 1;
  request.count_memory = way == AccessWay::lane_by_lane;
  const bool is_code = way != AccessWay::predicted && way != AccessWay::lane_by_lane;
  request.machines.set(
      emulator::EngineSetting{is_code ? emulator::Engine::generated : emulator::Engine::interpreter,
                              {},
                              way == AccessWay::full ? emulator::CodeTier::full : emulator::CodeTier::quick,
                              way == AccessWay::portable});
  request.parameters.resize(28);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(data.table)),
                                              std::as_bytes(std::span(data.buffer)),
                                              std::as_bytes(std::span(data.results))};
  uint64_t addresses[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    auto address = memory.allocate(parts[i].size(), "part");
    if (!address || !memory.write(*address, parts[i])) {
      run.refused = "no memory";
      return run;
    }
    addresses[i] = *address;
    std::memcpy(request.parameters.data() + i * 8, &addresses[i], 8);
  }
  std::memcpy(request.parameters.data() + 24, &shape.turns, 4);
  const UsesEngine counted(emulator::default_engine());
  take_result((*program)->launch(request), run);
  run.generated = counted.generated();
  for (size_t i = 1; i < 3; ++i)
    (void)memory.read(addresses[i], run.memory.emplace_back(parts[i].size()));
  return run;
}

std::string difference_from_host(const AccessData& after, const EngineRun& run) {
  EngineRun expected, memory_only = run;
  for (const auto* bytes : {&after.buffer, &after.results}) {
    const auto view = std::as_bytes(std::span(*bytes));
    expected.memory.emplace_back(view.begin(), view.end());
  }
  memory_only.counters = {};
  return difference(expected, memory_only);
}

} // namespace ptxrewrite::test
