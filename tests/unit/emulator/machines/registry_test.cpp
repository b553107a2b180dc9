// The papers' machines are found by name, exclude each other if they cannot share a launch, and find their own settings
// and results in the core's data.
#include "emulator/core/machine.h"
#include "emulator/core/observer.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/machines/regless/staging_counters.h"
#include "tests/unit/emulator/run_ptx.h"

#include <set>

namespace ptxrewrite::tests::registry_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

TEST_CASE("machines: each of the papers and that of clusters is registered under a name of its own") {
  std::set<std::string_view> names;
  for (const MachineModel* machine : machines()) {
    CHECK(names.insert(machine->name()).second);
    CHECK(find_machine(machine->name()) == machine);
  }
  CHECK(names == std::set<std::string_view>{"cluster", "composite", "dac", "darsie", "r2d2", "regless"});
  CHECK_FALSE(find_machine("none"));
}

TEST_CASE("machines: a launch runs on one of them, and observers only on those that allow it") {
  const std::string text = kernel("k", "", "ret;");
  LaunchRequest request{.kernel = "k"};
  request.machines = {SkipSettings{}, StagingSettings{}};
  CHECK(run_ptx(text, request).error == "DARSIE's machine runs without other machines");
  Observer observer;
  request.observer = &observer;
  request.machines = SkipSettings{};
  CHECK(run_ptx(text, request).error == "DARSIE's machine runs without observers");
  request.machines = StagingSettings{};
  CHECK(run_ptx(text, request).error == "RegLess's machine runs without observers");
  request.machines = {};
  CHECK(run_ptx(text, request).ok());
}

TEST_CASE("machine data: one value of each type, by its type") {
  MachineData data{SkipSettings{.order_seed = 7}, StagingSettings{.entries = 9}};
  CHECK(data.get<SkipSettings>().order_seed == 7);
  CHECK(data.get<StagingSettings>().entries == 9);
  CHECK_FALSE(data.find<SkipCounters>());
  CHECK(data.get<SkipCounters>().executed == 0);
  data.set(SkipSettings{.order_seed = 8}).check = true;
  CHECK(data.get<SkipSettings>().order_seed == 8);
  CHECK(data.get<SkipSettings>().check);
  MachineData copy = data;
  copy.erase<SkipSettings>();
  CHECK_FALSE(copy.find<SkipSettings>());
  CHECK(data.find<SkipSettings>());
}

} // namespace ptxrewrite::tests::registry_test
