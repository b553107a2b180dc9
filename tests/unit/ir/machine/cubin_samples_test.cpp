// The cubin reader's results for our samples' cubins against the output of `ptxas -v` for the same run.
#include "ir/machine/figures/cubin.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

namespace ptxrewrite::tests::cubin_samples_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::vector<std::string> sample_paths() {
  std::vector<std::string> paths;
  for (const auto& folder : std::filesystem::directory_iterator(tests::source_path("samples")))
    if (folder.is_directory())
      for (const auto& file : std::filesystem::directory_iterator(folder.path()))
        if (file.path().extension() == ".ptx") paths.push_back(file.path());
  return paths;
}

// The samples are written for sm_80: other machines get the same text with their own name, and refuse a few.
std::string for_target(std::string text, const std::string& architecture) {
  const std::string written = ".target " + target_architecture(text);
  if (architecture < "sm_80") text.replace(text.find(written), written.size(), ".target " + architecture);
  return text;
}

struct Tally {
  unsigned kernels = 0, with_stack = 0, with_shared = 0, refused = 0;
  std::vector<std::string> differences;
  std::mutex mutex;
};

void compare(const std::string& what, const CubinFunction& function, const PtxasFigures* printed, Tally& tally) {
  std::lock_guard lock(tally.mutex);
  const std::string place = what + " " + std::string(function.name);
  if (!printed) return tally.differences.push_back(place + ": ptxas says nothing about it");
  auto same = [&](const char* figure, uint32_t found, uint32_t expected) {
    if (found != expected)
      tally.differences.push_back(place + ": " + std::to_string(found) + " " + figure + ", ptxas says " +
                                  std::to_string(expected));
  };
  same("registers", function.registers, printed->registers);
  same("barriers", function.barriers, printed->barriers);
  same("bytes of shared memory", function.shared, printed->shared);
  same("bytes of stack", function.stack_frame, printed->stack_frame);
  same("bytes of spill stores", function.spill_stores.value_or(printed->spill_stores), printed->spill_stores);
  same("bytes of spill loads", function.spill_loads.value_or(printed->spill_loads), printed->spill_loads);
  ++tally.kernels;
  tally.with_stack += printed->stack_frame > 0;
  tally.with_shared += printed->shared > 0;
}

void compare_sample(const std::string& path, const std::string& architecture, const std::vector<std::string>& flags,
                    Tally& tally) {
  const std::string text = for_target(read_file(path).value(), architecture);
  Result<PtxasRun> run = assemble(text, {architecture, 3, flags});
  const std::string what = std::filesystem::path(path).filename().string() + " " + architecture;
  Result<Cubin> cubin = run && run->ok ? read_cubin(run->cubin) : Error{"not assembled", {}};
  if (!cubin) {
    std::lock_guard lock(tally.mutex);
    ++tally.refused;
    return;
  }
  for (const CubinFunction& function : cubin->functions)
    compare(what, function, run->find(function.name), tally);
}

void compare_samples(const std::vector<std::string>& architectures, const std::vector<std::string>& flags,
                     Tally& tally) {
  struct Work {
    std::string path, architecture;
  };
  std::vector<Work> work;
  for (const std::string& path : sample_paths())
    for (const std::string& architecture : architectures)
      work.push_back({path, architecture});
  std::atomic<size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (size_t at = next++; at < work.size(); at = next++)
        compare_sample(work[at].path, work[at].architecture, flags, tally);
    });
}

} // namespace

TEST_CASE("the samples' cubins hold what ptxas -v prints") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  struct Run {
    std::vector<std::string> architectures, flags;
    unsigned kernels, with_stack; // at least
  };
  // Unchanged, and with so few registers that the long ones spill.
  const Run runs[] = {{{"sm_75", "sm_80", "sm_90"}, {}, 350, 1}, {{"sm_90"}, {"-maxrregcount=24"}, 120, 15}};
  for (const Run& run : runs) {
    Tally tally;
    compare_samples(run.architectures, run.flags, tally);
    for (const std::string& difference : tally.differences)
      MESSAGE(difference);
    CHECK(tally.differences.empty());
    CHECK(tally.kernels >= run.kernels);
    CHECK(tally.refused <= 2);
    CHECK(tally.with_shared > 20);
    CHECK(tally.with_stack >= run.with_stack);
  }
}

} // namespace ptxrewrite::tests::cubin_samples_test
