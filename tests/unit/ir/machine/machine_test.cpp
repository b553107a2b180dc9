// The table of machines, and the search for its rows.
#include "ir/machine/figures/machine.h"

#include <doctest/doctest.h>

#include <set>

namespace ptxrewrite::tests::machine_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

TEST_CASE("machines are found by name whatever its case and blanks") {
  REQUIRE(find_machine("titanv") != nullptr);
  CHECK(find_machine("TITAN V") == find_machine("titanv"));
  CHECK(find_machine("titan-v")->chip == "GV100");
  CHECK(find_machine("a100")->compute_capability == 80);
  CHECK(find_machine("H200")->sms == 132);
  CHECK(find_machine("") == nullptr);
  CHECK(find_machine("h10") == nullptr);
  CHECK(unknown_machine("h2000").starts_with("unknown machine 'h2000'; did you mean 'h200'? There are h200, "));
  std::set<std::string_view> names;
  for (const Machine& machine : all_machines()) {
    CHECK(names.insert(machine.name).second);
    CHECK(find_machine(machine.name) == &machine);
  }
}

TEST_CASE("a target is counted as the newest machine that is not newer") {
  CHECK(machine_for(80).name == "A100");
  CHECK(machine_for(86).compute_capability == 86);
  CHECK(machine_for(90).name == "H100");
  CHECK(machine_for(87).compute_capability == 86);
  CHECK(machine_for(72).compute_capability == 70);
  CHECK(machine_for(100).name == "B200");
  CHECK(machine_for(103).name == "B200");
  CHECK(machine_for(110).name == "B200");
  CHECK(machine_for(120).name == "RTX5090");
  CHECK(machine_for(121).name == "RTX5090");
  CHECK(machine_for(75).name == "RTX2080Ti");
  CHECK(machine_for(10).name == "FX5800");
  CHECK(compute_capability_of("sm_90a") == 90);
  CHECK(compute_capability_of("compute_100") == 100);
  CHECK(compute_capability_of("texmode_unified") == 0);
  CHECK(compute_capability_of("") == 0);
}

// From the vendor's data sheets: rows that are shifted by a column would not add up to these.
TEST_CASE("columns are where they belong") {
  const Machine& titan = *find_machine("titanv");
  CHECK(titan.occupancy.registers == 65536);
  CHECK(titan.occupancy.max_shared_bytes_per_block == 96 * 1024);
  CHECK(titan.memory.l2_kib.value == 4608);
  CHECK(titan.throughput.fp32.value == 64);
  CHECK(titan.throughput.fp64.value == 32);
  CHECK(titan.throughput.special_function.value == 16);
  CHECK(titan.latency.integer.value == 4);
  CHECK(titan.latency.constant.guess);
  CHECK_FALSE(titan.latency.dram.guess);
  CHECK_FALSE(titan.uniform_datapath);
  CHECK(find_machine("a100")->uniform_datapath);
  const Machine& oldest = *find_machine("fx5800");
  CHECK_FALSE(oldest.latency.l1.known);
  CHECK(oldest.latency.dram.known);
  CHECK(oldest.issue_rate.guess);
  CHECK(oldest.issue_rate.value == 0.25);
  CHECK(oldest.occupancy.register_unit == RegisterUnit::block);
}

} // namespace ptxrewrite::tests::machine_test
