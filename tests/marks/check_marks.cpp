// DARSIE's marks against execution: marked results that warps of a block did not share, and the marked part of those
// that they did share.
//
//   check_marks [--given-shapes] LAUNCH_FILE...   smallest size, in the shapes of the launch file and in those derived
//                                                 from them in which check mode finds nothing
//   check_marks --kernels N [--first S]           random kernels
//   ... --each                                    also a line for each file
//   ... --missed                                  the most frequent repetitions without a mark
//   ... --spoil                                   all results count as marked: then there must be contradictions
//
// Exit code 1 if a mark is contradicted, or if almost nothing was compared.
#include "emulator/observe/mark_check.h"
#include "evaluate/launches/launch_input.h"
#include "ir/core/print.h"
#include "launch/shapes.h"
#include "tests/fuzz/kernels/differential.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_print.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

namespace {

using namespace ptxrewrite;
using emulator::MarkCheck;

constexpr uint64_t fuel = 3'000'000; // warp instructions per block, for shapes that a kernel does not support
constexpr size_t kinds = 3;

struct Options {
  bool spoil = false;
  bool given_shapes = false;
  bool each = false;
  bool missed = false;
};

struct Tally {
  uint64_t launches = 0, left_out = 0; // shapes in which the kernel faults or races
  uint64_t executions = 0, marked = 0; // by whole warps, of instructions with a result
  std::array<uint64_t, kinds> repeated{}, repeated_marked{};
  uint64_t contradictions = 0;
  std::map<std::string, uint64_t> missed; // repeated without a mark, by kernel and instruction

  // For a launch with one block shape: rows have the promotion of the last one.
  void add(const MarkCheck& check) {
    for (const emulator::MarkRow& row : check.rows()) {
      const bool is_marked = row.promoted.is_definite();
      executions += row.executions;
      if (is_marked) marked += row.executions;
      for (size_t kind = 0; kind < kinds; ++kind) {
        repeated[kind] += row.repeated_by_kind[kind];
        if (is_marked) repeated_marked[kind] += row.repeated_by_kind[kind];
      }
      if (!is_marked && row.repeated != 0)
        missed[std::string(row.function->module().text(row.function->name)) + ": " +
               print_instruction(*row.function, row.instruction)] += row.repeated;
    }
    contradictions += check.contradictions();
  }
  void add(const Tally& other) {
    launches += other.launches;
    left_out += other.left_out;
    executions += other.executions;
    marked += other.marked;
    for (size_t kind = 0; kind < kinds; ++kind) {
      repeated[kind] += other.repeated[kind];
      repeated_marked[kind] += other.repeated_marked[kind];
    }
    contradictions += other.contradictions;
    for (const auto& [name, count] : other.missed)
      missed[name] += count;
  }
};

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void print(const char* name, const Tally& tally) {
  std::printf("%s: %llu launches (%llu shapes left out), %llu results of whole warps, %.1f %% of them marked;", name,
              static_cast<unsigned long long>(tally.launches), static_cast<unsigned long long>(tally.left_out),
              static_cast<unsigned long long>(tally.executions), share(tally.marked, tally.executions));
  uint64_t repeated = 0, marked = 0;
  for (size_t kind = 0; kind < kinds; ++kind) {
    repeated += tally.repeated[kind];
    marked += tally.repeated_marked[kind];
    std::printf(" %s: %llu repeated, %.1f %% marked;", spelling(static_cast<ir::MarkKind>(kind)).data(),
                static_cast<unsigned long long>(tally.repeated[kind]),
                share(tally.repeated_marked[kind], tally.repeated[kind]));
  }
  std::printf(" all: %.1f %% repeated, %.1f %% of that marked; %llu contradictions\n",
              share(repeated, tally.executions), share(marked, repeated),
              static_cast<unsigned long long>(tally.contradictions));
}

void print_missed(const Tally& tally) {
  constexpr size_t most = 40;
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [name, count] : tally.missed)
    order.emplace_back(count, name);
  std::ranges::sort(order, std::greater());
  for (size_t i = 0; i < order.size() && i < most; ++i)
    std::printf("%10llu  %s\n", static_cast<unsigned long long>(order[i].first), order[i].second.c_str());
}

void take(const MarkCheck& check, const std::string& name, const Options& options, Tally& tally) {
  tally.add(check);
  if (options.spoil) return;
  for (const std::string& message : check.messages())
    std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
}

bool has_findings(const cuda::SessionResult& result) {
  return std::ranges::any_of(result.runs, [](const cuda::SessionRun& run) { return !run.findings.empty(); });
}

bool check_sample(const std::string& path, const Options& options, Tally& total) {
  Console session;
  const std::optional<evaluate::LaunchInput> input = evaluate::read_launch_input(path, {.size = "small"}, session);
  if (!input) return false;
  Tally tally;
  for (const launch::LaunchShape& shape : launch::shapes(input->plan)) {
    if (options.given_shapes && shape.derived) continue;
    const launch::LaunchPlan plan = launch::with_shape(input->plan, shape);
    std::vector<std::unique_ptr<MarkCheck>> checks;
    cuda::EmulatorOptions emulator;
    if (shape.derived) emulator.fuel = fuel;
    emulator.check = shape.derived;
    emulator.observer = [&](const emulator::LaunchRequest&) {
      checks.push_back(std::make_unique<MarkCheck>());
      if (options.spoil) checks.back()->mark_everything();
      return checks.back().get();
    };
    const auto device = cuda::make_emulator_device(emulator);
    const auto result = cuda::run_plan(plan, *input->module, *device);
    if (!shape.derived && (!result || result->failed_launch)) {
      std::fprintf(stderr, "%s, %s: does not run\n", path.c_str(), shape.name.c_str());
      return false;
    }
    // In an unsupported shape a kernel may race, and then warps read arbitrary values.
    if (shape.derived && (!result || result->failed_launch || has_findings(*result))) {
      ++tally.left_out;
      continue;
    }
    tally.launches += checks.size();
    for (const auto& check : checks)
      take(*check, path + ", " + shape.name, options, tally);
  }
  if (options.each) print(path.c_str(), tally);
  total.add(tally);
  return true;
}

bool check_kernel(const fuzz::Kernel& kernel, const Options& options, Tally& tally) {
  std::string failed;
  const auto module = fuzz::read_text(fuzz::print_module(kernel), failed);
  if (!module) return false;
  for (const fuzz::Shape& shape : kernel.shapes) {
    MarkCheck check;
    if (options.spoil) check.mark_everything();
    ++tally.launches;
    if (!fuzz::emulate(*module, kernel, shape, &check).failed.empty()) return false;
    take(check, kernel.name, options, tally);
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  Tally total;
  Options options;
  uint64_t first = 1, count = 0;
  bool is_right = true;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--kernels") == 0 && i + 1 < argc)
      count = std::strtoull(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc)
      first = std::strtoull(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--spoil") == 0)
      options.spoil = true;
    else if (std::strcmp(argv[i], "--given-shapes") == 0)
      options.given_shapes = true;
    else if (std::strcmp(argv[i], "--each") == 0)
      options.each = true;
    else if (std::strcmp(argv[i], "--missed") == 0)
      options.missed = true;
    else
      files.emplace_back(argv[i]);
  }
  for (const std::string& file : files)
    is_right = check_sample(file, options, total) && is_right;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const fuzz::Knobs knobs = seed % 2 == 0 ? fuzz::index_knobs() : fuzz::Knobs();
    is_right = check_kernel(fuzz::generate_kernel(seed, knobs), options, total) && is_right;
  }
  if (options.missed) print_missed(total);
  print("all", total);
  const bool is_much = total.executions > 1000 && total.marked > 100;
  return is_right && is_much && (total.contradictions != 0) == options.spoil ? 0 : 1;
}
