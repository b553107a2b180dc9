#include "evaluate/exec/comparing.h"

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ptxrewrite::evaluate {
namespace {

constexpr uint64_t random_orders = 4; // the same number as in `verify`
constexpr size_t step = 4096;         // bytes compared at once

// One buffer or variable: its bytes before the launch, and after it in the program and on the copy.
struct Place {
  std::string name;
  uint64_t address = 0;
  bool is_variable = false;
  std::span<const std::byte> before, original, rewritten;
};

// Calls `visit` for each buffer and variable of a plan; `result` has the state on the copy.
template <class Visit>
void for_each_place(const cuda::LaunchCall& call, const launch::LaunchPlan& plan, const cuda::SessionResult& result,
                    const Visit& visit) {
  const auto one = [&](size_t number, const launch::Buffer& buffer, std::span<const std::byte> now,
                       const std::vector<std::vector<std::byte>>& copies, bool is_variable) {
    const std::span<const std::byte> copy =
        number < copies.size() ? std::span<const std::byte>(copies[number]) : std::span<const std::byte>();
    const size_t bytes = std::min({buffer.contents.bytes->size(), now.size(), copy.size()});
    visit(number, Place{buffer.name, buffer.address, is_variable, std::span(*buffer.contents.bytes).first(bytes),
                        now.first(bytes), copy.first(bytes)});
  };
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    one(i, plan.buffers[i], program_bytes(call, plan.buffers[i]), result.buffers, false);
  for (size_t i = 0; i < plan.variables.size(); ++i)
    one(i, plan.variables[i].data, program_bytes(call, plan.variables[i]), result.variables, true);
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

const emulator::Failure* failure_of(const cuda::SessionResult& result) {
  return result.failed_launch ? &*result.runs.back().failure : nullptr;
}

std::string text_of(const Place& place, uint64_t at) {
  return place.address ? fmt::format("{:#x}: byte {} of '{}'", place.address + at, at, place.name)
                       : fmt::format("byte {} of '{}'", at, place.name);
}

} // namespace

ComparingHook::KnownModule& ComparingHook::module_of(const ir::Module& original) {
  std::unique_ptr<KnownModule>& known = modules_[&original];
  if (known) return *known;
  known = std::make_unique<KnownModule>();
  known->objection = "the passes failed"; // replaced if they succeed
  Result<RewrittenModule> rewritten = rewrite_for_program(original, passes_, kernels_not_emulated);
  if (!rewritten) {
    known->objection = rewritten.error().message;
    cuda::log(cuda::LogLevel::warn, "{} is not rewritten: {}", original.source.name(), known->objection);
    return *known;
  }
  if (!rewritten->module) {
    known->objection = "the passes change nothing";
    return *known;
  }
  known->rewritten = *std::move(rewritten);
  known->objection.clear();
  Result<launch::Variants> variants = launch::Variants::of(*known->rewritten.module, nullptr);
  if (!variants)
    known->objection = variants.error().message;
  else if (calls_indirectly(original))
    known->objection = "addresses of functions are other ones in the rewritten module";
  else if (uses_heap(original))
    known->objection = "the module calls malloc, whose addresses depend on what came before";
  else
    known->variants = *std::move(variants);
  return *known;
}

ComparingHook::KernelSums& ComparingHook::sums_of(const cuda::Kernel& kernel) {
  KernelSums*& sums = places_[&kernel];
  if (!sums) {
    sums = sums_.emplace_back(std::make_unique<KernelSums>()).get();
    sums->name = kernel.name;
  }
  return *sums;
}

Result<cuda::SessionResult> ComparingHook::run(const LaunchInput& input, const ir::Module& module,
                                               const launch::Variants* variants, const cuda::LaunchCall& call,
                                               bool reversed, uint64_t order_seed) {
  cuda::EmulatorOptions options;
  options.reversed = reversed;
  options.clock_unit = emulator::ClockUnit::reads;
  options.host_threads = call.request.host_threads;
  options.fuel = call.request.fuel;
  options.resident_blocks = 0;
  options.machine = call.context.settings().machine;
  if (order_seed) options.machines.set(emulator::SkipSettings{.share = false, .order_seed = order_seed});
  std::unique_ptr<cuda::Device> device = cuda::make_emulator_device(options);
  cuda::SessionOptions session;
  session.variants = variants;
  session.fetch_all = true;
  return cuda::run_plan(input.plan, module, *device, session);
}

void ComparingHook::before(cuda::LaunchCall& call) {
  pending_.reset();
  KernelSums& sums = sums_of(call.kernel);
  ++sums.launches;
  const auto leave_out = [&](const std::string& reason) { ++sums.reasons[reason]; };
  KnownModule& known = module_of(call.kernel.module->original());
  if (!known.objection.empty()) return leave_out(known.objection);
  const bool is_changed = known.rewritten.changed.contains(call.kernel.name);
  if (!is_changed && known.variants.of_kernel(call.kernel.name).empty())
    return leave_out("the passes do not change it");
  Result<LaunchInput*> input = images_->of(call);
  if (!input) return leave_out(input.error().message);
  Result<cuda::SessionResult> result = run(**input, *known.rewritten.module, &known.variants, call, false, 0);
  if (!result) return leave_out(result.error().message);
  if (result->runs.empty()) return leave_out("the rewritten launch did not run");
  if (!is_changed && result->runs.back().entry == call.kernel.name)
    return leave_out(result->runs.back().reasons.empty() ? "the original ran" : result->runs.back().reasons.front());
  call.request.clock_unit = emulator::ClockUnit::reads; // as in run()
  pending_ = Pending{*input, &known, *std::move(result)};
}

// Runs the original with its blocks in reverse order, and with warps in random orders.
std::vector<cuda::SessionResult> ComparingHook::other_orders(const cuda::LaunchCall& call) {
  std::vector<cuda::SessionResult> results;
  for (uint64_t seed = 0; seed <= random_orders; ++seed) {
    Result<cuda::SessionResult> other = run(*pending_->input, *pending_->input->module, nullptr, call, seed == 0, seed);
    if (other && !other->failed_launch) results.push_back(*std::move(other));
  }
  return results;
}

void ComparingHook::compare(const cuda::LaunchCall& call, KernelSums& sums) {
  const launch::LaunchPlan& plan = pending_->input->plan;
  uint64_t differing = 0;
  for_each_place(call, plan, pending_->result, [&](size_t, const Place& place) {
    for (size_t at = 0; at < place.before.size(); at += step) {
      const size_t bytes = std::min(step, place.before.size() - at);
      const auto before = place.before.subspan(at, bytes), original = place.original.subspan(at, bytes),
                 rewritten = place.rewritten.subspan(at, bytes);
      if (same(before, original) && same(before, rewritten)) continue;
      for (size_t i = 0; i < bytes; ++i) {
        sums.bytes += before[i] != original[i] || before[i] != rewritten[i];
        differing += original[i] != rewritten[i];
      }
    }
  });
  if (differing == 0) return;
  const std::vector<cuda::SessionResult> others = other_orders(call);
  uint64_t unordered = 0;
  std::string first;
  for_each_place(call, plan, pending_->result, [&](size_t number, const Place& place) {
    for (size_t i = 0; i < place.before.size(); ++i) {
      if (place.original[i] == place.rewritten[i]) continue;
      const bool is_unordered = std::ranges::any_of(others, [&](const cuda::SessionResult& other) {
        return (place.is_variable ? other.variables : other.buffers)[number][i] != place.original[i];
      });
      unordered += is_unordered;
      if (!is_unordered && first.empty()) first = text_of(place, i);
    }
  });
  sums.unordered += unordered;
  sums.differing += differing - unordered;
  sums.bad_launches += differing > unordered;
  if (sums.first.empty() && !first.empty()) sums.first = fmt::format("launch {}, {}", sums.launches, first);
}

void ComparingHook::after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) {
  if (!pending_) return;
  KernelSums& sums = sums_of(call.kernel);
  if (result.failure) {
    ++sums.reasons["the original fails"];
    return pending_.reset();
  }
  ++sums.compared;
  sums.instructions += result.counters.warp_instructions;
  if (const emulator::Failure* failure = failure_of(pending_->result)) {
    ++sums.bad_launches;
    if (sums.first.empty()) sums.first = fmt::format("launch {}: {}", sums.launches, failure->message);
  } else {
    sums.rewritten_instructions += pending_->result.runs.back().counters.warp_instructions;
    compare(call, sums);
  }
  pending_.reset();
}

cuda::ReportPart ComparingHook::report() {
  TextTable table{{{"kernel"},
                   {"launches", true},
                   {"compared", true},
                   {"changed bytes", true},
                   {"differing", true},
                   {"warp instructions", true},
                   {"rewritten", true},
                   {"result"}},
                  {}};
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  bool has_failed = false;
  for (const auto& sums : sums_) {
    std::string verdict =
        sums->bad_launches ? "DIFFERS: " + sums->first
        : sums->unordered ? fmt::format("{} bytes depend on the order of threads in the original, too", sums->unordered)
        : sums->compared  ? "identical"
                          : "";
    nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
    for (const auto& [reason, launches] : sums->reasons) {
      reasons.push_back({{"reason", reason}, {"launches", launches}});
      verdict += (verdict.empty() ? "" : "; ") + fmt::format("{} not compared: {}", launches, beginning(reason));
    }
    table.rows.push_back({sums->name, std::to_string(sums->launches), std::to_string(sums->compared),
                          std::to_string(sums->bytes), std::to_string(sums->differing),
                          std::to_string(sums->instructions), std::to_string(sums->rewritten_instructions), verdict});
    kernels.push_back({{"kernel", sums->name},
                       {"launches", sums->launches},
                       {"compared_launches", sums->compared},
                       {"changed_bytes", sums->bytes},
                       {"differing_bytes", sums->differing},
                       {"order_dependent_bytes", sums->unordered},
                       {"differing_launches", sums->bad_launches},
                       {"warp_instructions", sums->instructions},
                       {"rewritten_warp_instructions", sums->rewritten_instructions},
                       {"first_difference", sums->first},
                       {"not_compared", std::move(reasons)}});
    has_failed |= sums->bad_launches > 0;
  }
  const nlohmann::ordered_json document = {{"passes", passes_}, {"kernels", std::move(kernels)}};
  return {"original against " + passes_ + "\n" + table.text(), "verification", json_text(document), has_failed};
}

} // namespace ptxrewrite::evaluate
