#include "evaluate/score/score_rank.h"

#include "evaluate/score/score_report.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;
using timing::Cause;
using timing::cause_count;

// Probability that a standard normal variable exceeds x.
double upper_tail(double x) {
  return 0.5 * std::erfc(x / std::sqrt(2.0));
}

double density(double x) {
  constexpr double of_zero = 0.3989422804014327; // 1 / sqrt(2 pi)
  return of_zero * std::exp(-x * x / 2);
}

Cause largest(const timing::CauseClocks& stack) {
  return static_cast<Cause>(std::max_element(stack.begin(), stack.end()) - stack.begin());
}

double clocks_of(const timing::CauseClocks& stack) {
  double sum = 0;
  for (double clocks : stack)
    sum += clocks;
  return sum;
}

RankedVariant variant_of(const ScoredFile& file, const ScoredVersion& version) {
  RankedVariant variant{.file = &file, .version = &version, .seconds = 0, .stack = {}, .pick = {}};
  for (const ScoredKernel& kernel : version.kernels) {
    variant.seconds += kernel.seconds;
    for (size_t i = 0; i < cause_count; ++i)
      variant.stack[i] += kernel.stack[i];
  }
  return variant;
}

// "memory port 62 %, issue 21 %": the two largest parts of the time.
std::string bound_text(const timing::CauseClocks& stack) {
  const double all = clocks_of(stack);
  if (all <= 0) return {};
  timing::CauseClocks rest = stack;
  std::string text;
  for (int i = 0; i < 2; ++i) {
    const Cause cause = largest(rest);
    const double share = rest[static_cast<size_t>(cause)] / all;
    if (i && share < 0.1) break;
    text += fmt::format("{}{} {:.0f} %", i ? ", " : "", timing::spelling(cause), 100 * share);
    rest[static_cast<size_t>(cause)] = 0;
  }
  return text;
}

} // namespace

// Both integrals are over y = ln(time). S_j(y) is the probability that j's sample exceeds y, f_i the density of i's:
//   chance_i = integral of f_i(y) * product over j != i of S_j(y);
//   regret_i = E[exp(x_i - min x_j)] - 1 over j including i
//            = integral of (1 - product over j != i of S_j(y)) * E[exp(x_i - y); x_i > y], integrated by parts.
std::vector<PickStatistics> pick_statistics(std::span<const double> times, double error) {
  std::vector<PickStatistics> picks(times.size());
  if (times.empty()) return picks;
  std::vector<double> means;
  for (double time : times)
    means.push_back(std::log(time));
  const auto [least, most] = std::minmax_element(means.begin(), means.end());
  constexpr double margin = 8, steps_by_error = 16, least_log = -700; // integration range in standard deviations; steps
                                                                      // per standard deviation; logarithms below count
                                                                      // as 0
  const double step = error / steps_by_error;
  const double first = *least - margin * error, last = *most + error * error + margin * error;
  const auto steps = static_cast<size_t>((last - first) / step) + 1;
  std::vector<double> beyond(times.size()); // ln S_j(y)
  for (size_t number = 0; number <= steps; ++number) {
    const double y = first + static_cast<double>(number) * step;
    double all = 0;
    for (size_t j = 0; j < means.size(); ++j) {
      const double tail = upper_tail((y - means[j]) / error);
      beyond[j] = tail > 0 ? std::max(std::log(tail), least_log) : least_log;
      all += beyond[j];
    }
    for (size_t i = 0; i < means.size(); ++i) {
      const double others = std::exp(all - beyond[i]);
      picks[i].chance += step * others * density((y - means[i]) / error) / error;
      const double longer =
          std::exp(means[i] - y + error * error / 2) * upper_tail((y - means[i] - error * error) / error);
      picks[i].regret += step * (1 - others) * longer;
    }
  }
  return picks;
}

std::vector<Ranking> rankings_of(std::span<const ScoredFile> files) {
  std::vector<Ranking> rankings;
  for (const ScoredFile& file : files) {
    const std::string machine = machine_title(file);
    auto ranking = std::ranges::find_if(rankings, [&](const Ranking& one) { return one.machine == machine; });
    if (ranking == rankings.end()) ranking = rankings.insert(ranking, {machine, {}, {}});
    for (const ScoredVersion& version : file.versions) {
      const RankedVariant variant = variant_of(file, version);
      if (variant.seconds <= 0) continue; // the requested kernel was not launched
      (version.remark.empty() ? ranking->variants : ranking->same_as_another).push_back(variant);
    }
  }
  for (Ranking& ranking : rankings) {
    std::ranges::stable_sort(ranking.variants, {}, &RankedVariant::seconds);
    std::vector<double> times;
    for (const RankedVariant& variant : ranking.variants)
      times.push_back(variant.seconds);
    const std::vector<PickStatistics> picks = pick_statistics(times, rank_error);
    for (size_t i = 0; i < picks.size(); ++i)
      ranking.variants[i].pick = picks[i];
  }
  return rankings;
}

std::string rank_text(const Ranking& ranking) {
  std::string out = fmt::format("{} variants on {}\n", ranking.variants.size(), ranking.machine);
  TextTable table{{{"rank", true},
                   {"file", false},
                   {"version", false},
                   {"us", true},
                   {"of the first", true},
                   {"fastest: chance %", true},
                   {"regret %", true},
                   {"bound by", false}},
                  {}};
  for (size_t i = 0; i < ranking.variants.size(); ++i) {
    const RankedVariant& variant = ranking.variants[i];
    table.rows.push_back({fmt::format("{}", i + 1), variant.file->file, variant.version->name,
                          fmt::format("{:.2f}", variant.seconds * 1e6),
                          fmt::format("{:.3f}", variant.seconds / ranking.variants.front().seconds),
                          fmt::format("{:.0f}", 100 * variant.pick.chance),
                          fmt::format("{:.0f}", 100 * variant.pick.regret), bound_text(variant.stack)});
  }
  out += table.text();
  for (const RankedVariant& variant : ranking.same_as_another)
    out += fmt::format("{}, {}: {}\n", variant.file->file, variant.version->name, variant.version->remark);
  return out;
}

json rank_json(const Ranking& ranking) {
  json variants = json::array();
  for (size_t i = 0; i < ranking.variants.size(); ++i) {
    const RankedVariant& variant = ranking.variants[i];
    const double all = clocks_of(variant.stack);
    json shares = json::object();
    for (size_t cause = 0; cause < cause_count; ++cause)
      if (variant.stack[cause] > 0)
        shares[std::string(timing::spelling(static_cast<Cause>(cause)))] = variant.stack[cause] / all;
    variants.push_back({{"rank", i + 1},
                        {"file", variant.file->file},
                        {"version", variant.version->name},
                        {"seconds", variant.seconds},
                        {"of_the_first", variant.seconds / ranking.variants.front().seconds},
                        {"chance_fastest", variant.pick.chance},
                        {"expected_regret", variant.pick.regret},
                        {"bound_by", timing::spelling(largest(variant.stack))},
                        {"shares", std::move(shares)}});
  }
  json same = json::array();
  for (const RankedVariant& variant : ranking.same_as_another)
    same.push_back(
        {{"file", variant.file->file}, {"version", variant.version->name}, {"remark", variant.version->remark}});
  return {{"gpu", ranking.machine},
          {"error", rank_error},
          {"variants", std::move(variants)},
          {"same_as_another", std::move(same)}};
}

} // namespace ptxrewrite::evaluate
