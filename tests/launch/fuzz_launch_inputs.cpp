// Feeds mutated launch files and side files to their readers: every input must lead to a diagnostic that renders or a
// plan whose buffers can be filled, never to a crash or a hang. Intended for builds with sanitizers.
//
//   fuzz_launch_inputs [--count N] [--seed S] [--only NUMBER] FILE.toml... FILE.json...
#include "launch/launch_file.h"
#include "launch/shapes.h"
#include "launch/side_file.h"
#include "support/file_io.h"
#include "tests/fuzz/mutate.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace {

using namespace ptxrewrite;

constexpr unsigned hang_seconds = 60;
constexpr uint64_t most_filled_bytes = 1 << 20; // of one buffer

struct Tally {
  uint64_t plans = 0, side_files = 0, refused = 0, failures = 0;
};

bool renders(const Diagnostics& diagnostics, const SourceFile& source) {
  for (const Diagnostic& diagnostic : diagnostics.list())
    if (diagnostic.range.end > source.text().size() || diagnostic.range.begin > diagnostic.range.end ||
        render(diagnostic, source).find(source.name()) == std::string::npos)
      return false;
  return true;
}

// Returns "" or the error.
std::string try_launch_file(const std::string& text, Tally& tally) {
  SourceFile source("mutation.toml", text);
  Diagnostics diagnostics;
  auto file = launch::read_launch_file(source, diagnostics);
  if (!file) {
    ++tally.refused;
    return !renders(diagnostics, source) ? "a diagnostic does not render" : diagnostics.has_errors() ? "" : "no reason";
  }
  std::vector<std::string> sizes = file->sizes;
  sizes.emplace_back();
  for (const std::string& size : sizes) {
    Diagnostics errors;
    auto plan = launch::make_plan(*file, {size, {}}, errors);
    if (!renders(errors, source)) return "a diagnostic does not render";
    if (plan.has_value() == errors.has_errors()) return "a plan with errors, or none without";
    if (!plan) {
      ++tally.refused;
      continue;
    }
    ++tally.plans;
    for (const launch::Buffer& buffer : plan->buffers) {
      if (buffer.bytes() > most_filled_bytes) continue;
      std::vector<std::byte> memory(buffer.bytes());
      if (Status status = buffer.initialise(memory); !status && status.error().message.empty()) return "no reason";
    }
    for (const launch::LaunchShape& shape : launch::shapes(*plan))
      for (const launch::Geometry& geometry : shape.launches)
        if (geometry.block.count() == 0 || geometry.block.count() > launch::max_block_threads) return "a wrong shape";
  }
  return {};
}

std::string try_side_file(const std::string& text, Tally& tally) {
  SourceFile source("mutation.json", text);
  Diagnostics diagnostics;
  auto file = launch::read_side_file(source, diagnostics);
  if (!renders(diagnostics, source)) return "a diagnostic does not render";
  if (file.has_value() == diagnostics.has_errors()) return "a file with errors, or none without";
  ++(file ? tally.side_files : tally.refused);
  if (!file) return {};
  // The result can be written and read again.
  Diagnostics again;
  auto second = launch::read_side_file(SourceFile("again.json", launch::write_side_file(*file)), again);
  return second && launch::write_side_file(*second) == launch::write_side_file(*file) ? "" : "does not read back";
}

} // namespace

int main(int count_of_arguments, char** arguments) {
  uint64_t count = 2000, seed = 1, first = 0;
  std::vector<std::string> launch_files, side_files;
  for (int i = 1; i < count_of_arguments; ++i) {
    const std::string word = arguments[i];
    auto number = [&] { return i + 1 < count_of_arguments ? std::strtoull(arguments[++i], nullptr, 10) : 0; };
    if (word == "--count") {
      count = number();
    } else if (word == "--seed") {
      seed = number();
    } else if (word == "--only") {
      first = number();
      count = 1;
    } else if (Result<std::string> text = read_file(word); text) {
      (word.ends_with(".json") ? side_files : launch_files).push_back(*std::move(text));
    } else {
      std::fprintf(stderr, "fuzz_launch_inputs: %s\n", text.error().message.c_str());
      return 2;
    }
  }
  if (launch_files.empty() || side_files.empty()) return 2;
  Tally tally;
  for (uint64_t number = first; number < first + count; ++number) {
    alarm(hang_seconds);
    const bool is_side_file = number % 4 == 3;
    const fuzz::Mutation mutation = fuzz::mutate(is_side_file ? side_files : launch_files, seed, number);
    const std::string wrong =
        is_side_file ? try_side_file(mutation.text, tally) : try_launch_file(mutation.text, tally);
    if (wrong.empty()) continue;
    ++tally.failures;
    std::printf("%s: repeat with --seed %llu --only %llu (%s)\n", wrong.c_str(), static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(number), mutation.name.c_str());
  }
  std::printf("%llu inputs: %llu plans, %llu side files, %llu refused, %llu failures\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(tally.plans),
              static_cast<unsigned long long>(tally.side_files), static_cast<unsigned long long>(tally.refused),
              static_cast<unsigned long long>(tally.failures));
  // If all mutations were rejected immediately, little would be tested.
  const bool some_pass = count == 1 || (tally.plans > count / 20 && tally.side_files > 0);
  return tally.failures == 0 && some_pass ? 0 : 1;
}
