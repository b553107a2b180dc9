#include "tests/samples/reference.h"

namespace ptxrewrite::tests {

namespace {

template <class Map> auto& found(Map& map, const std::string& name, const char* what) {
  auto place = map.find(name);
  if (place == map.end()) throw std::runtime_error("the launch file has no " + std::string(what) + " '" + name + "'");
  return place->second;
}

} // namespace

std::vector<std::byte>& SampleData::bytes_of(const std::string& name) {
  return found(buffers, name, "buffer");
}

int64_t SampleData::value(const std::string& name) const {
  return found(integers, name, "integer");
}

double SampleData::number(const std::string& name) const {
  return found(numbers, name, "number");
}

std::map<std::string, Reference>& references() {
  static std::map<std::string, Reference> all;
  return all;
}

} // namespace ptxrewrite::tests
