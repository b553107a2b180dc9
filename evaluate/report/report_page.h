// One page a kernel: what bounds it, what techniques and passes would change, its text with what each line did, control
// flow, registers, energy. A page needs nothing else: no network, no file beside it.
#pragma once

#include "evaluate/report/kernel_facts.h"

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

std::string report_page(const FileFacts& file, size_t kernel);

// A page that leads to those of kernels.
struct ReportLink {
  std::string page; // relative to this page
  const FileFacts* file = nullptr;
  size_t kernel = 0;
};
std::string report_index(std::span<const ReportLink> links);

// "backprop-bp_layerforward.html", of letters that any file system has.
std::string report_file_name(const std::string& launch_file, const std::string& kernel);

} // namespace ptxrewrite::evaluate
