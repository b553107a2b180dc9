#include "evaluate/score/linear_technique.h"

namespace ptxrewrite::timing {
namespace {

// Additional latency of loads and stores, whose units add the parts (§4.3).
constexpr double address_clocks = 4;

bool reads_linear_register(const Site& site) {
  if (!site.function || site.function->instructions[site.instruction].kind != ir::InstructionKind::real) return false;
  bool found = false;
  ir::for_each_use(*site.function, site.instruction, [&](ir::ValueId value) {
    found = found || site.function->values[value].register_class == ir::RegisterClass::linear;
  });
  return found;
}

} // namespace

void add_linear_phases(const ModelInput& input, Technique& technique) {
  const auto add = [&](ir::SectionKind section, PartOf of) {
    const Cluster& profile = input.recording.sections[1 + static_cast<size_t>(section)];
    if (!profile.steps.empty()) technique.parts.push_back({&profile, of});
  };
  // Coefficients are computed by one thread, thread parts by the warps of the first block on an SM, block parts by one
  // warp of each block.
  add(ir::SectionKind::r2d2_coefficient, PartOf::sm_by_warp);
  add(ir::SectionKind::r2d2_thread, PartOf::sm_by_block);
  add(ir::SectionKind::r2d2_block, PartOf::block);
  for (uint32_t number = 0; number < input.recording.sites.size(); ++number) {
    if (!reads_linear_register(input.recording.sites[number])) continue;
    technique.sites.resize(input.recording.sites.size());
    SiteChange& change = technique.sites[number];
    change.reads_parts = true;
    if (input.code[number].is_memory) change.more_latency += address_clocks;
  }
}

} // namespace ptxrewrite::timing
