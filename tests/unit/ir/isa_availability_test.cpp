// The versions and targets that support a form: against those accepted by ptxas.
#include "ir/isa/isa_availability.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace ptxrewrite::tests::isa_availability_test {

using namespace ptxrewrite::ir;

namespace {

std::vector<std::vector<std::string>> rows_of(const char* name) {
  std::ifstream file(ptxrewrite::tests::source_path(name));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream columns(line + "\t");
    for (std::string column; std::getline(columns, column, '\t');)
      row.push_back(column);
  }
  return rows;
}

PtxVersion version_of(const std::string& text) {
  return {static_cast<unsigned>(std::stoul(text)), static_cast<unsigned>(std::stoul(text.substr(text.find('.') + 1)))};
}

const Form& form_of(const std::string& mnemonic) {
  auto resolved = resolve_form(mnemonic);
  REQUIRE(resolved.ok());
  return form(*resolved);
}

// All existing versions, in order, each with its targets.
using Versions = std::vector<std::pair<PtxVersion, std::vector<std::string>>>;

Versions all_versions() {
  Versions versions;
  for (const auto& row : rows_of("tests/isa/version_target.tsv")) {
    std::istringstream words(row[1]);
    std::vector<std::string> targets;
    for (std::string word; words >> word;)
      targets.push_back(word);
    versions.emplace_back(version_of(row[0]), targets);
  }
  return versions;
}

} // namespace

TEST_CASE("the first version of each target is ptxas'") {
  const Versions versions = all_versions();
  REQUIRE(versions.size() == 49);
  std::map<std::string, PtxVersion> first;
  for (const auto& [version, targets] : versions)
    for (const std::string& target : targets)
      first.try_emplace(target, version);
  CHECK(first.size() > 40);
  for (const auto& [target, version] : first) {
    CAPTURE(target);
    CHECK(first_version_of_target(target) == version);
  }
  CHECK(!first_version_of_target("sm_999"));
}

TEST_CASE("forms are there from the version and target on that ptxas accepts, and not before") {
  const Versions versions = all_versions();
  const auto rows = rows_of("tests/isa/availability.tsv");
  REQUIRE(rows.size() > 700);
  size_t refused_versions = 0, refused_targets = 0;
  for (const auto& row : rows) {
    const Form& f = form_of(row[0]);
    CAPTURE(row[0]);
    const PtxVersion first = version_of(row[1]);
    if (!row[3].ends_with('+')) continue; // of one architecture, or removed: below
    const std::string lowest = row[3].substr(0, row[3].size() - 1);
    for (const auto& [version, targets] : versions) {
      CAPTURE(version.major);
      CAPTURE(version.minor);
      const bool gone = !row[2].empty() && version > version_of(row[2]);
      if (version < first || gone) {
        CHECK(why_not_available(f, version, lowest) != "");
        ++refused_versions;
      } else if (std::ranges::find(targets, lowest) != targets.end()) {
        CHECK(why_not_available(f, version, lowest) == "");
        CHECK(why_not_available(f, version, targets.back()) == "");
      }
    }
    if (lowest != "sm_10") {
      CHECK(why_not_available(f, {9, 0}, "sm_10") != "");
      ++refused_targets;
    }
  }
  CHECK(refused_versions > 5000);
  CHECK(refused_targets > 300);
}

TEST_CASE("forms of single architectures, and forms that are gone") {
  CHECK(why_not_available(form_of("wgmma.fence.sync.aligned"), {8, 0}, "sm_90a") == "");
  CHECK(why_not_available(form_of("wgmma.fence.sync.aligned"), {8, 0}, "sm_90") != "");
  CHECK(why_not_available(form_of("wgmma.fence.sync.aligned"), {9, 0}, "sm_100a") != "");
  CHECK(why_not_available(form_of("vote.all.pred"), {6, 4}, "sm_62") == "");
  CHECK(why_not_available(form_of("vote.all.pred"), {6, 4}, "sm_70") == "needs PTX 1.2+, sm_12..sm_62");
  CHECK(why_not_available(form_of("div.f32"), {1, 3}, "sm_13") == "");
  CHECK(why_not_available(form_of("div.f32"), {9, 0}, "sm_90") == "needs PTX 1.0..1.3, sm_11..sm_13");
  CHECK(why_not_available(form_of("cvta.shared::cluster.u64"), {3, 2}, "sm_35") == "needs PTX 7.8+, sm_90+");
  // Each word of `ld` has a first version of its own.
  CHECK(why_not_available(form_of("ld.global.u32"), {1, 0}, "sm_10") == "");
  CHECK(why_not_available(form_of("ld.global.L2::128B.u32"), {1, 0}, "sm_10") != "");
}

} // namespace ptxrewrite::tests::isa_availability_test
