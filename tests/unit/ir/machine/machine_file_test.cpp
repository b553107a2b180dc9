// Machine files: written machines are read back unchanged, missing fields are taken from the base, and errors are
// reported with their position.
#include "ir/machine/figures/machine_fields.h"
#include "ir/machine/files/machine_file.h"

#include <doctest/doctest.h>

#include <bit>
#include <set>

namespace ptxrewrite::tests::machine_file_test {

using namespace ptxrewrite;

namespace {

struct Reading {
  explicit Reading(const std::string& text) : source("mine.toml", text) {
    file = ir::read_machine_file(source, diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.list())
      messages += render(diagnostic, source);
  }
  bool says(std::string_view what) const { return messages.find(what) != std::string::npos; }

  SourceFile source;
  Diagnostics diagnostics;
  std::unique_ptr<ir::MachineFile> file;
  std::string messages;
};

// Compares the members of two machines bit by bit, independently of the table of fields.
void check_same(const ir::Machine& a, const ir::Machine& b) {
  CHECK(a.name == b.name);
  CHECK(a.chip == b.chip);
  CHECK(a.compute_capability == b.compute_capability);
  CHECK(a.sms == b.sms);
  CHECK(a.clock_mhz == b.clock_mhz);
  CHECK(a.schedulers == b.schedulers);
  CHECK(a.uniform_datapath == b.uniform_datapath);
  const ir::OccupancyFacts &x = a.occupancy, &y = b.occupancy;
  CHECK(x.max_warps == y.max_warps);
  CHECK(x.max_blocks == y.max_blocks);
  CHECK(x.max_threads_per_block == y.max_threads_per_block);
  CHECK(x.registers == y.registers);
  CHECK(x.register_unit == y.register_unit);
  CHECK(x.register_granularity == y.register_granularity);
  CHECK(x.warp_granularity == y.warp_granularity);
  CHECK(x.max_registers_per_thread == y.max_registers_per_thread);
  CHECK(x.shared_bytes == y.shared_bytes);
  CHECK(x.max_shared_bytes_per_block == y.max_shared_bytes_per_block);
  CHECK(x.shared_granularity == y.shared_granularity);
  CHECK(x.shared_reserved == y.shared_reserved);
  // Groups that consist of figures only.
  auto check_figures = [](const auto& one, const auto& other) {
    static_assert(sizeof one % sizeof(ir::Figure) == 0);
    const auto* p = reinterpret_cast<const ir::Figure*>(&one);
    const auto* q = reinterpret_cast<const ir::Figure*>(&other);
    for (size_t i = 0; i < sizeof one / sizeof(ir::Figure); ++i) {
      CHECK(p[i].known == q[i].known);
      CHECK(p[i].guess == q[i].guess);
      CHECK(std::bit_cast<uint64_t>(p[i].value) == std::bit_cast<uint64_t>(q[i].value));
    }
  };
  check_figures(a.issue_rate, b.issue_rate);
  check_figures(a.memory, b.memory);
  check_figures(a.fetch, b.fetch);
  check_figures(a.throughput, b.throughput);
  check_figures(a.latency, b.latency);
  check_figures(a.launch, b.launch);
}

} // namespace

TEST_CASE("the fields are all members of a machine, each once") {
  // Every figure gets a different value; so all members differ from one another.
  ir::Machine machine;
  std::set<std::string_view> names;
  for (const ir::MachineField& field : ir::machine_fields()) {
    CHECK(names.insert(field.name).second);
    CHECK(ir::find_machine_field(field.section, field.key) == &field);
  }
  constexpr size_t figures = 1 + (sizeof(ir::MemoryFacts) + sizeof(ir::FetchFacts) + sizeof(ir::ThroughputFacts) +
                                  sizeof(ir::LatencyFacts) + sizeof(ir::LaunchFacts)) /
                                     sizeof(ir::Figure);
  constexpr size_t others = 5 + 12; // of Machine and of OccupancyFacts
  CHECK(names.size() == figures + others);
  double value = 1;
  for (const ir::MachineField& field : ir::machine_fields())
    if (field.kind != ir::FieldKind::flag && field.kind != ir::FieldKind::register_unit)
      field.write(machine, ir::Figure(value++));
  std::set<double> seen;
  for (const ir::MachineField& field : ir::machine_fields())
    if (field.kind != ir::FieldKind::flag && field.kind != ir::FieldKind::register_unit)
      CHECK(seen.insert(field.read(machine).value).second);
}

TEST_CASE("what is written reads back as the same machine") {
  for (const ir::Machine& machine : ir::all_machines())
    for (bool remarks : {true, false}) {
      CAPTURE(machine.name);
      const Reading reading(ir::machine_toml(machine, nullptr, remarks));
      REQUIRE_MESSAGE(reading.file, reading.messages);
      CHECK(reading.file->said == ir::machine_fields().size());
      check_same(reading.file->machine, machine);
      CHECK(ir::contradiction(machine) == "");
    }
}

TEST_CASE("numbers and names that are hard to write survive") {
  ir::Machine machine = *ir::find_machine("h200");
  machine.name = "a \"machine\" \\ \t of mine";
  machine.latency.dram = ir::Figure(1.0 / 3 * 2000, true);
  machine.throughput.convert64 = ir::Figure();
  machine.memory.l2_bytes_per_clock = ir::Figure(0.1 + 0.2);
  const Reading reading(ir::machine_toml(machine));
  REQUIRE_MESSAGE(reading.file, reading.messages);
  check_same(reading.file->machine, machine);
}

TEST_CASE("a set of energies comes along") {
  ir::EnergySet set;
  set.pj[static_cast<size_t>(ir::EnergyEvent::fp32)] = 1.25;
  set.pj[static_cast<size_t>(ir::EnergyEvent::dram_read)] = 2000;
  set.static_watt = 70.5;
  const Reading reading(ir::machine_toml(*ir::find_machine("a100"), &set));
  REQUIRE_MESSAGE(reading.file, reading.messages);
  REQUIRE(reading.file->energy);
  CHECK(reading.file->energy->pj == set.pj);
  CHECK(reading.file->energy->static_watt == 70.5);
  CHECK(reading.file->energy->name == "A100");
  CHECK_FALSE(Reading(ir::machine_toml(*ir::find_machine("a100"))).file->energy);
}

TEST_CASE("a base stands for what is not said") {
  const Reading reading("base = \"titan v\"\n[latency]\ndram = \"500?\"\nl1 = 28\n[throughput]\nshuffle = \"none\"\n");
  REQUIRE_MESSAGE(reading.file, reading.messages);
  const ir::Machine& machine = reading.file->machine;
  ir::Machine expected = *ir::find_machine("titanv");
  expected.name = "mine"; // the file's
  expected.latency.dram = ir::Figure(500, true);
  expected.latency.l1 = ir::Figure(28);
  expected.throughput.shuffle = ir::Figure();
  check_same(machine, expected);
  CHECK(reading.file->said == 3);
}

TEST_CASE("what is wrong is told with its place") {
  struct Case {
    const char *text, *place, *message;
  };
  const Case cases[] = {
      {"base = \"h300\"\n", "mine.toml:1:8", "unknown machine 'h300'; did you mean 'h100'? There are h100, h200"},
      {"base = 200\n", "mine.toml:1:8", "expected the name of a machine, found an integer"},
      {"base = \"h200\"\n[latency]\ndrm = 5\n", "mine.toml:3:1",
       "'drm' is no figure of a machine; did you mean 'dram'"},
      {"base = \"h200\"\n[latencies]\n", "mine.toml:2:2", "did you mean 'latency'"},
      {"base = \"h200\"\n[memory]\nsms = 5\n", "mine.toml:3:1", "it belongs elsewhere: sms"},
      {"base = \"h200\"\nlatency = 5\n", "mine.toml:2:11", "latency: expected a table, found an integer"},
      {"base = \"h200\"\nsms = 0\n", "mine.toml:2:7", "sms: expected a whole number from 1 to 4096, found 0"},
      {"base = \"h200\"\nsms = 13.5\n", "mine.toml:2:7", "found a decimal number"},
      {"base = \"h200\"\nsms = \"132?\"\n", "mine.toml:2:7", "found \"132?\""},
      {"base = \"h200\"\n[latency]\ndram = -3\n", "mine.toml:3:8", "(clocks), or a guess like"},
      {"base = \"h200\"\n[latency]\ndram = nan\n", "mine.toml:3:8", "found nan"},
      {"base = \"h200\"\n[latency]\ndram = 1e-300\n", "mine.toml:3:8", "found 1e-300"},
      {"base = \"h200\"\n[latency]\ndram = 1e300\n", "mine.toml:3:8", "found 1e+300"},
      {"base = \"h200\"\ncompute_capability = \"99999999999.0\"\n", "mine.toml:2:22", "found 99999999999"},
      {"base = \"h200\"\n[latency]\ndram = \"fast\"\n", "mine.toml:3:8", "found \"fast\""},
      {"base = \"h200\"\n[latency]\ndram = \"none\"\n", "mine.toml:3:8", "found \"none\""},
      {"base = \"h200\"\n[latency]\ndram = \"?\"\n", "mine.toml:3:8", "found \"?\""},
      {"base = \"h200\"\ncompute_capability = 9.0\n", "mine.toml:2:22", "expected a string like \"9.0\""},
      {"base = \"h200\"\ncompute_capability = \"9\"\n", "mine.toml:2:22", "expected a string like \"9.0\""},
      {"base = \"h200\"\nuniform_datapath = 1\n", "mine.toml:2:20", "expected true or false"},
      {"base = \"h200\"\n[occupancy]\nregister_unit = \"lane\"\n", "mine.toml:3:17", "expected \"block\" or \"warp\""},
      {"base = \"h200\"\nname = \"\"\n", "mine.toml:2:8", "expected a string that is not empty"},
      {"sms = \n", "mine.toml:1:", "TOML: "},
      {"sms = 4\n", "mine.toml", "[latency]: missing: integer, integer_multiply_add"},
      {"sms = 4\n[launch]\nconstant = 5\n", "mine.toml:2:1", "[launch]: missing: per_block; say it or a base"},
      {"base = \"h200\"\n[memory]\ndram_gb_per_second = 100\n", "mine.toml",
       "achieved_dram_gb_per_second is more than"},
      {"base = \"h200\"\n[energy]\nfp23 = 1\n", "mine.toml:3:1", "'fp23' is no event; did you mean 'fp32'"},
      {"base = \"h200\"\n[energy]\nfp32 = -1\n", "mine.toml:3:8", "energy.fp32: expected a number from 0 to 1e12 (pJ)"},
      {"base = \"h200\"\nenergy = 1\n", "mine.toml:2:10", "energy: expected a table, found an integer"},
      {"base = \"h200\"\n[latency]\nl2 = 20\n", "mine.toml", "do not grow"},
      {"base = \"h200\"\n[occupancy]\nshared_bytes = 20\n", "mine.toml", "max_shared_bytes_per_block is more than"},
  };
  for (const Case& wrong : cases) {
    const Reading reading(wrong.text);
    CAPTURE(wrong.text);
    CAPTURE(reading.messages);
    CHECK_FALSE(reading.file);
    CHECK(reading.says(wrong.place));
    CHECK(reading.says(wrong.message));
  }
}

TEST_CASE("paths are told from names") {
  CHECK(ir::is_machine_path("mine.toml"));
  CHECK(ir::is_machine_path("./mine"));
  CHECK_FALSE(ir::is_machine_path("h200"));
  CHECK_FALSE(ir::is_machine_path("sm_90"));
}

} // namespace ptxrewrite::tests::machine_file_test
