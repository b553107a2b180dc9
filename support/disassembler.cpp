#include "support/disassembler.h"

#include "support/cuda_programs.h"
#include "support/file_io.h"
#include "support/process.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace ptxrewrite {

namespace {

constexpr std::string_view whitespace = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(whitespace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(whitespace) + 1 - begin);
}

// The rest of `text` after `prefix`; empty if it does not begin with it.
std::string_view after(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}

class DisassemblyReader {
public:
  void line(std::string_view text) {
    text = trimmed(text);
    if (const std::string_view section = after(text, ".section\t"); !section.empty()) { // not .sectioninfo
      begin_section(trimmed(section));
    } else if (text.starts_with("//## File")) {
      take_line_number(text);
    } else if (const std::string_view place = after(text, "/*"); !place.empty() && in_function_) {
      take_instruction(place);
    }
  }
  std::vector<SassFunction> take() && { return std::move(functions_); }

private:
  void begin_section(std::string_view section) {
    const std::string_view name = after(section, ".text.");
    in_function_ = !name.empty();
    ptx_line_ = 0;
    if (in_function_) functions_.push_back({std::string(name.substr(0, name.find(','))), {}});
  }

  // `//## File ".nv_debug_ptx_txt", line 118`: the text that ptxas read. Other files are CUDA sources.
  void take_line_number(std::string_view text) {
    constexpr std::string_view before = "\".nv_debug_ptx_txt", word = "line ";
    const size_t file = text.find(before), at = text.find(word, file == std::string_view::npos ? 0 : file);
    if (file == std::string_view::npos || at == std::string_view::npos) return;
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), ptx_line_);
  }

  // `0010*/   @P0 EXIT ;`, with braces around what issues together on older machines.
  void take_instruction(std::string_view text) {
    const size_t end = text.find("*/");
    uint32_t offset = 0;
    if (end == std::string_view::npos) return;
    const auto read = std::from_chars(text.data(), text.data() + end, offset, 16);
    if (read.ptr != text.data() + end) return;
    std::string_view instruction = text.substr(end + 2);
    instruction = trimmed(instruction.substr(0, instruction.find(';')));
    if (instruction.starts_with('{')) instruction = trimmed(instruction.substr(1));
    if (instruction.empty()) return;
    functions_.back().instructions.push_back({offset, ptx_line_, std::string(instruction)});
  }

  std::vector<SassFunction> functions_;
  uint32_t ptx_line_ = 0;
  bool in_function_ = false;
};

} // namespace

Result<std::string> find_nvdisasm() {
  if (const char* chosen = std::getenv("PTXREWRITE_NVDISASM"); chosen != nullptr && *chosen != '\0') {
    if (std::string path = find_program(chosen); !path.empty()) return path;
    return Error{std::string("PTXREWRITE_NVDISASM names '") + chosen + "', which is not an executable", {}};
  }
  for (const std::string& folder : cuda_program_folders())
    if (std::string path = find_program(folder + "/nvdisasm"); !path.empty()) return path;
  return Error{
      "nvdisasm not found: install the CUDA toolkit, put nvdisasm on PATH, set PTXREWRITE_NVDISASM to its path, "
      "or run ./bootstrap ptxas",
      {}};
}

Result<std::vector<SassFunction>> disassemble(std::string_view cubin) {
  const Result<std::string> program = find_nvdisasm();
  if (!program) return program.error();
  const Result<TempDirectory> directory = TempDirectory::create();
  if (!directory) return directory.error();
  const std::string path = directory->file("in.cubin");
  if (const Status written = write_file(path, cubin); !written) return written.error();
  ProcessOptions command;
  command.arguments = {*program, "-gp", "-c", path};
  command.timeout_seconds = 3600;
  command.output_limit = size_t(1) << 30;
  const Result<ProcessResult> child = run_process(command);
  if (!child) return child.error();
  if (!child->succeeded()) {
    const std::string_view message = trimmed(std::string_view(child->err).substr(0, child->err.find('\n')));
    return Error{"nvdisasm refuses the file: " + std::string(message), {}};
  }
  return parse_disassembly(child->out);
}

std::vector<SassFunction> parse_disassembly(std::string_view text) {
  DisassemblyReader reader;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(reader).take();
}

} // namespace ptxrewrite
