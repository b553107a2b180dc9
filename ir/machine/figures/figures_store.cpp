#include "ir/machine/figures/figures_store.h"

#include <charconv>

namespace ptxrewrite::ir {

namespace {

// Removes a decimal number and the byte `end` after it from the front; nullopt if there is none.
std::optional<uint32_t> take_number(std::string_view& text, char end) {
  uint32_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || stop == text.data() + text.size() || *stop != end) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return number;
}

std::string written(const FiguresByFunction& figures) {
  std::string text = std::to_string(figures.size()) + '\n';
  for (const auto& [name, row] : figures)
    text += std::to_string(row.instructions) + ' ' + std::to_string(row.registers) + ' ' +
            std::to_string(row.spilled_bytes) + ' ' + name + '\n';
  return text;
}

// Parses an answer; nullopt unless the text is a result of written().
std::optional<FiguresByFunction> figures_in(std::string_view text) {
  const std::optional<uint32_t> count = take_number(text, '\n');
  if (!count) return std::nullopt;
  FiguresByFunction figures;
  while (!text.empty()) {
    const auto instructions = take_number(text, ' '), registers = take_number(text, ' '),
               spilled = take_number(text, ' ');
    const size_t end = text.find('\n');
    if (!instructions || !registers || !spilled || end == std::string_view::npos) return std::nullopt;
    figures[std::string(text.substr(0, end))] = {*instructions, *registers, *spilled};
    text.remove_prefix(end + 1);
  }
  if (figures.size() != *count) return std::nullopt;
  return figures;
}

} // namespace

FiguresStore::FiguresStore(const std::string& folder, uint64_t most_bytes)
    : store_(folder, "ptxrewrite figures 1\n", most_bytes) {}

std::optional<FiguresByFunction> FiguresStore::find(std::string_view question) const {
  const std::optional<std::string> answer = store_.find(question);
  return answer ? figures_in(*answer) : std::nullopt;
}

void FiguresStore::keep(std::string_view question, const FiguresByFunction& figures) {
  store_.keep(question, written(figures));
}

std::string figures_folder() {
  return cache_folder("figures");
}

} // namespace ptxrewrite::ir
