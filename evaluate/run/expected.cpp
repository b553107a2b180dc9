#include "evaluate/run/expected.h"

#include "support/packed_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {
namespace {

constexpr size_t most_shown = 1;

} // namespace

Result<std::vector<cuda::BufferComparison>> compare_with_expected(const launch::LaunchPlan& plan,
                                                                  const cuda::SessionResult& result) {
  std::vector<cuda::BufferComparison> comparisons;
  const auto compare_one = [&](const launch::Buffer& buffer, std::span<const std::byte> now) -> Status {
    if (buffer.expected.empty() || now.size() < buffer.bytes()) return {};
    std::vector<std::byte> expected(buffer.bytes());
    if (Status status = read_unpacked(buffer.expected, expected); !status) return status;
    comparisons.push_back(cuda::compare(buffer, expected, now.first(expected.size()), most_shown));
    return {};
  };
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (Status status = compare_one(plan.buffers[i], result.buffers[i]); !status) return status.error();
  for (size_t i = 0; i < plan.variables.size(); ++i)
    if (Status status = compare_one(plan.variables[i].data, result.variables[i]); !status) return status.error();
  return comparisons;
}

std::string expected_text(const std::vector<cuda::BufferComparison>& comparisons) {
  if (comparisons.empty()) return {};
  std::string text;
  for (const cuda::BufferComparison& one : comparisons)
    if (!one.same())
      text += fmt::format("buffer '{}': {} of {} elements are not as expected, the first is {}: {}, not {}\n",
                          one.buffer, one.differing, one.elements, one.first.front().index, one.first.front().rewritten,
                          one.first.front().original);
  return text.empty() ? fmt::format("\n{} as expected\n", comparisons.size() == 1
                                                              ? "one buffer is"
                                                              : fmt::format("{} buffers are", comparisons.size()))
                      : '\n' + text;
}

nlohmann::ordered_json expected_json(const std::vector<cuda::BufferComparison>& comparisons) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const cuda::BufferComparison& one : comparisons)
    rows.push_back({{"buffer", one.buffer}, {"elements", one.elements}, {"differing", one.differing}});
  return rows;
}

} // namespace ptxrewrite::evaluate
