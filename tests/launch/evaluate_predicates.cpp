// Evaluates launch predicates from standard input, one a line: the block's three dimensions, the grid's, the number of
// parameters, each parameter's bytes in base 16 (first byte first), then the expression. Prints the value, `error` if
// there is none, `syntax` if the expression does not parse.
#include "launch/predicate.h"

#include <cstdio>
#include <iostream>
#include <sstream>

using namespace ptxrewrite::launch;

namespace {

std::vector<std::byte> parse_bytes(const std::string& digits) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string answer(const std::string& line) {
  std::istringstream in(line);
  LaunchFacts facts;
  in >> facts.block.x >> facts.block.y >> facts.block.z >> facts.grid.x >> facts.grid.y >> facts.grid.z;
  size_t count = 0;
  in >> count;
  for (std::string digits; count > 0 && in >> digits; --count)
    facts.parameters.push_back(parse_bytes(digits));
  std::string text;
  std::getline(in, text);
  auto expression = LaunchExpression::parse(text);
  if (!expression) return "syntax";
  auto value = expression->evaluate(facts);
  return value ? to_string(*value) : "error";
}

} // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::puts(answer(line).c_str());
  return 0;
}
