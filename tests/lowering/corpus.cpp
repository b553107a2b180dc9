// Lists a folder of folders of PTX files, see corpus.h.
#include "tests/lowering/corpus.h"

#include "ir/machine/figures/machine.h"
#include "support/mix.h"

#include <algorithm>
#include <filesystem>
#include <regex>

namespace ptxrewrite::tests {

namespace {

namespace fs = std::filesystem;

uint64_t hash_of(const std::string& name) {
  uint64_t hash = name.size();
  for (const char c : name)
    hash = mixed_bits(hash * 31 + static_cast<unsigned char>(c));
  return hash;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    entries.push_back(at->path());
  std::ranges::sort(entries);
  return entries;
}

} // namespace

std::vector<CorpusFile> corpus_files(const std::string& folder, const std::vector<std::string>& groups,
                                     size_t most_bytes) {
  std::vector<CorpusFile> files;
  for (const fs::path& group : sorted_entries(folder)) {
    const std::string name = group.filename().string();
    if (!fs::is_directory(group) || (!groups.empty() && std::ranges::find(groups, name) == groups.end())) continue;
    std::vector<std::pair<uint64_t, std::string>> ordered;
    for (const fs::path& file : sorted_entries(group)) {
      std::error_code failure;
      if (file.extension() != ".ptx" || fs::file_size(file, failure) > most_bytes || failure) continue;
      ordered.emplace_back(hash_of(file.filename().string()), file.string());
    }
    std::ranges::sort(ordered);
    for (auto& [hash, path] : ordered)
      files.push_back({name, std::move(path)});
  }
  return files;
}

std::string text_for_target(const std::string& source, const std::string& architecture) {
  static const std::regex target(R"(\.target\s+sm_(\d+)\w*)");
  std::smatch found;
  if (!std::regex_search(source, found, target) || std::stoul(found[1]) <= ir::compute_capability_of(architecture))
    return source;
  return std::string(found.prefix()) + ".target " + architecture + std::string(found.suffix());
}

} // namespace ptxrewrite::tests
