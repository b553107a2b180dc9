// Runs one tensor copy on the emulator: a kernel with a map as its parameter, a tensor in global memory, and a tile in
// shared memory with given contents that is read back.
#pragma once

#include "emulator/core/emulator.h"
#include "emulator/tensor_copies/tensor_map_object.h"
#include "grammar/reader.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace ptxrewrite::emulator {

struct TensorRun {
  std::string error;   // refused
  std::string failure; // the kernel's
  std::vector<Finding> findings;
  std::vector<std::byte> tensor; // after the run
  std::vector<std::byte> shared;
};

struct TensorSetup {
  ir::TensorMap map;             // its address is an offset into the tensor's memory
  std::vector<std::byte> tensor; // all of its memory
  std::vector<std::byte> shared; // the tile and the bytes after it; a multiple of 4
  std::vector<int64_t> coordinates;
  std::vector<int64_t> offsets; // im2col
  std::string copy;             // the instruction; names: [%tile], [%map, {coordinates}], [%bar], {%h0, ...}
  bool late = false, check = false;
  uint32_t expected_bytes = 0;      // expected by the kernel's mbarrier
  std::vector<std::byte> map_bytes; // instead of the map's own bytes, if not empty
  uint32_t tile_offset = 0;         // from the start of shared memory
  bool fenced = true;               // fence.proxy.async after the stores that fill the tile
  unsigned parity = 0;              // that the kernel waits for
  std::string target = ".version 9.0\n.target sm_100a\n";
  std::string before;     // instructions before the copy
  std::string after = ""; // instructions after the copy
};

// "%c0, %c1, %c2"
inline std::string registers(const char* prefix, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string("%") + prefix + std::to_string(i);
  return text;
}

inline std::string tensor_kernel(const TensorSetup& setup) {
  std::string text = setup.target + ".address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n";
  text += R"(.visible .entry k(.param .align 64 .b8 map[128], .param .u64 image, .param .u32 words, .param .u32 bytes,
  .param .align 4 .b8 place[32], .param .u64 tensor)
{
  .shared .align 8 .b64 bar;
  .reg .b32 %c<5>, %t, %n, %tile, %bar, %x, %i, %bytes;
  .reg .b16 %h<3>;
  .reg .b64 %map, %image, %a, %o, %tensor, %policy, %d<4>;
  .reg .b32 %r<8>;
  .reg .pred %p, %q;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %image, [image];
  ld.param.u64 %tensor, [tensor];
  ld.param.u32 %n, [words];
  ld.param.u32 %bytes, [bytes];
  mov.b64 %policy, 0;
  mov.u32 %t, %tid.x;
  mov.u32 %bar, bar;
  mov.u32 %tile, dynamic;
  mov.u32 %i, %t;
FILL:
  setp.ge.u32 %p, %i, %n;
  @%p bra FILLED;
  mul.wide.u32 %o, %i, 4;
  add.u64 %a, %image, %o;
  ld.global.u32 %x, [%a];
  shl.b32 %r0, %i, 2;
  add.u32 %r0, %r0, %tile;
  st.shared.u32 [%r0], %x;
  add.u32 %i, %i, 32;
  bra FILL;
FILLED:
)";
  text += "  add.u32 %tile, %tile, " + std::to_string(setup.tile_offset) + ";\n";
  for (size_t i = 0; i < 5; ++i)
    text += "  ld.param.b32 %c" + std::to_string(i) + ", [place+" + std::to_string(4 * i) + "];\n";
  for (size_t i = 0; i < 3; ++i)
    text += "  ld.param.b16 %h" + std::to_string(i) + ", [place+" + std::to_string(20 + 4 * i) + "];\n";
  text += R"(
  setp.ne.u32 %q, %t, 0;
  @%q bra ISSUED;
  mbarrier.init.shared.b64 [%bar], 1;
ISSUED:
  bar.sync 0;
)";
  if (setup.fenced) text += "  fence.proxy.async;\n";
  text += "  @%q bra WAIT;\n";
  text += setup.before + setup.copy + setup.after;
  text += R"(
  cp.async.bulk.commit_group;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %bytes;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p, [%bar], )" +
          std::to_string(setup.parity) + R"(;
  @!%p bra WAIT;
  cp.async.bulk.wait_group 0;
  bar.sync 0;
  mov.u32 %tile, dynamic;
  mov.u32 %i, %t;
SHOW:
  setp.ge.u32 %p, %i, %n;
  @%p bra DONE;
  mul.wide.u32 %o, %i, 4;
  add.u64 %a, %image, %o;
  shl.b32 %r0, %i, 2;
  add.u32 %r0, %r0, %tile;
  ld.shared.u32 %x, [%r0];
  st.global.u32 [%a], %x;
  add.u32 %i, %i, 32;
  bra SHOW;
DONE:
  ret;
}
)";
  return text;
}

inline TensorRun run_tensor(const TensorSetup& setup) {
  TensorRun run;
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", tensor_kernel(setup)), diagnostics);
  if (!module) {
    for (const Diagnostic& diagnostic : diagnostics.list())
      run.error += diagnostic.message + "\n";
    return run;
  }
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  const auto place = [&](const std::vector<std::byte>& bytes, const char* name) {
    Result<uint64_t> address = memory.allocate(std::max<size_t>(bytes.size(), 16), name);
    REQUIRE(address);
    REQUIRE(memory.write(*address, bytes));
    return *address;
  };
  const uint64_t tensor = place(setup.tensor, "tensor"), image = place(setup.shared, "image");
  ir::TensorMap map = setup.map;
  map.address += tensor;
  const TensorMapObject object = encode_tensor_map(map);
  LaunchRequest request{.kernel = "k", .block = {32}};
  request.shared_bytes = static_cast<uint32_t>(setup.shared.size());
  request.late_copies = setup.late;
  request.check = setup.check;
  request.parameters.resize(192);
  std::byte* to = request.parameters.data();
  std::memcpy(to, object.data(), object.size());
  if (!setup.map_bytes.empty()) std::memcpy(to, setup.map_bytes.data(), object.size());
  const auto words = static_cast<uint32_t>(setup.shared.size() / 4);
  std::memcpy(to + 128, &image, 8);
  std::memcpy(to + 136, &words, 4);
  std::memcpy(to + 140, &setup.expected_bytes, 4);
  for (size_t i = 0; i < setup.coordinates.size(); ++i) {
    const auto value = static_cast<int32_t>(setup.coordinates[i]);
    std::memcpy(to + 144 + 4 * i, &value, 4);
  }
  for (size_t i = 0; i < setup.offsets.size(); ++i) {
    const auto value = static_cast<uint16_t>(setup.offsets[i]);
    std::memcpy(to + 164 + 4 * i, &value, 2);
  }
  std::memcpy(to + 176, &tensor, 8);
  request.parameters.resize(184);
  auto result = (*program)->launch(request);
  if (!result) {
    run.error = result.error().message;
    return run;
  }
  if (result->failure) run.failure = result->failure->message;
  run.findings = std::move(result->findings);
  run.tensor.resize(setup.tensor.size());
  run.shared.resize(setup.shared.size());
  REQUIRE(memory.read(tensor, run.tensor));
  REQUIRE(memory.read(image, run.shared));
  return run;
}

inline std::vector<std::byte> random_bytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random());
  return bytes;
}

} // namespace ptxrewrite::emulator
