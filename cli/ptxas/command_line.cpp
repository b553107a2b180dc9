#include "cli/ptxas/command_line.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace ptxrewrite::cli {
namespace {

// Options that take their value from the next argument (ptxas --help of CUDA 13). All other options are flags or take
// it after '='. An option missing here would have its value taken for an input file only if such a file exists.
constexpr auto with_value = std::to_array<std::string_view>({
    "--Ofast-compile",
    "-Ofc",
    "--allow-expensive-optimizations",
    "-allow-expensive-optimizations",
    "--def-load-cache",
    "-dlcm",
    "--def-store-cache",
    "-dscm",
    "--device-function-maxrregcount",
    "-func-maxrregcount",
    "--device-stack-protector",
    "-device-stack-protector",
    "--entry",
    "-e",
    "--fmad",
    "-fmad",
    "--force-load-cache",
    "-flcm",
    "--force-store-cache",
    "-fscm",
    "--machine",
    "-m",
    "--maxntid",
    "-maxntid",
    "--maxrregcount",
    "-maxrregcount",
    "--minnctapersm",
    "-minnctapersm",
    "--opt-level",
    "-O",
    "--position-independent-code",
    "-pic",
    "--register-usage-level",
    "-regUsageLevel",
    "--sanitize",
    "-sanitize",
    "--split-compile",
    "-split-compile",
});
constexpr auto output_options = std::to_array<std::string_view>({"--output-file", "-o"});
constexpr auto architecture_options = std::to_array<std::string_view>({"--gpu-name", "-arch"});
constexpr auto text_options = std::to_array<std::string_view>({"--input-as-string", "-ias", "--options-file", "-optf"});

template <size_t N> bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

// Programs under `exec` run on the emulator, and their modules are rewritten when they are loaded.
bool is_under_exec() {
  return !text_of("PTXREWRITE_EMULATE").empty();
}

// Reads options in both forms: "-arch=sm_80" and "-arch sm_80".
class Reader {
public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  PtxasCommandLine run() {
    if (!is_under_exec()) line_.passes = text_of("PTXREWRITE_PASSES");
    const std::string emulated = text_of("PTXREWRITE_EMULATED");
    line_.emulated = emulated.empty() ? is_under_exec() : emulated != "0";
    if (!words_.empty() && std::filesystem::path(words_[0]).filename().string().starts_with("ptxas") &&
        !words_[0].ends_with(".ptx"))
      line_.program = words_[next_++];
    while (next_ < words_.size())
      word(words_[next_++]);
    line_.only_asks = line_.inputs.empty() && !line_.has_text;
    return std::move(line_);
  }

private:
  void word(const std::string& word) {
    constexpr std::string_view passes = "--ptxrewrite-passes=";
    if (word == "--emulated") {
      line_.emulated = true;
      return;
    }
    if (word.starts_with(passes)) {
      line_.passes = word.substr(passes.size());
      return;
    }
    line_.arguments.push_back(word);
    if (word.starts_with('-'))
      option(word);
    else if (std::error_code failure; std::filesystem::exists(word, failure) || word.ends_with(".ptx"))
      line_.inputs.push_back(line_.arguments.size() - 1);
  }

  void option(const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    line_.asks_version |= name == "--version" || name == "-V";
    line_.asks_help |= name == "--help" || name == "-h";
    line_.relocatable |= name == "--compile-only" || name == "-c";
    line_.has_text |= contains(text_options, name);
    if (contains(output_options, name))
      line_.output = value(word, name);
    else if (contains(architecture_options, name))
      line_.architecture = value(word, name);
    else if (contains(with_value, name) || contains(text_options, name))
      value(word, name);
  }

  std::string value(const std::string& word, const std::string& name) {
    if (word.size() > name.size()) return word.substr(name.size() + 1);
    if (next_ == words_.size()) return "";
    line_.arguments.push_back(words_[next_++]);
    return line_.arguments.back();
  }

  const std::vector<std::string>& words_;
  size_t next_ = 0;
  PtxasCommandLine line_;
};

} // namespace

PtxasCommandLine read_ptxas_command_line(const std::vector<std::string>& arguments) {
  return Reader(arguments).run();
}

} // namespace ptxrewrite::cli
