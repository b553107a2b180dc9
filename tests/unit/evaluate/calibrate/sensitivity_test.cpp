// --sensitivity names the guesses that change a ranking, on machines of the table and of users: versions with hand-made
// times.
#include "evaluate/score/score_energy.h"
#include "ir/machine/files/machine_file.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace ptxrewrite::tests::sensitivity_test {

using namespace ptxrewrite;
using namespace ptxrewrite::evaluate;

namespace {

// Two guesses: a latency and a throughput.
std::unique_ptr<ir::MachineFile> two_guesses() {
  Diagnostics diagnostics;
  std::unique_ptr<ir::MachineFile> file = ir::read_machine_file(
      SourceFile("mine.toml", "base = \"titanv\"\n[memory]\nl2_slices = 24\noutstanding_misses = "
                              "256\n[fetch]\nbytes_per_clock = 32\n[latency]\nl2 "
                              "= \"215?\"\nconstant = 27\nmatrix = 20\n"
                              "[throughput]\nfp32 = \"64?\"\nconvert8 = 64\nbit_field_extract = 32\n"
                              "[launch]\nconstant = 2100\nper_block = 1\n"),
      diagnostics);
  REQUIRE(file);
  return file;
}

ScoredVersion version(const std::string& name, double clocks, std::vector<double> clocks_if) {
  ScoredVersion made;
  made.name = name;
  ScoredKernel kernel;
  kernel.kernel = "k";
  kernel.clocks = clocks;
  kernel.clocks_if = std::move(clocks_if);
  made.kernels.push_back(std::move(kernel));
  return made;
}

} // namespace

TEST_CASE("the guess that turns a ranking is named, with the versions that change places") {
  const std::unique_ptr<ir::MachineFile> file = two_guesses();
  ScoredFile scored;
  scored.machine = &file->machine;
  // Guesses in the order of the fields: throughput.fp32, then latency.l2; each with -30 %, then +30 %.
  scored.versions.push_back(version("baseline", 100, {100, 100, 80, 120}));
  scored.versions.push_back(version("r2d2", 90, {90, 90, 85, 95}));
  scored.versions.push_back(version("dac", 95, {89, 96, 84, 100}));
  const nlohmann::ordered_json rows = sensitivity_json(scored, "k");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["figure"] == "throughput.fp32");
  CHECK(rows[0]["order_stays"] == false);
  REQUIRE(rows[0]["turns"].size() == 1);
  CHECK(rows[0]["turns"][0]["at"] == -0.3);
  CHECK(rows[0]["turns"][0]["faster"] == "dac");
  CHECK(rows[0]["turns"][0]["slower"] == "r2d2");
  CHECK(rows[1]["figure"] == "latency.l2");
  CHECK(rows[1]["value"] == 215);
  CHECK(rows[1]["turns"].size() == 3); // all three pairs at -30 %, none at +30 %
  CHECK(rows[1]["clocks_percent_at_less"] == doctest::Approx(-20));
  const std::string text = sensitivity_text(scored, "k");
  CHECK(text.find("at -30 %: dac before r2d2\n") != std::string::npos);
  CHECK(text.find("at -30 %: baseline before r2d2; at -30 %: baseline before dac; at -30 %: dac before r2d2\n") !=
        std::string::npos);
}

TEST_CASE("versions that take as long do not change places by rounding") {
  const std::unique_ptr<ir::MachineFile> file = two_guesses();
  ScoredFile scored;
  scored.machine = &file->machine;
  scored.versions.push_back(version("baseline", 100, {100, 100, 80, 120}));
  scored.versions.push_back(version("same", 100 + 1e-9, {100 - 1e-9, 100, 80, 120 - 1e-9}));
  for (const auto& row : sensitivity_json(scored, "k"))
    CHECK(row["order_stays"] == true);
}

TEST_CASE("every guess of a machine is tried at both margins") {
  const std::unique_ptr<ir::MachineFile> file = two_guesses();
  const std::vector<timing::TimedMachine> changed = changed_machines(file->machine);
  REQUIRE(changed.size() == 4);
  CHECK(changed[0].machine.throughput.fp32.value == doctest::Approx(0.7 * 64));
  CHECK(changed[1].machine.throughput.fp32.value == doctest::Approx(1.3 * 64));
  CHECK(changed[2].machine.latency.l2.value == doctest::Approx(0.7 * 215));
  CHECK(changed[3].machine.latency.l2.value == doctest::Approx(1.3 * 215));
  CHECK(changed[3].machine.throughput.fp32.value == 64);
  for (const ir::Machine& machine : ir::all_machines()) {
    CAPTURE(machine.name);
    CHECK(changed_machines(machine).size() == 2 * timing::guesses_of(machine).size());
    CHECK(timing::guesses_of(machine).size() >= 6);
  }
}

} // namespace ptxrewrite::tests::sensitivity_test
