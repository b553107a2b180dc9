// Properties of the code for each machine generation, by compute capability: the rows of generations.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

enum class Generation : uint8_t {
#define GENERATION(name, first, text) name,
#define MACHINE_FACT(name, te, fe, ke, ma, vo, tu, am, ho, bl, bl12, text)
#include "ir/machine/figures/generations.def"
#undef GENERATION
#undef MACHINE_FACT
  count
};
inline constexpr size_t generation_count = static_cast<size_t>(Generation::count);

enum class MachineFact : uint8_t {
#define GENERATION(name, first, text)
#define MACHINE_FACT(name, te, fe, ke, ma, vo, tu, am, ho, bl, bl12, text) name,
#include "ir/machine/figures/generations.def"
#undef GENERATION
#undef MACHINE_FACT
  count
};

struct GenerationInfo {
  std::string_view name, text;
  uint32_t first_capability = 0;
};
inline constexpr std::array<GenerationInfo, generation_count> generations = {{
#define GENERATION(name, first, text) {#name, text, first},
#define MACHINE_FACT(name, te, fe, ke, ma, vo, tu, am, ho, bl, bl12, text)
#include "ir/machine/figures/generations.def"
#undef GENERATION
#undef MACHINE_FACT
}};

struct MachineFactInfo {
  std::string_view name, text;
  std::array<uint16_t, generation_count> by_generation;
};
inline constexpr std::array<MachineFactInfo, static_cast<size_t>(MachineFact::count)> machine_facts = {{
#define GENERATION(name, first, text)
#define MACHINE_FACT(name, te, fe, ke, ma, vo, tu, am, ho, bl, bl12, text)                                             \
  {#name, text, {te, fe, ke, ma, vo, tu, am, ho, bl, bl12}},
#include "ir/machine/figures/generations.def"
#undef GENERATION
#undef MACHINE_FACT
}};

// The newest generation that is not newer than the compute capability; the oldest for earlier capabilities.
constexpr Generation find_generation(uint32_t compute_capability) {
  size_t found = 0;
  for (size_t i = 1; i < generation_count; ++i)
    if (generations[i].first_capability <= compute_capability) found = i;
  return static_cast<Generation>(found);
}

// By compute capability: rules ask for each instruction.
inline constexpr auto known_generations = [] {
  std::array<Generation, 256> known{};
  for (uint32_t capability = 0; capability < known.size(); ++capability)
    known[capability] = find_generation(capability);
  return known;
}();

constexpr Generation generation_of(uint32_t compute_capability) {
  return compute_capability < known_generations.size() ? known_generations[compute_capability]
                                                       : find_generation(compute_capability);
}

constexpr uint16_t fact(uint32_t compute_capability, MachineFact fact) {
  return machine_facts[static_cast<size_t>(fact)].by_generation[static_cast<size_t>(generation_of(compute_capability))];
}
constexpr bool has(uint32_t compute_capability, MachineFact what) {
  return fact(compute_capability, what) != 0;
}

} // namespace ptxrewrite::ir
