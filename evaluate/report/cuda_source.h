// The CUDA source that a module's line information (.file and .loc) names, as far as its files are at hand.
#pragma once

#include "ir/core/module.h"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

// A position that .loc names; line 0: none is known.
struct CudaPosition {
  uint32_t file = 0; // index of .file
  uint32_t line = 0; // 1-based
  bool known() const { return line != 0; }
  auto operator<=>(const CudaPosition&) const = default;
};

// The position of the last .loc before each instruction in the text, by ID. Inlined code has the position in its own
// source.
std::vector<CudaPosition> cuda_positions(const ir::Function& function);

// Files are read when a line of them is asked for: where .file says (relative to the PTX's folder), else by their last
// component in `folders` and beside the PTX. PTX can name any file of the machine, so only regular files of at most
// 4 MiB with an extension of C++ or Python sources are read.
class CudaSources {
public:
  CudaSources(const ir::Module& module, std::vector<std::string> folders);

  // The last component; empty without a .file directive.
  std::string_view name(uint32_t file) const;
  bool at_hand(uint32_t file);
  // The text without its line end; empty if the file is not at hand, or shorter.
  std::string_view line(CudaPosition position);

private:
  struct File {
    std::string path; // as .file has it
    bool was_read = false;
    std::optional<SourceFile> text;
  };
  void read(File& file);

  std::vector<std::string> folders_;
  std::string ptx_folder_;
  std::map<uint32_t, File> files_;
};

// One instruction's share of a CUDA line.
struct CudaShare {
  CudaPosition position;
  uint32_t ptx_line = 0;
  uint64_t issued = 0, transactions = 0;
};

// A line of CUDA with the sums of its instructions.
struct CudaLine {
  uint32_t line = 0;
  std::string text;
  uint64_t issued = 0, transactions = 0;
  std::vector<uint32_t> ptx_lines; // ascending; empty for lines that are shown for context
};

struct CudaFileLines {
  uint32_t file = 0;
  std::string name;
  bool at_hand = false;
  std::vector<CudaLine> lines; // ascending; gaps of a few lines between those with instructions are filled
};

// Files with the most issued instructions first.
std::vector<CudaFileLines> lines_by_file(std::span<const CudaShare> shares, CudaSources& sources);

} // namespace ptxrewrite::evaluate
