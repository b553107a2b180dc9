#include "evaluate/score/score_captured.h"

#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace ptxrewrite::evaluate {
namespace {

namespace fs = std::filesystem;

std::string sample_name(const std::string& launch_file) {
  return fs::path(launch_file).stem().string();
}

// Samples with an original, in the order of the originals; if a sample was scored twice, the one on slices is ignored.
std::vector<ScoredFile> stand_ins(std::span<const ScoredFile> samples, std::span<const ScoredFile> originals) {
  std::vector<ScoredFile> found;
  for (const ScoredFile& original : originals)
    for (const ScoredFile& sample : samples)
      if (!sample.as_dense && sample_name(sample.file) == original.file) found.push_back(sample);
  return found;
}

std::string text_of(const OurFigure& figure) {
  if (figure.files == 0) return "-";
  const std::string least = fmt::format("{:.3f}", figure.least), most = fmt::format("{:.3f}", figure.most);
  return least == most ? least : least + " .. " + most;
}

} // namespace

std::vector<std::string> captured_launches(const std::string& folder, const std::string& launch_file) {
  std::vector<std::string> launches;
  std::error_code error; // a missing folder counts as empty
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / sample_name(launch_file), error))
    if (fs::is_regular_file(entry.path() / "launch.toml", error))
      launches.push_back((entry.path() / "launch.toml").string());
  std::ranges::sort(launches);
  return launches;
}

ScoredFile merged_launches(std::vector<ScoredFile> launches, const std::string& name) {
  ScoredFile merged = std::move(launches.front());
  merged.file = name;
  for (size_t i = 1; i < launches.size(); ++i)
    std::erase_if(merged.versions, [&](ScoredVersion& version) {
      const auto other = std::ranges::find(launches[i].versions, version.name, &ScoredVersion::name);
      if (other == launches[i].versions.end()) return true;
      version.kernels.insert(version.kernels.end(), other->kernels.begin(), other->kernels.end());
      version.staging += other->staging;
      return false;
    });
  return merged;
}

std::string captured_text(const Paper& paper, std::span<const ScoredFile> samples,
                          std::span<const ScoredFile> originals) {
  const std::vector<ScoredFile> ours = stand_ins(samples, originals);
  TextTable rows{{{"benchmark", false},
                  {"version", false},
                  {"sample: speed-up", true},
                  {"original: speed-up", true},
                  {"sample: fewer instructions %", true},
                  {"original: fewer instructions %", true}},
                 {}};
  for (size_t i = 0; i < ours.size(); ++i)
    for (const ScoredVersion& version : ours[i].versions) {
      FileGain sample, original;
      if (version.name == ours[i].versions.front().name || !gain_of(ours[i], version.name, sample) ||
          !gain_of(originals[i], version.name, original))
        continue;
      rows.rows.push_back({originals[i].file, version.name, fmt::format("{:.3f}", sample.speedup),
                           fmt::format("{:.3f}", original.speedup),
                           fmt::format("{:.1f}", 100 * sample.fewer_instructions),
                           fmt::format("{:.1f}", 100 * original.fewer_instructions)});
    }
  TextTable figures{{{"these benchmarks", false}, {"paper", true}, {"samples", true}, {"originals", true}}, {}};
  for (const PaperTimeFigure& figure : paper_time_figures())
    if (figure.paper == paper.name)
      figures.rows.push_back({std::string(figure.what), fmt::format("{:.3f}", figure.reported),
                              text_of(our_figure(figure, ours)), text_of(our_figure(figure, originals))});
  return "Samples and captures of the benchmarks that they stand for:\n" + rows.text() + '\n' + figures.text();
}

nlohmann::ordered_json captured_json(const Paper& paper, std::span<const ScoredFile> samples,
                                     std::span<const ScoredFile> originals) {
  const std::vector<ScoredFile> ours = stand_ins(samples, originals);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PaperTimeFigure& figure : paper_time_figures()) {
    if (figure.paper != paper.name) continue;
    const OurFigure sample = our_figure(figure, ours), original = our_figure(figure, originals);
    nlohmann::ordered_json row = {{"figure", figure.what}, {"files", original.files}, {"reported", figure.reported}};
    if (sample.files) row["samples_least"] = sample.least, row["samples_most"] = sample.most;
    if (original.files) row["originals_least"] = original.least, row["originals_most"] = original.most;
    rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace ptxrewrite::evaluate
