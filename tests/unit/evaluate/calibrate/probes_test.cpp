// Probes compute the intended chains: the end of every chain on the emulator against the same chain on the host, and
// the presence of every link in ptxas' code.
#include "evaluate/calibrate/probe_runs.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

namespace ptxrewrite::tests::probes_test {

using namespace ptxrewrite;
using namespace ptxrewrite::cuda;
using namespace ptxrewrite::evaluate;

namespace {

struct Numbers {
  uint32_t a, b, c, d;
};

uint32_t majority(uint32_t x, uint32_t y, uint32_t z) {
  return (x & y) | (y & z) | (x & z);
}
uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

// One link on the host, by the name of the figure. Values of floating-point chains are bits.
uint64_t link(const std::string& figure, bool odd, uint64_t bits64, const Numbers& n) {
  const auto x = static_cast<uint32_t>(bits64);
  const auto fa = static_cast<float>(n.a), fb = static_cast<float>(n.b);
  if (figure == "integer" || figure == "integer_add" || figure == "barrier") return odd ? x ^ n.b : x + n.a;
  if (figure == "integer_multiply_add") return odd ? x * n.c + n.d : x * n.a + n.b;
  if (figure == "fp32")
    return bits(odd ? std::fma(std::bit_cast<float>(x), fb, fa) : std::fma(std::bit_cast<float>(x), fa, fb));
  if (figure == "fp64") {
    const auto value = std::bit_cast<double>(bits64);
    return std::bit_cast<uint64_t>(odd ? std::fma(value, double(n.b), double(n.a))
                                       : std::fma(value, double(n.a), double(n.b)));
  }
  if (figure == "special_function") return bits(1 / std::sqrt(std::bit_cast<float>(x)));
  if (figure == "shift") return odd ? x >> n.b : x << n.a;
  if (figure == "logic") return odd ? majority(x, n.c, n.d) : majority(x, n.a, n.b);
  if (figure == "compare") return odd ? (x > n.c ? n.d : x) : (x < n.a ? n.b : x);
  if (figure == "convert32") return bits(odd ? static_cast<float>(static_cast<int32_t>(x)) : static_cast<float>(x));
  if (figure == "convert8")
    return bits(odd ? static_cast<float>(static_cast<int8_t>(x)) : static_cast<float>(static_cast<uint8_t>(x)));
  if (figure == "population_count") return static_cast<uint32_t>(std::popcount(x));
  if (figure == "bit_field_extract") {
    // The n.d bits from n.a up, or the n.c bits from n.b up, whose top bit is the sign.
    const uint32_t field = (odd ? x >> n.b : x >> n.a) & ((1u << (odd ? n.c : n.d)) - 1);
    const bool negative = odd && (field >> (n.c - 1) & 1);
    return negative ? field | ~((1u << n.c) - 1) : field;
  }
  // There and back.
  if (figure != "convert64" && figure != "shuffle" && figure != "matrix") return UINT64_MAX; // not a chain's result
  return x;
}

uint64_t first_value(const std::string& figure, uint32_t number) {
  if (figure == "fp32" || figure == "special_function") return bits(static_cast<float>(number));
  if (figure == "fp64") return std::bit_cast<uint64_t>(static_cast<double>(number));
  return number;
}

uint64_t chain_result(const Probe& probe, uint32_t thread, uint32_t trips) {
  const std::string figure = probe.figure.substr(probe.figure.find('.') + 1);
  const Numbers n{probe.numbers[0], probe.numbers[1], probe.numbers[2], probe.numbers[3]};
  uint64_t sum = 0;
  for (uint32_t chain = 0; chain < probe.links / chain_links; ++chain) {
    uint64_t x = first_value(figure, thread + chain + 1);
    for (uint64_t i = 0; i < uint64_t(trips) * chain_links; ++i)
      x = link(figure, i % 2, x, n);
    sum += x;
  }
  return sum;
}

uint64_t shared_result(const Probe& probe, uint32_t thread) {
  uint64_t sum = 0;
  for (uint32_t chain = 0; chain < probe.links / chain_links; ++chain)
    sum += (thread % 32 * probe.numbers[0] + chain * 32) % 1024 * 4;
  return sum;
}

// Follows the addresses in `in`, starting at offset 0.
uint64_t chase_result(const Probe& probe, const std::vector<std::byte>& memory, uint32_t thread, uint32_t trips,
                      uint32_t start) {
  uint64_t at = uint64_t(thread * probe.numbers[1] + start) * probe.stride;
  for (uint64_t i = 0; i < uint64_t(trips) * chase_links; ++i) {
    if (at + 8 > memory.size()) return UINT64_MAX;
    std::memcpy(&at, &memory[at], 8);
  }
  return at;
}

uint64_t stream_result(const Probe& probe, uint32_t thread, uint32_t trips) {
  uint32_t at = thread, mixed = 0;
  for (uint32_t i = 0; i < trips * probe.links; ++i, at += probe.numbers[0])
    mixed ^= at & probe.numbers[1];
  return mixed;
}

bool is_shared(const Probe& probe) {
  return probe.name.starts_with("shared_") || probe.figure == "latency.shared" ||
         probe.figure == "throughput.load_store";
}

constexpr ProbeScale small{.sms = 4, .l2_bytes = 1 << 18, .length = 0.02, .tensor_cores = true};

// Machine instructions by kernel, of the whole module.
std::map<std::string, uint32_t> machine_instructions(const std::string& text, const std::string& target) {
  const Result<ir::FiguresByFunction> figures = ir::machine_figures(text, target);
  REQUIRE_MESSAGE(figures, figures.error().message);
  std::map<std::string, uint32_t> counts;
  for (const auto& [name, figure] : *figures)
    counts[name] = figure.instructions;
  return counts;
}

std::map<std::string, uint32_t> estimated_instructions(const ir::Module& module, uint32_t capability) {
  std::map<std::string, uint32_t> counts;
  for (const auto& function : module.functions) {
    ir::Function copy(*function);
    REQUIRE(ir::construct_ssa(copy));
    counts[std::string(module.text(function->name))] = ir::lower(copy, capability).static_instructions();
  }
  return counts;
}

} // namespace

TEST_CASE("every probe ends where the host ends") {
  const std::unique_ptr<ir::Module> module = read_probe_module(1, true);
  REQUIRE(module);
  std::unique_ptr<Device> device = make_emulator_device();
  REQUIRE(device->load(*module));
  for (const Probe& probe : probes(small)) {
    CAPTURE(probe.name);
    auto on_device = ProbeOnDevice::make(*device, probe);
    REQUIRE(on_device);
    const std::vector<std::byte> memory = probe_memory(probe, 0);
    uint64_t end_before = 0;
    for (bool long_one : {false, true}) {
      REQUIRE((*on_device)->launch(long_one));
      const Result<std::vector<uint64_t>> results = (*on_device)->results();
      REQUIRE(results);
      const uint32_t trips = long_one ? probe.long_trips : std::max(probe.short_trips, 1u);
      const auto threads = static_cast<uint32_t>(probe.grid_of(long_one).count() * probe.block.count());
      CHECK(results->size() >= threads);
      size_t wrong = 0;
      for (uint32_t thread = 0; thread<threads; thread += threads> 2000 ? 37 : 1) {
        const uint64_t found = (*results)[thread];
        if (probe.name.starts_with("launch_"))
          wrong += found != 0; // an empty kernel
        else if (is_shared(probe))
          wrong += found != shared_result(probe, thread);
        else if (probe.figure == "latency.constant")
          wrong += found != uint64_t(trips) * chase_links * 8 % 4096;
        else if (probe.memory == ProbeMemory::random_ring)
          wrong += found != chase_result(probe, memory, thread, trips,
                                         static_cast<uint32_t>(probe.fresh ? end_before / probe.stride : 0));
        else if (probe.memory == ProbeMemory::numbers)
          wrong += found != stream_result(probe, thread, trips);
        else if (probe.figure.ends_with("special_function")) // within a few units in the last place of 1 per chain
          wrong += std::abs(static_cast<double>(found) - static_cast<double>(chain_result(probe, thread, trips))) > 32;
        else
          wrong += found != chain_result(probe, thread, trips);
      }
      CHECK(wrong == 0);
      end_before = results->front();
    }
  }
}

TEST_CASE("a random ring is one cycle over all nodes") {
  Probe probe;
  probe.memory = ProbeMemory::random_ring;
  probe.memory_bytes = 64 * 1000;
  probe.stride = 64;
  const std::vector<std::byte> memory = probe_memory(probe, 0);
  uint64_t at = 0;
  for (int steps = 1; steps <= 1000; ++steps) {
    std::memcpy(&at, &memory[at], 8);
    CHECK((at == 0) == (steps == 1000));
  }
}

TEST_CASE("ptxas leaves every link in place") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  // Machine instructions of a link, by figure; 1 by default.
  const std::map<std::string, unsigned> by_link = {
      {"throughput.compare", 2}, {"throughput.barrier", 2}, {"throughput.bit_field_extract", 4}};
  const auto estimated_once = estimated_instructions(*read_probe_module(1, true), 90),
             estimated_twice = estimated_instructions(*read_probe_module(2, true), 90);
  const std::vector<Probe> all = probes(small);
  for (const char* target : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(target);
    const bool tensor_cores = std::string_view(target) != "sm_75";
    auto one = machine_instructions(probe_module_text(1, tensor_cores), target),
         two = machine_instructions(probe_module_text(2, tensor_cores), target);
    for (const Probe& probe : all) {
      if (probe.links == 0 || probe.memory == ProbeMemory::numbers) continue;
      if (probe.figure.ends_with(".matrix") && !tensor_cores) continue;
      CAPTURE(probe.name);
      REQUIRE(one.contains(probe.name));
      const auto expected = by_link.find(probe.figure);
      const double least = expected == by_link.end() ? 1 : expected->second;
      const double of_link = (double(two[probe.name]) - double(one[probe.name])) / probe.links;
      const double estimated =
          (double(estimated_twice.at(probe.name)) - double(estimated_once.at(probe.name))) / probe.links;
      CAPTURE(of_link);
      CHECK(of_link >= 0.93 * least); // the first link of a loop may be merged with its header
      // Double precision has no unit of its own on consumer GPUs.
      const bool doubles = probe.figure.ends_with("fp64") || probe.figure == "throughput.convert64";
      const bool slow_doubles = std::string_view(target) == "sm_120" && doubles;
      // There are one or two empty slots between a matrix product and the next one that needs its sum.
      const bool spaced = probe.figure.ends_with(".matrix");
      CHECK(of_link <= (slow_doubles ? 6 : spaced ? 3 : 1.1 * least));
      // The timing model's view of a link: the same, except one more instruction per bit field.
      const double more = probe.figure == "throughput.bit_field_extract" ? 1 : 0;
      if (std::string_view(target) == "sm_90" && !spaced) CHECK(std::abs(of_link - (estimated - more)) <= 0.1 * least);
    }
  }
}

} // namespace ptxrewrite::tests::probes_test
