#include "evaluate/diff/compare.h"

#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace ptxrewrite::evaluate {

namespace {

Difference compare(std::string name, std::vector<ListingLine> left, std::vector<ListingLine> right, Alignment how) {
  Difference part{std::move(name), std::move(left), std::move(right), {}, {}};
  part.rows = align(part.left, part.right, how);
  part.counts = count(part.rows, part.left, part.right);
  return part;
}

} // namespace

DifferenceReport compare_files(ModuleListing left, ModuleListing right) {
  constexpr Alignment how = Alignment::text;
  DifferenceReport report;
  report.parts.push_back(compare("", std::move(left.items), std::move(right.items), how));
  std::map<std::string, FunctionListing*> named, variants;
  for (FunctionListing& function : right.functions) {
    named.emplace(function.name, &function);
    if (!function.variant_of.empty()) variants.emplace(function.variant_of, &function);
  }
  for (FunctionListing& function : left.functions) {
    auto same_name = named.extract(function.name);
    auto variant = variants.find(function.name);
    FunctionListing* partner = same_name ? same_name.mapped() : nullptr;
    std::string title = function.name;
    if (variant != variants.end() && named.erase(variant->second->name)) {
      partner = variant->second;
      title += " -> " + partner->name;
    }
    report.parts.push_back(compare(std::move(title), std::move(function.lines),
                                   partner ? std::move(partner->lines) : std::vector<ListingLine>(), how));
  }
  for (FunctionListing& function : right.functions)
    if (named.contains(function.name))
      report.parts.push_back(compare(function.name, {}, std::move(function.lines), how));
  return report;
}

DifferenceReport compare_rewritten(ModuleListing left, ModuleListing right, const std::string& selection) {
  DifferenceReport report;
  report.parts.push_back(compare("", std::move(left.items), std::move(right.items), Alignment::text));
  std::vector<Difference> added;
  for (FunctionListing& function : right.functions) {
    auto by_id = [&](const FunctionListing& other) { return other.id == function.id; };
    auto by_name = [&](const FunctionListing& other) { return other.name == function.name; };
    auto origin = std::find_if(left.functions.begin(), left.functions.end(), by_id);
    if (origin != left.functions.end()) {
      if (!transforms::matches_glob(selection, origin->name)) continue;
      std::string name = origin->name == function.name ? function.name : origin->name + " -> " + function.name;
      report.parts.push_back(compare(std::move(name), origin->lines, std::move(function.lines), Alignment::provenance));
      continue;
    }
    origin = std::find_if(left.functions.begin(), left.functions.end(), by_name);
    Difference part =
        compare(function.name, origin == left.functions.end() ? std::vector<ListingLine>() : origin->lines,
                std::move(function.lines), Alignment::provenance);
    if (!part.identical()) added.push_back(std::move(part));
  }
  std::move(added.begin(), added.end(), std::back_inserter(report.parts));
  return report;
}

} // namespace ptxrewrite::evaluate
