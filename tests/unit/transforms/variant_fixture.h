// Runs a pipeline on a module, and both kernels on a launch: the variant if a launcher would select it.
#pragma once

#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "launch/variants.h"
#include "tests/unit/transforms/kernel_evaluator.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace ptxrewrite::tests {

inline std::unique_ptr<ir::Module> module_in(const std::string& text) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.list())
    messages += diagnostic.message + "\n";
  REQUIRE_MESSAGE(module, messages << text);
  return module;
}

struct RewrittenModule {
  std::unique_ptr<ir::Module> before, after;
  transforms::PipelineReport report;
  std::string text;

  RewrittenModule(const std::string& source, const std::string& passes) : before(module_in(source)) {
    std::unique_ptr<ir::Module> module = module_in(source);
    transforms::RunOptions options;
    options.verify_each = true;
    options.run_ptxas = false;
    auto pipeline = transforms::parse_pipeline(passes);
    REQUIRE_MESSAGE(pipeline, passes);
    auto ran = transforms::run_pipeline(*module, *pipeline, options);
    REQUIRE_MESSAGE(ran, ran.error().message);
    report = *std::move(ran);
    ir::print(*module, text);
    after = module_in(text);
  }

  bool changed() const { return text.find("//@") != std::string::npos; }
  size_t count(const std::string& part) const {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }
  // The text of the rewritten kernel, `k__...`, which follows the original.
  std::string variant() const {
    const size_t at = text.find(".entry k__");
    if (at == std::string::npos) return {};
    return text.substr(at, text.find("\n}\n", at) - at);
  }

  static const ir::Function& kernel(const ir::Module& module, const std::string& name) {
    for (const auto& function : module.functions)
      if (function->has_body && module.text(function->name) == name) return *function;
    FAIL("no kernel " << name);
    throw 0;
  }

  // Whether a launcher selects the variant. Then its memory accesses must equal those of the original.
  bool takes_variant(const ir::LaunchValues& launch) const {
    std::vector<std::byte> block;
    for (const auto& parameter : launch.parameters) {
      while (block.size() % parameter.size() != 0)
        block.push_back({});
      for (uint8_t byte : parameter)
        block.push_back(std::byte(byte));
    }
    auto variants = launch::Variants::of(*after, nullptr);
    REQUIRE(variants);
    auto choice = variants->choose("k", block, {launch.grid[0], launch.grid[1], launch.grid[2]},
                                   {launch.block[0], launch.block[1], launch.block[2]});
    REQUIRE(choice);
    if (choice->is_original) return false;
    ir::LaunchValues its = launch;
    const launch::Signature signature = launch::signature_of(*choice->entry);
    for (size_t i = launch.parameters.size(); i < signature.parameters.size(); ++i) {
      const launch::Parameter& parameter = signature.parameters[i];
      uint64_t number = 0;
      for (size_t byte = parameter.bytes; byte-- > 0;)
        number = number << 8 | std::to_integer<uint64_t>(choice->parameter_block[parameter.offset + byte]);
      its.add_parameter(number, static_cast<unsigned>(parameter.bytes));
    }
    CHECK(KernelEvaluator(kernel(*after, std::string(after->text(choice->entry->name))), its).run() ==
          KernelEvaluator(kernel(*before, "k"), launch).run());
    return true;
  }
};

} // namespace ptxrewrite::tests
