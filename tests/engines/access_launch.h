// Launches kernels of accesses in each way that the emulator has for them. A kernel `k` takes the addresses of a table
// of offsets, of a buffer, and of its results, and the number of its turns.
#pragma once

#include "tests/engines/engine_run.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::ir {
class Module;
}

namespace ptxrewrite::test {

struct AccessData {
  std::vector<uint32_t> table; // offsets into the buffer
  std::vector<uint8_t> buffer, results;
};

// By the interpreter, which predicts the addresses of an access from its last execution, or looks at each lane; by
// quick code of our own encoder or of LLVM; by full code.
enum class AccessWay : uint8_t { predicted, lane_by_lane, quick, portable, full };

struct AccessShape {
  uint32_t threads = 32, blocks = 1, turns = 0;
};

// The compared memory: buffer and results.
EngineRun launch_accesses(const ir::Module& module, const AccessShape& shape, const AccessData& data, AccessWay way);

// What differs from the data that the host has computed, in memory alone. "" if nothing does.
std::string difference_from_host(const AccessData& after, const EngineRun& run);

} // namespace ptxrewrite::test
