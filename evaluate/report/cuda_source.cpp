#include "evaluate/report/cuda_source.h"

#include "support/file_io.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <numeric>

namespace ptxrewrite::evaluate {
namespace {

constexpr size_t largest_file = size_t{4} << 20;
constexpr std::array<std::string_view, 12> source_extensions{".cu", ".cuh", ".h",   ".hpp", ".hh",  ".c",
                                                             ".cc", ".cpp", ".cxx", ".inl", ".inc", ".py"};

// Index and name of `.file 1 "path"`; nothing for other items.
std::optional<std::pair<uint32_t, std::string>> file_directive(std::string_view text) {
  constexpr std::string_view word = ".file", space = " \t\r\n";
  if (!text.starts_with(word)) return std::nullopt;
  const size_t number = text.find_first_not_of(space, word.size());
  const size_t open = text.find('"'), close = text.rfind('"');
  if (number == std::string_view::npos || open == std::string_view::npos || close <= open) return std::nullopt;
  uint32_t index = 0;
  if (std::from_chars(text.data() + number, text.data() + open, index).ec != std::errc()) return std::nullopt;
  return std::pair(index, std::string(text.substr(open + 1, close - open - 1)));
}

} // namespace

std::vector<CudaPosition> cuda_positions(const ir::Function& function) {
  std::vector<CudaPosition> positions(function.instructions.size());
  CudaPosition now;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind == ir::InstructionKind::location) {
        const auto operands = function.operands_of(id);
        if (operands.size() >= 3 && operands[0].is(ir::OperandKind::integer) &&
            operands[1].is(ir::OperandKind::integer))
          now = {static_cast<uint32_t>(operands[0].immediate), static_cast<uint32_t>(operands[1].immediate)};
      }
      positions[id.index()] = now;
    }
  return positions;
}

CudaSources::CudaSources(const ir::Module& module, std::vector<std::string> folders)
    : folders_(std::move(folders)), ptx_folder_(std::filesystem::path(module.source.name()).parent_path().string()) {
  for (const ir::Item& item : module.items)
    if (item.kind == ir::ItemKind::verbatim)
      if (auto found = file_directive(item.text)) files_[found->first].path = std::move(found->second);
}

std::string_view CudaSources::name(uint32_t file) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return {};
  const std::string_view path = found->second.path;
  return path.substr(path.find_last_of("/\\") + 1);
}

void CudaSources::read(File& file) {
  file.was_read = true;
  const std::filesystem::path path(file.path), ptx_folder(ptx_folder_);
  if (std::ranges::find(source_extensions, path.extension().string()) == source_extensions.end()) return;
  std::vector<std::filesystem::path> places{path.is_absolute() ? path : ptx_folder / path};
  for (const std::string& folder : folders_)
    places.push_back(std::filesystem::path(folder) / path.filename());
  places.push_back(ptx_folder / path.filename());
  for (const std::filesystem::path& place : places) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(place, error) || error) continue;
    Result<std::string> text = read_file(place.string(), largest_file);
    if (!text) continue;
    file.text.emplace(place.string(), std::move(*text));
    return;
  }
}

bool CudaSources::at_hand(uint32_t file) {
  const auto found = files_.find(file);
  if (found == files_.end()) return false;
  if (!found->second.was_read) read(found->second);
  return found->second.text.has_value();
}

std::string_view CudaSources::line(CudaPosition position) {
  if (!position.known() || !at_hand(position.file)) return {};
  return files_.at(position.file).text->line(position.line);
}

std::vector<CudaFileLines> lines_by_file(std::span<const CudaShare> shares, CudaSources& sources) {
  constexpr uint32_t widest_gap = 4; // lines without instructions that are shown between two with some
  std::map<CudaPosition, CudaLine> sums;
  for (const CudaShare& share : shares) {
    if (!share.position.known()) continue;
    CudaLine& line = sums[share.position];
    line.issued += share.issued;
    line.transactions += share.transactions;
    if (share.ptx_line) line.ptx_lines.push_back(share.ptx_line);
  }
  std::vector<CudaFileLines> files;
  for (auto& [position, line] : sums) {
    if (files.empty() || files.back().file != position.file)
      files.push_back({position.file, std::string(sources.name(position.file)), sources.at_hand(position.file), {}});
    CudaFileLines& file = files.back();
    if (file.at_hand && !file.lines.empty() && position.line - file.lines.back().line <= widest_gap + 1)
      for (uint32_t between = file.lines.back().line + 1; between < position.line; ++between)
        file.lines.push_back({between, std::string(sources.line({position.file, between})), 0, 0, {}});
    line.line = position.line;
    line.text = sources.line(position);
    std::ranges::sort(line.ptx_lines);
    const auto rest = std::ranges::unique(line.ptx_lines);
    line.ptx_lines.erase(rest.begin(), rest.end());
    file.lines.push_back(std::move(line));
  }
  auto issued = [](const CudaFileLines& file) {
    return std::accumulate(file.lines.begin(), file.lines.end(), uint64_t{0},
                           [](uint64_t sum, const CudaLine& line) { return sum + line.issued; });
  };
  std::ranges::stable_sort(files, std::greater(), issued);
  return files;
}

} // namespace ptxrewrite::evaluate
