#include "evaluate/bench/autotune.h"

#include "grammar/reader.h"
#include "ir/core/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace ptxrewrite::evaluate {

TunedChoice choose(const Bench& bench, size_t shape) {
  TunedChoice choice;
  for (size_t i = 0; i < bench.candidates().size(); ++i) {
    const BenchCandidate& candidate = bench.candidates()[i];
    if (candidate.state != CandidateState::timed || candidate.rewritten_launches[shape] == 0) continue;
    Speedup speedup = bench.speedup(CacheState::warm, i, shape);
    if (speedup.interval.low <= 1 || (choice.candidate && speedup.ratio <= choice.speedup.ratio)) continue;
    choice = {i, std::move(speedup)};
  }
  return choice;
}

namespace {

std::string shape_condition(const BenchShape& shape) {
  std::string condition;
  auto add = [&](const char* name, const launch::Dim3& dimensions) {
    condition += fmt::format("{}{}.x == {} && {}.y == {} && {}.z == {}", condition.empty() ? "" : " && ", name,
                             dimensions.x, name, dimensions.y, name, dimensions.z);
  };
  add("nctaid", shape.grid);
  add("ntid", shape.block);
  return condition;
}

class TunedWriter {
public:
  TunedWriter(const LaunchInput& input, const Bench& bench) : input_(input), bench_(bench) {
    tuned_.text = ir::print(*input.module);
    for (const auto& function : input.module->functions)
      taken_.emplace(input.module->text(function->name));
    // Kernels that were not launched keep their entries in the side file.
    if (input.side_file)
      for (const launch::SideKernel& kernel : input.side_file->kernels)
        if (std::ranges::none_of(bench.shapes(), [&](const BenchShape& shape) { return shape.kernel == kernel.name; }))
          tuned_.side_file.kernels.push_back(kernel);
  }

  Status add(const BenchShape& shape, std::optional<size_t> chosen) {
    launch::SideKernel& kernel = described(shape.kernel);
    if (!chosen) return {};
    const BenchCandidate& candidate = bench_.candidates()[*chosen];
    std::vector<launch::Variant> variants;
    if (candidate.variants) {
      const std::span<const launch::Variant> own = candidate.variants->of_kernel(shape.kernel);
      variants.assign(own.begin(), own.end());
    }
    if (variants.empty()) variants.push_back({.entry = shape.kernel}); // rewritten in place
    for (const launch::Variant& variant : variants) {
      if (!variant.unreadable.empty()) continue;
      Result<std::string> entry = entry_of(*chosen, variant.entry);
      if (!entry) return entry.error();
      std::string when = shape_condition(shape);
      for (const launch::LaunchExpression& requirement : variant.requirements)
        when += " && (" + requirement.text() + ')';
      Result<launch::LaunchExpression> condition = launch::LaunchExpression::parse(when);
      if (!condition) return Error{"the conditions of '" + variant.entry + "': " + condition.error().message, {}};
      kernel.variants.push_back({*entry, *std::move(condition), variant.parameters, variant.grid});
    }
    return {};
  }

  void note(std::string text) { tuned_.notes.push_back(std::move(text)); }

  Result<TunedModule> finish() {
    Diagnostics diagnostics;
    const std::string name = input_.module->source.name() + " as tuned";
    if (!grammar::read_module(SourceFile(name, tuned_.text), diagnostics))
      return Error{"the chosen kernels make no module together: " + diagnostics.list().front().message, {}};
    return std::move(tuned_);
  }

private:
  launch::SideKernel& described(const std::string& name) {
    for (launch::SideKernel& kernel : tuned_.side_file.kernels)
      if (kernel.name == name) return kernel;
    std::string original = name;
    if (input_.side_file)
      for (const launch::SideKernel& kernel : input_.side_file->kernels)
        if (kernel.name == name) original = kernel.original;
    return tuned_.side_file.kernels.emplace_back(launch::SideKernel{name, original, {}});
  }

  // Returns the name that an entry of a candidate's module has in the tuned module; adds the entry's text if it is
  // missing.
  Result<std::string> entry_of(size_t chosen, const std::string& entry) {
    const BenchCandidate& candidate = bench_.candidates()[chosen];
    if (!candidate.module) return entry; // one of the input's own variants
    std::string& name = names_[{chosen, entry}];
    if (!name.empty()) return name;
    ir::Module& module = *candidate.module;
    if (module.version_major != input_.module->version_major || module.version_minor != input_.module->version_minor)
      return Error{"'" + candidate.name + "' needs another PTX version", {}};
    const auto function =
        std::ranges::find_if(module.functions, [&](const auto& one) { return module.text(one->name) == entry; });
    if (function == module.functions.end()) return Error{"no kernel '" + entry + "'", {}};
    name = entry;
    for (unsigned number = 1; !taken_.insert(name).second; ++number)
      name = fmt::format("{}__tuned_{}", entry, number);
    const Symbol own_name = (*function)->name;
    (*function)->name = module.intern(name);
    tuned_.text += "\n// by " + candidate.name + '\n';
    ir::print(**function, tuned_.text);
    (*function)->name = own_name;
    return name;
  }

  const LaunchInput& input_;
  const Bench& bench_;
  TunedModule tuned_;
  std::set<std::string> taken_;                                 // names of functions
  std::map<std::pair<size_t, std::string>, std::string> names_; // by candidate and entry there
};

} // namespace

Result<TunedModule> tuned_module(const LaunchInput& input, const Bench& bench,
                                 const std::vector<TunedChoice>& choices) {
  TunedWriter writer(input, bench);
  const std::vector<BenchShape>& shapes = bench.shapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::optional<size_t> chosen = choices[i].candidate;
    bool said_before = false;
    // Conditions can depend on grid and block, but not on dynamic shared memory.
    for (size_t other = 0; other < shapes.size(); ++other) {
      if (other == i || shapes[other].kernel != shapes[i].kernel || shapes[other].grid != shapes[i].grid ||
          shapes[other].block != shapes[i].block)
        continue;
      said_before |= other < i;
      if (choices[other].candidate != choices[i].candidate) chosen.reset();
    }
    if (said_before) continue;
    if (chosen != choices[i].candidate)
      writer.note(fmt::format("{} <<<{}, {}>>>: choices differ with the dynamic shared memory; the original stays",
                              shapes[i].kernel, to_string(shapes[i].grid), to_string(shapes[i].block)));
    if (Status status = writer.add(shapes[i], chosen); !status) return status.error();
  }
  return writer.finish();
}

} // namespace ptxrewrite::evaluate
