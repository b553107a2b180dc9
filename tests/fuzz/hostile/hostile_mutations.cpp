#include "tests/fuzz/hostile/hostile_writer.h"
#include "tests/fuzz/mutate.h"

#include <array>
#include <cctype>

namespace ptxrewrite::fuzz {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string join(const std::vector<std::string_view>& parts) {
  std::string text;
  for (const std::string_view part : parts)
    text += part;
  return text;
}

// Indices of lines that are instructions.
std::vector<size_t> instruction_lines(const std::vector<std::string_view>& lines) {
  std::vector<size_t> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t first = lines[i].find_first_not_of(" \t");
    if (first == lines[i].npos || lines[i].find(';') == lines[i].npos) continue;
    if (std::isalpha(static_cast<unsigned char>(lines[i][first])) || lines[i][first] == '@') found.push_back(i);
  }
  return found;
}

std::string change_lines(std::string_view text, Random& random) {
  std::vector<std::string_view> lines = lines_of(text);
  const std::vector<size_t> instructions = instruction_lines(lines);
  if (instructions.empty()) return std::string(text);
  const size_t from = random.pick(instructions), to = random.pick(instructions);
  switch (random.below(4)) {
  case 0:
    std::swap(lines[from], lines[to]);
    break;
  case 1:
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(to), lines[from]);
    break;
  case 2:
    lines[from] = "";
    break;
  default:
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(from), lines[from]);
    break;
  }
  return join(lines);
}

bool is_number(std::string_view token) {
  return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0])) != 0;
}

// The class of replacements for a token: the letters of a register, "0" for numbers.
std::string_view kind_of(std::string_view token) {
  if (is_number(token)) return "0";
  if (token.size() < 2 || token[0] != '%') return "";
  return token.substr(0, token.find_last_not_of("0123456789") + 1);
}

// Changes one operand: a register to another one of its kind, a number to an edge value.
std::string change_operand(std::string_view text, Random& random) {
  constexpr std::array numbers = {"0",
                                  "1",
                                  "31",
                                  "32",
                                  "63",
                                  "64",
                                  "255",
                                  "256",
                                  "65535",
                                  "2147483647",
                                  "2147483648",
                                  "4294967295",
                                  "18446744073709551615",
                                  "9223372036854775808",
                                  "3",
                                  "16",
                                  "128"};
  std::vector<std::string_view> tokens = split_tokens(text);
  for (int attempt = 0; attempt < 50; ++attempt) {
    const size_t at = random.below(tokens.size());
    const std::string_view kind = kind_of(tokens[at]);
    // Parts of mnemonics and names are not numbers: .v4, m8n8, x_2.
    if (kind.empty() || (at > 0 && (tokens[at - 1] == "." || tokens[at - 1] == "_"))) continue;
    if (kind == "0") {
      tokens[at] = random.pick(numbers);
      return join(tokens);
    }
    for (int other = 0; other < 100; ++other) {
      const size_t from = random.below(tokens.size());
      if (kind_of(tokens[from]) != kind || tokens[from] == tokens[at]) continue;
      tokens[at] = tokens[from];
      return join(tokens);
    }
  }
  return std::string(text);
}

} // namespace

std::string mutate_alike(std::string_view text, Random& random) {
  return random.one_in(2) ? change_operand(text, random) : change_lines(text, random);
}

} // namespace ptxrewrite::fuzz
