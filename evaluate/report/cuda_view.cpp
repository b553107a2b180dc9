// The CUDA source of a kernel with the counts of its lines.
#include "evaluate/report/page_parts.h"
#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::evaluate {
namespace {

uint64_t issued_by_all(const KernelFacts& facts) {
  uint64_t all = 0;
  for (const CudaFileLines& file : facts.cuda)
    for (const CudaLine& line : file.lines)
      all += line.issued;
  return all;
}

std::string anchor(const CudaFileLines& file, const CudaLine& line) {
  return fmt::format("C{}-{}", file.file, line.line);
}

// Links to runs of consecutive PTX lines: "12-15 20".
std::string ptx_links(const std::vector<uint32_t>& lines) {
  std::string out;
  for (size_t begin = 0; begin < lines.size();) {
    size_t end = begin + 1;
    while (end < lines.size() && lines[end] == lines[end - 1] + 1)
      ++end;
    out += fmt::format("{0}<a href=\"#L{1}\">{1}{2}</a>", begin ? " " : "", lines[begin],
                       end - begin > 1 ? fmt::format("-{}", lines[end - 1]) : "");
    begin = end;
  }
  return out;
}

PageTable table_of(const CudaFileLines& file, uint64_t all, uint64_t most_transactions) {
  PageTable table{{{"line"}, {"share of issued"}, {"transactions"}, {"CUDA", false}, {"lines of PTX", false, "w wide"}},
                  {}};
  for (const CudaLine& line : file.lines) {
    const double share = all ? double(line.issued) / double(all) : 0;
    table.rows.push_back(
        {fmt::format("<td id=\"{}\" data-k=\"{}\">{}</td>", anchor(file, line), line.line, line.line),
         line.issued ? heat_cell(line.issued, share, fmt::format("{:.1f} %", 100 * share)) : "<td data-k=\"0\"></td>",
         line.transactions ? heat_cell(line.transactions, double(line.transactions) / double(most_transactions),
                                       std::to_string(line.transactions))
                           : "<td data-k=\"0\"></td>",
         "<td class=\"ptx\">" + escaped(line.text) + "</td>",
         "<td class=\"t w wide\">" + ptx_links(line.ptx_lines) + "</td>"});
  }
  return table;
}

} // namespace

std::string heat_cell(uint64_t key, double share, std::string_view text) {
  return fmt::format("<td class=\"h\" style=\"--h:{:.1f}%\" data-k=\"{}\">{}</td>", 100 * std::clamp(share, 0.0, 1.0),
                     key, text);
}

std::string hot_cuda_lines(const KernelFacts& facts) {
  constexpr size_t most = 5;
  std::vector<std::pair<const CudaFileLines*, const CudaLine*>> lines;
  for (const CudaFileLines& file : facts.cuda)
    for (const CudaLine& line : file.lines)
      if (file.at_hand && line.issued) lines.emplace_back(&file, &line);
  std::ranges::stable_sort(lines, std::greater(), [](const auto& one) { return one.second->issued; });
  if (lines.size() > most) lines.resize(most);
  if (lines.empty()) return {};
  const uint64_t all = issued_by_all(facts);
  PageTable table{{{"line"}, {"share of issued"}, {"transactions"}, {"CUDA", false}}, {}};
  for (const auto& [file, line] : lines) {
    const double share = double(line->issued) / double(all);
    table.rows.push_back(
        {fmt::format("<td data-k=\"{0}\"><a href=\"#{1}\">{0}</a></td>", line->line, anchor(*file, *line)),
         bar_cell(share, fmt::format("{:.1f} %", 100 * share), share), std::to_string(line->transactions),
         "<td class=\"ptx\">" + escaped(trimmed(line->text)) + "</td>"});
  }
  return table.html();
}

std::string cuda_view(const KernelFacts& facts) {
  if (facts.cuda.empty())
    return "<p class=\"soft\">The PTX has no line information. With nvcc's option -lineinfo, the lines of CUDA are "
           "here, "
           "with what each costs.</p>\n";
  const uint64_t all = issued_by_all(facts);
  uint64_t most_transactions = 1;
  for (const CudaFileLines& file : facts.cuda)
    for (const CudaLine& line : file.lines)
      most_transactions = std::max(most_transactions, line.transactions);
  std::string out;
  for (const CudaFileLines& file : facts.cuda) {
    out += fmt::format("<h3>{}</h3>\n", file.name.empty() ? fmt::format("file {}", file.file) : escaped(file.name));
    if (!file.at_hand)
      out += "<p class=\"soft\">This file is not where the PTX says, nor beside it: --source FOLDER tells where it "
             "is.</p>\n";
    out += table_of(file, all, most_transactions).html();
  }
  return out;
}

} // namespace ptxrewrite::evaluate
