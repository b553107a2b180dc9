#include "ir/machine/files/energy_sets.h"

#include <vector>

namespace ptxrewrite::ir {

namespace {

constexpr std::array<std::string_view, energy_event_count> event_names = {
    "ibuffer",       "sched",        "icache_hit",    "opcoll",       "rf_read",      "rf_write",     "int_alu",
    "int_mul",       "fp32",         "fp_mul",        "fp64",         "dp_mul",       "sqrt",         "lg2",
    "sin",           "ex2",          "tensor",        "tex",          "const_hit",    "shared",       "l1_read_hit",
    "l1_read_miss",  "l1_write_hit", "l1_write_miss", "noc_flit",     "l2_read_hit",  "l2_read_miss", "l2_write_hit",
    "l2_write_miss", "dram_read",    "dram_write",    "affine_tuple", "affine_entry",
};

std::vector<EnergySet>& all_sets() {
  static std::vector<EnergySet> sets = [] {
    std::vector<EnergySet> made;
#define ENERGY_SET(set, name, about) made.push_back({name, about, {}, 0});
#define ENERGY(set, event, value) made.back().pj[static_cast<size_t>(EnergyEvent::event)] = value;
#define ENERGY_STATIC(set, watt) made.back().static_watt = watt;
#include "ir/machine/files/energy.def"
#undef ENERGY_SET
#undef ENERGY
#undef ENERGY_STATIC
    return made;
  }();
  return sets;
}

} // namespace

std::string_view spelling(EnergyEvent event) {
  return event_names[static_cast<size_t>(event)];
}

std::span<const EnergySet> energy_sets() {
  return all_sets();
}

void add_energy_set(const EnergySet& set) {
  all_sets().push_back(set);
}

} // namespace ptxrewrite::ir
