// Runs random kernels on the emulator: the original against the oracle, rewritten ones against the original.
#pragma once

#include "emulator/core/emulator.h"
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/machines/regless/staging_counters.h"
#include "ir/core/module.h"
#include "launch/predicate.h"
#include "tests/fuzz/kernels/kernel_program.h"
#include "transforms/manager/pass.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

// One launch on the emulator.
struct Emulation {
  std::string refused; // the reason why the emulator refuses the kernel; nothing ran
  std::string failed;  // it faulted, did not terminate, or check mode had a finding
  std::string entry;   // the kernel or the variant that replaced it
  bool has_variants = false;
  enum class Guard : uint8_t { none, passed, failed } guard = Guard::none; // a test in the kernel's first block
  launch::LaunchFacts facts;                                               // of the launch of the original
  std::vector<std::vector<uint8_t>> buffers;
  emulator::MachineData machines; // LaunchResult::machines
};
Emulation emulate(const ir::Module& module, const Kernel& kernel, const Shape& shape,
                  emulator::Observer* observer = nullptr, const emulator::MachineData& machines = {});

// The passes applied to the kernel, and their form; no passes: into SSA form and back.
struct Chain {
  std::string passes;
  transforms::OutputForm form = transforms::OutputForm::legal;
  std::vector<std::string> assumptions;

  std::string name() const; // "r2d2,dce --form hardware"
};
// All forms of r2d2, each alone; also under the assumption that nothing wraps, for kernels where that is true.
std::vector<Chain> linear_chains(const Kernel& kernel);
// All forms of composite, each alone.
std::vector<Chain> composite_chains();
// All forms in which dac's legal form issues loads ahead.
std::vector<Chain> run_ahead_chains();
// Chains for a kernel: the identity, each pass alone in each form, and some longer ones chosen by the seed.
std::vector<Chain> chains_for(uint64_t seed, size_t longer);

// The text after the chain, or the reason for its absence (a verifier finding after some pass, a wrong change report).
struct Rewriting {
  std::string text;
  std::string failed;
  std::vector<transforms::Obligation> ledger;
};
Rewriting rewrite(const std::string& text, const Chain& chain);

// The error of this text's rewriting, launched like `kernel`; "" if there is none, or if the original does not
// run.
std::string disagreement(const std::string& text, const Kernel& kernel, const Shape& shape, const Chain& chain,
                         const emulator::AffineSettings& affine = {});

// The text with RegLess's annotations, with region limits chosen by the kernel's seed.
std::string annotated_for_staging(const ir::Module& module, const Kernel& kernel);
// The same for RegLess's machine instead of a rewriting; `entries` of 0: the fewest that hold the largest region.
std::string disagreement_when_staged(const std::string& text, const Kernel& kernel, const Shape& shape,
                                     uint32_t entries);

// The same for DARSIE's machine instead of a rewriting.
std::string disagreement_when_skipping(const std::string& text, const Kernel& kernel, const Shape& shape,
                                       const emulator::SkipSettings& settings);

std::unique_ptr<ir::Module> read_text(const std::string& text, std::string& failed);

// "" if they agree; else a description of the first different byte: buffer, thread, values.
std::string difference(const Kernel& kernel, const Shape& shape, const std::vector<std::vector<uint8_t>>& expected,
                       const std::vector<std::vector<uint8_t>>& actual);

} // namespace ptxrewrite::fuzz
