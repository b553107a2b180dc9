// State of the tests' libcuda: modules, memory and textures of one simulated GPU.
#pragma once

#include "cuda/driver/api.h"
#include "emulator/core/emulator.h"
#include "ir/core/module.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace ptxrewrite::driver {

struct ModuleTag {
  uint64_t number = 0; // in the order of loading, starting at 1
  std::unique_ptr<ir::Module> module;
  std::unique_ptr<emulator::Program> program;
  std::map<std::string, std::unique_ptr<FunctionTag>> functions;
  std::map<std::string, std::unique_ptr<TextureReferenceTag>> texture_references;
  std::map<std::string, std::unique_ptr<SurfaceReferenceTag>> surface_references;
};
struct ArrayTag {
  ArrayDescription description{};
  DevicePointer address = 0; // of texels without padding, in the emulator's memory
};
struct MipmappedArrayTag {
  std::vector<std::unique_ptr<ArrayTag>> levels; // in one allocation, that of level 0
};
struct TextureReferenceTag {
  emulator::TextureBinding binding;
};
struct SurfaceReferenceTag {
  emulator::TextureBinding binding;
};
struct FunctionTag {
  ModuleTag* module = nullptr;
  std::string name;
  int dynamic_shared_limit = 48 << 10;
};
struct EventTag {
  double seconds = -1;
};

inline constexpr ResultCode invalid_value = 1;
inline constexpr ResultCode invalid_handle = 400;
inline constexpr ResultCode not_supported = 801;

struct FakeGpu {
  emulator::DeviceMemory memory;
  std::set<ModuleTag*> modules;
  std::set<EventTag*> events;
  std::set<DevicePointer> allocations;
  std::set<ArrayTag*> arrays;
  emulator::TextureTable textures; // texture and surface objects
  unsigned long long next_texture = 0x100;
  std::map<std::string, int> calls;
  uint64_t warp_instructions = 0; // of all launches
  uint64_t loaded = 0;            // number of modules ever loaded
  ResultCode lost = success;      // set after a kernel has faulted: every later call fails
};

FakeGpu& gpu();

// Returns the status that the environment requests for this call, or success.
ResultCode injected(const char* symbol);

} // namespace ptxrewrite::driver

#define INJECT(symbol)                                                                                                 \
  if (ResultCode wanted = injected(#symbol); wanted != success) return wanted
