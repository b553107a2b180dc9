#include "launch/repeated_launches.h"

#include "launch/parameter_use.h"
#include "launch/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ptxrewrite::launch {
namespace {

std::string extents(const Dim3& size) {
  return fmt::format("{}x{}x{}", size.x, size.y, size.z);
}

bool is_number(const Parameter& parameter, const std::vector<ParameterPart>& parts) {
  return (ir::is_integer(parameter.type) || ir::is_bit_type(parameter.type)) && !parameter.is_array &&
         parameter.bytes <= sizeof(uint64_t) && !parts.empty() &&
         std::ranges::none_of(parts, &ParameterPart::is_address);
}

} // namespace

LaunchKeys::LaunchKeys(const ir::Module& module, const ir::Function& kernel) {
  const Signature signature = signature_of(kernel);
  const std::vector<std::vector<ParameterPart>> parts = parameter_parts(module, kernel);
  for (size_t i = 0; i < signature.parameters.size(); ++i)
    if (const Parameter& parameter = signature.parameters[i]; is_number(parameter, parts[i]))
      numbers_.push_back({i, parameter.offset, parameter.bytes});
}

std::string LaunchKeys::of(const Dim3& grid, const Dim3& block, std::span<const std::byte> parameters) const {
  std::string key = "block=" + extents(block) + ",grid=" + extents(grid);
  for (const Number& number : numbers_) {
    if (number.offset + number.bytes > parameters.size()) continue;
    uint64_t value = 0;
    std::memcpy(&value, parameters.data() + number.offset, number.bytes);
    key += fmt::format(",param.{}={}", number.index, value);
  }
  return key;
}

bool RepeatedLaunches::is_due(const std::string& key, uint64_t times) {
  if (counts_.size() >= most_counted && !counts_.contains(key)) return false;
  if (++counts_[key] != times || due_ == most_kernels) return false;
  ++due_;
  return true;
}

} // namespace ptxrewrite::launch
