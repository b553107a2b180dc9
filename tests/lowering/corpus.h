// The PTX files of the table: groups of public files, one folder each, and files named one by one.
#pragma once

#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct CorpusFile {
  std::string group;
  std::string path;
};

// Files of all folders in `folder` (or of `groups` alone, if not empty), group by group. Within a group they stand in
// the order of a hash of their names, so that the first ones are an arbitrary sample. Files of more than
// `most_bytes` are left out.
std::vector<CorpusFile> corpus_files(const std::string& folder, const std::vector<std::string>& groups,
                                     size_t most_bytes);

// The text as one for `architecture`, if it is for a newer target: assemblers refuse texts for newer targets than the
// one that they assemble for. If it needs the newer one, they refuse the result.
std::string text_for_target(const std::string& source, const std::string& architecture);

} // namespace ptxrewrite::tests
