#include "tests/samples/harness/benchmarks.h"

#include "tests/samples/harness/run_sample.h"
#include "tests/unit/paths.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace ptxrewrite::tests {
namespace {

struct BenchmarkRow {
  std::string sample, kernel, block, blocks, flags;
};

// The line `// nvcc: FLAGS` of a sample's source, "-" without one: samples/regenerate compiles with it.
std::string flags_of(const std::string& sample) {
  std::ifstream source(source_path("samples/" + sample + "/" + sample + ".cu"));
  const std::string mark = "// nvcc: ";
  for (std::string line; std::getline(source, line) && !line.empty();)
    if (line.starts_with(mark)) return line.substr(mark.size());
  return "-";
}

bool check_row(const BenchmarkRow& row) {
  const launch::LaunchPlan plan = sample_plan(row.sample, "paper");
  const auto launch = std::ranges::find(plan.launches, row.kernel, &launch::Launch::kernel);
  if (launch == plan.launches.end()) {
    std::printf("samples/%s: no launch of %s at --size paper\n", row.sample.c_str(), row.kernel.c_str());
    return false;
  }
  const launch::Dim3 block = launch->block;
  std::ostringstream shape;
  shape << block.x << ',' << block.y << ',' << block.z;
  const std::string blocks = std::to_string(launch->grid.count()), flags = flags_of(row.sample);
  if (shape.str() == row.block && blocks == row.blocks && flags == row.flags) return true;
  std::printf("samples/%s: %s has %s blocks of %s, flags %s; the benchmark %s of %s, flags %s\n", row.sample.c_str(),
              row.kernel.c_str(), blocks.c_str(), shape.str().c_str(), flags.c_str(), row.blocks.c_str(),
              row.block.c_str(), row.flags.c_str());
  return false;
}

} // namespace

bool check_benchmarks() {
  std::ifstream table(source_path("samples/benchmarks.tsv"));
  size_t rows = 0;
  bool good = true;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with("#") || line.starts_with("sample\t")) continue;
    BenchmarkRow row;
    std::istringstream fields(line);
    for (std::string* field : {&row.sample, &row.kernel, &row.block, &row.blocks, &row.flags})
      std::getline(fields, *field, '\t');
    good = check_row(row) && good;
    ++rows;
  }
  std::printf("%zu kernels of benchmarks\n", rows);
  return good && rows != 0;
}

} // namespace ptxrewrite::tests
