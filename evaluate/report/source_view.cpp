// The text of a kernel with the counts of its lines, and its difference to the text after the passes.
#include "evaluate/diff/word_marks.h"
#include "evaluate/report/page_parts.h"
#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ptxrewrite::evaluate {
namespace {

std::string count_cell(uint64_t value, uint64_t most) {
  if (value == 0) return "<td data-k=\"0\"></td>";
  return heat_cell(value, double(value) / double(most), std::to_string(value));
}

// Lines of CUDA by their positions.
using CudaTexts = std::map<CudaPosition, std::string>;

CudaTexts cuda_texts(const KernelFacts& facts) {
  CudaTexts texts;
  for (const CudaFileLines& file : facts.cuda)
    for (const CudaLine& line : file.lines) {
      const std::string_view text = trimmed(line.text);
      if (!text.empty())
        texts[{file.file, line.line}] = fmt::format("<u><a href=\"#C{}-{}\">{}{}{}</a> {}</u>", file.file, line.line,
                                                    facts.cuda.size() > 1 ? escaped(file.name) : "",
                                                    facts.cuda.size() > 1 ? ":" : "", line.line, escaped(text));
    }
  return texts;
}

// `cuda`: the line of CUDA at which the row begins; empty if it is that of the row before.
std::string text_cell(const SourceRow& row, std::string_view cuda) {
  std::string out = "<td class=\"ptx\">";
  out += cuda;
  out += row.is_label ? "" : "  ";
  append_escaped(out, row.text);
  // A rewrite can have many conditions for one line; only the first few are shown.
  constexpr size_t most = 3;
  const bool folds = row.remarks.size() > most;
  for (size_t i = 0; i < row.remarks.size(); ++i) {
    if (folds && i == most - 1) out += fmt::format("<details><summary>{} more</summary>", row.remarks.size() - i);
    out += "<i>";
    append_escaped(out, row.remarks[i]);
    out += "</i>";
  }
  return out + (folds ? "</details></td>" : "</td>");
}

std::string difference_row(std::string_view css, char mark, const std::string& left, const std::string& right,
                           const std::string& text) {
  return fmt::format("<tr class=\"{}\"><td>{}</td><td>{}</td><td>{}</td><td class=\"ptx\">{}</td></tr>\n", css, left,
                     right, mark, text);
}

std::string shown(const ListingLine& line, std::string text) {
  return (line.indented ? "    " : "") + std::move(text);
}

std::string line_number(const ListingLine& line) {
  return line.source_line ? std::to_string(line.source_line) : "";
}

} // namespace

std::string source_view(const KernelFacts& facts) {
  uint64_t most_issued = 1, most_transactions = 1;
  const bool has_cuda = !facts.cuda.empty();
  const CudaTexts texts = cuda_texts(facts);
  for (const SourceRow& row : facts.rows) {
    most_issued = std::max(most_issued, row.counters.executions * row.machine_instructions);
    most_transactions = std::max(most_transactions, row.counters.transactions);
  }
  std::string out = fmt::format(
      "<div class=\"scroll\"><table class=\"s\"><thead><tr><th scope=\"col\">line</th>{}<th scope=\"col\">issued</th>"
      "<th scope=\"col\" class=\"wide\">warps</th><th scope=\"col\" class=\"wide\">threads</th><th scope=\"col\">"
      "transactions</th><th scope=\"col\">redundant</th><th scope=\"col\" class=\"wide\">live</th><th scope=\"col\" "
      "class=\"t\">PTX</th><th scope=\"col\" class=\"t wide\">machine</th></tr></thead><tbody>\n",
      has_cuda ? "<th scope=\"col\" class=\"wide\">CUDA</th>" : "");
  CudaPosition before;
  for (const SourceRow& row : facts.rows) {
    const uint64_t issued = row.counters.executions * row.machine_instructions;
    const std::string cuda =
        row.cuda.known() ? fmt::format("<a href=\"#C{0}-{1}\">{1}</a>", row.cuda.file, row.cuda.line) : "";
    const auto text = row.is_label || row.cuda == before ? texts.end() : texts.find(row.cuda);
    if (!row.is_label) before = row.cuda;
    out += row.line ? fmt::format("<tr id=\"L{0}\"><td>{0}</td>", row.line) : "<tr><td></td>";
    if (has_cuda) out += fmt::format("<td class=\"wide\" data-k=\"{}\">{}</td>", row.cuda.line, cuda);
    out += count_cell(issued, most_issued);
    out += row.counters.executions ? fmt::format("<td class=\"wide\">{}</td><td class=\"wide\">{}</td>",
                                                 row.counters.executions, row.counters.lanes)
                                   : "<td class=\"wide\"></td><td class=\"wide\"></td>";
    out += count_cell(row.counters.transactions, most_transactions);
    out += row.redundant && *row.redundant >= 0.0005
               ? fmt::format("<td class=\"c\" style=\"--h:{0:.1f}%\" data-k=\"{0:.2f}\">{0:.0f} %</td>",
                             100 * std::min(1.0, *row.redundant))
               : "<td data-k=\"0\"></td>";
    out += row.is_label || !row.live
               ? "<td class=\"wide\"></td>"
               : fmt::format("<td class=\"c wide\" style=\"--h:{:.1f}%\" data-k=\"{}\">{}</td>",
                             100.0 * row.live / std::max(1u, facts.most_live), row.live, row.live);
    out += text_cell(row, text == texts.end() ? std::string_view() : text->second) + "<td class=\"mono wide\">" +
           escaped(row.machine) + (row.machine_instructions > 1 ? fmt::format(" ({})", row.machine_instructions) : "") +
           "</td></tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string difference_view(const Difference& difference) {
  constexpr unsigned context = 3;
  std::string out = "<div class=\"scroll\"><table class=\"diff\"><tbody>\n";
  size_t done = 0;
  for (const auto& [begin, end] : hunks(difference.rows, context)) {
    if (begin > done)
      out += fmt::format("<tr class=\"gap\"><td colspan=\"4\">{} equal lines</td></tr>\n", begin - done);
    for (size_t i = begin; i < end; ++i) {
      const AlignedLine& row = difference.rows[i];
      const ListingLine* left = row.left == AlignedLine::none ? nullptr : &difference.left[row.left];
      const ListingLine* right = row.right == AlignedLine::none ? nullptr : &difference.right[row.right];
      if (row.status == LineStatus::kept && left) {
        out += difference_row("", ' ', line_number(*left), "", shown(*left, escaped(left->text)));
        continue;
      }
      const MarkedWords words = left && right ? mark_words(left->text, right->text) : MarkedWords();
      if (left)
        out += difference_row("minus", '-', line_number(*left), "",
                              shown(*left, right ? words.left : escaped(left->text)));
      if (right)
        out += difference_row("plus", '+', "", line_number(*right),
                              shown(*right, left ? words.right : escaped(right->text)));
    }
    done = end;
  }
  if (done < difference.rows.size())
    out += fmt::format("<tr class=\"gap\"><td colspan=\"4\">{} equal lines</td></tr>\n", difference.rows.size() - done);
  return out + "</tbody></table></div>\n";
}

} // namespace ptxrewrite::evaluate
