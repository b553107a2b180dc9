#include "evaluate/common/agreement.h"

#include "evaluate/common/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ptxrewrite::evaluate {
namespace {

double mean(std::span<const double> values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::sort(order, [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> of(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]])
      ++last;
    for (size_t i = first; i <= last; ++i)
      of[order[i]] = static_cast<double>(first + last) / 2 + 1;
    first = last + 1;
  }
  return of;
}

} // namespace

std::vector<double> relative_errors(std::span<const double> measured, std::span<const double> estimated) {
  std::vector<double> errors;
  for (size_t i = 0; i < std::min(measured.size(), estimated.size()); ++i)
    errors.push_back(std::abs(estimated[i] - measured[i]) / measured[i]);
  return errors;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.size() < 2) return 0;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean_x = mean(x), mean_y = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double kendall_tau(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return 0;
  double agree = 0, in_a = 0, in_b = 0; // pairs: concordant minus discordant; with different values in a; in b
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const int x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
      agree += x * y;
      in_a += x != 0;
      in_b += y != 0;
    }
  return in_a > 0 && in_b > 0 ? agree / std::sqrt(in_a * in_b) : 0;
}

double regret_of_choice(std::span<const double> measured, std::span<const double> estimated) {
  if (measured.empty() || measured.size() != estimated.size()) return 0;
  const auto picked = static_cast<size_t>(std::ranges::min_element(estimated) - estimated.begin());
  return measured[picked] / *std::ranges::min_element(measured) - 1;
}

Agreement agreement(std::span<const MeasuredPoint> points, size_t which) {
  std::vector<double> measured, estimated, scaled;
  std::map<std::string, std::vector<double>> ratios; // by suite, logarithms
  for (const MeasuredPoint& point : points) {
    measured.push_back(point.seconds);
    estimated.push_back(point.estimates[which]);
    ratios[point.suite].push_back(std::log(point.seconds / point.estimates[which]));
  }
  Agreement result;
  const std::vector<double> errors = relative_errors(measured, estimated);
  result.mape = mean(errors);
  result.p90 = quantile(errors, 0.9);
  result.spearman = spearman(measured, estimated);
  result.kendall = kendall_tau(measured, estimated);
  if (ratios.size() < 2) return result;
  for (size_t i = 0; i < points.size(); ++i) {
    std::vector<double> of_others;
    for (const auto& [suite, logarithms] : ratios)
      if (suite != points[i].suite) of_others.insert(of_others.end(), logarithms.begin(), logarithms.end());
    scaled.push_back(estimated[i] * std::exp(mean(of_others)));
  }
  const std::vector<double> scaled_errors = relative_errors(measured, scaled);
  result.mape_scaled = mean(scaled_errors);
  result.p90_scaled = quantile(scaled_errors, 0.9);
  return result;
}

} // namespace ptxrewrite::evaluate
