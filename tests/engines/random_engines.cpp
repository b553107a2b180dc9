// Random kernels, interpreted and as generated code: the same memory, counters, failures and texts.
//
//   random_engines [--count N] [--first SEED] [--kind NAME] [--llvm-every N] [--show] [--verbose]
//
// A kernel is launched as it was made, and again so that it goes wrong: with buffers that end early, with buffers that
// begin off their alignment, with little fuel, with blocks in other shapes. Kinds take turns. Each launch is made twice
// on one program: the second finds the code of the first; code is quick, and all of it full. The interpreter's accesses
// are compared with those that look at each lane, too, and some kernels run with code that a thread makes meanwhile
// (auto). LLVM takes nine tenths of the time: --llvm-every 20 gives its code to every twentieth kernel of a kind only,
// and quick code to all. Exit code 77: there is no LLVM.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/engine_run.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_print.h"
#include "tests/fuzz/random.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

struct Kind {
  const char* name;
  fuzz::Knobs knobs;
};

fuzz::Knobs small_kernels() {
  fuzz::Knobs knobs;
  knobs.statements = 12;
  knobs.approximate = 0.3;
  return knobs;
}

fuzz::Knobs partial_warps() {
  fuzz::Knobs knobs;
  knobs.statements = 16;
  knobs.partial_warps = 1;
  knobs.guard = 0.5;
  knobs.early_exit = 0.6;
  return knobs;
}

fuzz::Knobs own_addresses() {
  fuzz::Knobs knobs;
  knobs.statements = 16;
  knobs.own_addresses = 0.7;
  knobs.weights["local access"] = 20;
  return knobs;
}

std::vector<Kind> kinds() {
  return {{"small", small_kernels()},        {"usual", {}},
          {"partial", partial_warps()},      {"indices", fuzz::index_knobs()},
          {"streams", fuzz::stream_knobs()}, {"integers", fuzz::integer_knobs()},
          {"loops", fuzz::loop_knobs()},     {"own", own_addresses()}};
}

// Changes to a launch that make it fail.
enum class Harm : uint8_t { none, short_buffers, shifted_buffers, little_fuel, other_block };
constexpr Harm harms[] = {Harm::none, Harm::short_buffers, Harm::shifted_buffers, Harm::little_fuel, Harm::other_block};
constexpr const char* harm_names[] = {"as made", "short buffers", "shifted buffers", "little fuel", "other block"};

void harm_request(Harm harm, fuzz::Random& random, emulator::LaunchRequest& request) {
  if (harm == Harm::little_fuel) request.fuel = 1 + random.below(400);
  if (harm != Harm::other_block) return;
  const auto threads = static_cast<uint32_t>(request.block.count());
  request.block = random.one_in(2) ? emulator::Dimensions{threads} : emulator::Dimensions{1, threads};
  if (random.one_in(2) && threads > 40) request.block.x = threads - 1 - static_cast<uint32_t>(random.below(33));
}

EngineRun launch(const ir::Module& module, const fuzz::Kernel& kernel, const fuzz::Shape& shape, Harm harm,
                 const emulator::EngineSetting& engine, bool lane_by_lane = false) {
  EngineRun run;
  fuzz::Random random(kernel.seed * 7 + static_cast<uint64_t>(harm));
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(module, memory);
  if (!program) {
    run.refused = program.error().message;
    return run;
  }
  std::vector<uint64_t> addresses, places;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    std::vector<uint8_t> contents = kernel.buffer_contents(i, shape);
    if (harm == Harm::short_buffers && contents.size() > 64) contents.resize(contents.size() - 1 - random.below(64));
    auto address = memory.allocate(contents.size(), kernel.buffers[i].name);
    if (!address || !memory.write(*address, std::as_bytes(std::span(contents)))) return run;
    run.memory.emplace_back(contents.size());
    places.push_back(*address);
    addresses.push_back(*address + (harm == Harm::shifted_buffers && random.one_in(2) ? 1 + random.below(15) : 0));
  }
  const std::vector<uint8_t> parameters = kernel.parameter_block(shape, addresses);
  emulator::LaunchRequest request;
  request.kernel = kernel.name;
  request.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
  request.block = {shape.block[0], shape.block[1], shape.block[2]};
  request.shared_bytes = kernel.dynamic_shared_size();
  request.parameters.resize(parameters.size());
  std::memcpy(request.parameters.data(), parameters.data(), parameters.size());
  request.host_threads = 1;
  request.fuel = 2'000'000;
  request.count_memory = lane_by_lane; // accesses take the way that looks at each lane
  request.machines.set(engine);
  harm_request(harm, random, request);
  const UsesEngine counted(emulator::default_engine());
  for (int round = 0; round < 2; ++round)
    take_result((*program)->launch(request), run);
  run.generated = counted.generated() / 2; // the counters are those of the second launch
  for (size_t i = 0; i < places.size(); ++i)
    (void)memory.read(places[i], run.memory[i]);
  return run;
}

struct Options {
  uint64_t first = 1, count = 60, llvm_every = 1;
  std::string kind;
  bool show = false;
};

void test_kernel(const Kind& kind, uint64_t seed, bool show, bool by_llvm, EngineTally& tally) {
  const fuzz::Kernel kernel = fuzz::generate_kernel(seed, kind.knobs);
  const std::string text = fuzz::print_module(kernel);
  if (show) std::fputs(text.c_str(), stdout);
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("kernel.ptx", text), diagnostics);
  if (!module) return;
  ++tally.kernels;
  // Every kernel as it was made in one of its shapes, and with one harm.
  const fuzz::Shape& shape = kernel.shapes[seed % kernel.shapes.size()];
  for (const Harm harm : {Harm::none, harms[1 + seed % 4]}) {
    const EngineRun interpreted = launch(*module, kernel, shape, harm, {emulator::Engine::interpreter});
    const EngineRun generated = launch(*module, kernel, shape, harm, {emulator::Engine::generated});
    const std::string name = "kind " + std::string(kind.name) + ", seed " + std::to_string(seed) + ", " +
                             harm_names[static_cast<size_t>(harm)];
    tally.add(name, interpreted, generated);
    const auto compare = [&](const char* what, const EngineRun& run) {
      const std::string wrong = difference(interpreted, run);
      if (wrong.empty()) return;
      std::printf("%s, %s: %s\n", name.c_str(), what, wrong.c_str());
      ++tally.differences;
    };
    compare("lane by lane", launch(*module, kernel, shape, harm, {emulator::Engine::interpreter}, true));
    if (!by_llvm) continue;
    compare("full code",
            launch(*module, kernel, shape, harm, {emulator::Engine::generated, {}, emulator::CodeTier::full}));
    if (seed % 4 == 2)
      compare("quick code by LLVM",
              launch(*module, kernel, shape, harm, {emulator::Engine::generated, {}, emulator::CodeTier::quick, true}));
    // Code comes from another thread, at any moment.
    if (seed % 4 == 0) compare("auto", launch(*module, kernel, shape, harm, {emulator::Engine::automatic, 40}));
  }
}

bool parse(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const char* next = i + 1 < count ? arguments[i + 1] : nullptr;
    if (word == "--show") {
      options.show = true;
    } else if (word == "--verbose") {
      start_logging("debug");
    } else if (!next) {
      return false;
    } else if (word == "--count") {
      options.count = std::strtoull(arguments[++i], nullptr, 10);
    } else if (word == "--first") {
      options.first = std::strtoull(arguments[++i], nullptr, 10);
    } else if (word == "--llvm-every") {
      options.llvm_every = std::max<uint64_t>(1, std::strtoull(arguments[++i], nullptr, 10));
    } else if (word == "--kind") {
      options.kind = arguments[++i];
    } else {
      return false;
    }
  }
  return true;
}

int run(const Options& options) {
  if (!has_generator()) return 77;
  EngineTally tally;
  const std::vector<Kind> all = kinds();
  for (uint64_t seed = options.first; seed < options.first + options.count; ++seed)
    for (size_t i = 0; i < all.size(); ++i)
      if (options.kind.empty() ? seed % all.size() == i : options.kind == all[i].name)
        test_kernel(all[i], seed, options.show, seed / all.size() % options.llvm_every == 0, tally);
  return tally.finish("random kernels");
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  ptxrewrite::test::Options options;
  if (!ptxrewrite::test::parse(count, arguments, options)) {
    std::fprintf(stderr, "random_engines: wrong option; the head of random_engines.cpp lists them\n");
    return 2;
  }
  return ptxrewrite::test::run(options);
}
