// One page per kernel: its bottleneck, the effect of techniques and passes, its text with counts per line, control
// flow, registers, energy. A page is self-contained: it needs no network and no other file.
#pragma once

#include "evaluate/report/kernel_facts.h"

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

std::string report_page(const FileFacts& file, size_t kernel);

// A page with links to the kernels' pages.
struct ReportLink {
  std::string page; // relative to this page
  const FileFacts* file = nullptr;
  size_t kernel = 0;
};
std::string report_index(std::span<const ReportLink> links);

// "backprop-bp_layerforward.html", with characters that every file system supports.
std::string report_file_name(const std::string& launch_file, const std::string& kernel);

} // namespace ptxrewrite::evaluate
