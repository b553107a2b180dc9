// Random kernels, original against rewritten, on the emulator in check mode; and the original against the oracle.
//
//   fuzz_rewrites [--count N] [--first SEED] [--only SEED [--show]] [--sweeps] [--longer N] [--seconds S]
//                 [--passes CHAIN [--form legal|annotated|hardware] [--assume WORD]] [--no-rewrites] [--integers]
//                 [--may-refuse] [--ptxas] [--linear] [--darsie] [--regless] [--dac] [--integer-chains] [--run-ahead]
//                 [--jobs N] [--generated]
//                 [--weight NAME=NUMBER]... [--knob NAME=NUMBER]...
//                 [--write FOLDER | --keep FOLDER]
//
// --linear: kernels about index arithmetic, all forms of r2d2, and a table of what the rewritings rest on.
// --regless: no rewritings, but RegLess's machine, which keeps all registers in staged entries.
// --darsie: no rewritings, but DARSIE's machine in all variants, in several orders of the warps, in check mode and out
// of it; and what its marks say against the values.
// --dac: kernels with loops, divergence and barriers as two streams on DAC's machine: with the paper's queues, with one
// entry a warp, with two blocks at a time; what leaves the queues is compared with the original.
// --integer-chains: kernels of integer instructions that read each other, and all forms of composite.
// --run-ahead: kernels with many loops, and all ways in which dac's legal form issues their loads ahead.
// --generated: as generated code, and so without check mode.
// The kernel of a seed is always the same (with the same weights and knobs). --write keeps what failed: the PTX file, a
// launch file and its buffers beside it, and the kernel reduced to what still fails. --keep writes every kernel, and
// runs none. Exit code 1 when something failed, 77 when --ptxas finds no ptxas, or --generated no LLVM.
#include "emulator/core/engine.h"
#include "emulator/observe/mark_check.h"
#include "evaluate/reduce/reducer.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/fuzz/kernels/differential.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_launch_file.h"
#include "tests/fuzz/kernels/kernel_oracle.h"
#include "tests/fuzz/kernels/kernel_print.h"
#include "tests/fuzz/kernels/kernel_shrink.h"
#include "tests/fuzz/kernels/ledger_counts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::fuzz;

constexpr uint64_t reduction_limit = 20000;

struct Options {
  uint64_t first = 1;
  uint64_t count = 300;
  double seconds = 0; // 0: no limit
  size_t longer = 2;
  bool show = false;
  bool keep = false;
  bool sweeps = false;
  bool rewrites = true;
  bool assembles = false; // the output of the passes is given to ptxas
  bool linear = false;
  bool darsie = false;
  bool regless = false;
  bool dac = false;
  bool integer_chains = false;
  bool run_ahead = false;
  unsigned jobs = 1;
  bool may_refuse = false; // instructions that are not emulated are no failure
  std::optional<Chain> chain;
  std::string folder;
  Knobs knobs;
};

struct Tally {
  uint64_t kernels = 0, launches = 0, oracle_launches = 0, rewritings = 0, variants = 0, assembled = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> chains; // times, and how often the text changed
  std::map<std::string, uint64_t> refused;                     // by reason
  std::map<std::string, uint64_t> failed;                      // by chain and kind
  uint64_t failures = 0;
  uint64_t may_wrap = 0, wrapped = 0, wrapped_launches = 0; // kernels meant to wrap, those that do, and their launches
  LedgerCounts ledger;
  emulator::SkipCounters skips; // of the standard machine with the warps in step
  emulator::SkipCounters all_skips;
  emulator::AffineCounters affine;
  uint64_t repeated = 0, repeated_marked = 0; // results of whole warps that another one had, too; and were marked

  void add(const Tally& other);
};

void Tally::add(const Tally& other) {
  for (uint64_t Tally::*number : {&Tally::kernels, &Tally::launches, &Tally::oracle_launches, &Tally::rewritings,
                                  &Tally::variants, &Tally::assembled, &Tally::failures, &Tally::may_wrap,
                                  &Tally::wrapped, &Tally::wrapped_launches, &Tally::repeated, &Tally::repeated_marked})
    this->*number += other.*number;
  for (const auto& [name, counts] : other.chains) {
    chains[name].first += counts.first;
    chains[name].second += counts.second;
  }
  for (const auto& [reason, times] : other.refused)
    refused[reason] += times;
  for (const auto& [reason, times] : other.failed)
    failed[reason] += times;
  ledger.add(other.ledger);
  skips += other.skips;
  all_skips += other.all_skips;
  affine += other.affine;
}

class Driver {
public:
  explicit Driver(const Options& options) : options_(options) {}

  void run_kernel(const Kernel& kernel) {
    ++tally_.kernels;
    const std::string text = print_module(kernel);
    emulated_.clear();
    if (options_.keep) {
      if (const Status written = write_case(kernel, kernel.shapes[0], options_.folder); !written)
        report(kernel, kernel.shapes[0], "written", written.error().message);
      return;
    }
    if (options_.show) std::fputs(text.c_str(), stdout);
    std::string failed;
    const std::unique_ptr<ir::Module> module = read_text(text, failed);
    if (!module) return report(kernel, kernel.shapes[0], "read", failed);
    if (options_.linear) tally_.may_wrap += kernel.may_wrap;
    uint64_t wrapped_launches = 0;
    std::vector<Emulation> originals;
    for (const Shape& shape : kernel.shapes) {
      Emulation original = emulate(*module, kernel, shape);
      if (!original.refused.empty()) {
        ++tally_.refused[shortened(original.refused)];
        return;
      }
      ++tally_.launches;
      if (!original.failed.empty()) return report(kernel, shape, "original", original.failed);
      wrapped_launches += check_oracle(kernel, shape, original) != 0;
      originals.push_back(std::move(original));
    }
    if (wrapped_launches != 0) ++tally_.wrapped;
    tally_.wrapped_launches += wrapped_launches;
    if (options_.darsie) {
      check_marks(kernel, *module);
      check_skipping(kernel, text, *module, originals);
    }
    if (options_.regless) check_staging(kernel, text);
    if (!options_.rewrites) return;
    identity_text_ = rewrite(text, {}).text;
    const std::vector<Chain> chains = options_.chain            ? std::vector<Chain>{*options_.chain}
                                      : options_.linear         ? linear_chains(kernel)
                                      : options_.integer_chains ? composite_chains()
                                      : options_.run_ahead      ? run_ahead_chains()
                                      : options_.dac            ? two_streams()
                                                                : chains_for(kernel.seed, options_.longer);
    for (const Chain& chain : chains)
      check_chain(kernel, text, chain, originals);
  }

  void add(const Driver& other) { tally_.add(other.tally_); }

  int finish() const {
    const std::pair<const char*, uint64_t> numbers[] = {{"kernels", tally_.kernels},
                                                        {"launches", tally_.launches},
                                                        {"compared with the oracle", tally_.oracle_launches},
                                                        {"rewritings", tally_.rewritings},
                                                        {"launches of variants", tally_.variants},
                                                        {"texts assembled", tally_.assembled},
                                                        {"failures", tally_.failures}};
    std::string line;
    for (const auto& [what, number] : numbers)
      line += (line.empty() ? "" : ", ") + std::to_string(number) + " " + what;
    std::puts(line.c_str());
    for (const auto& [name, counts] : tally_.chains)
      std::printf("  %s: %llu kernels, %llu changed\n", name.c_str(), static_cast<unsigned long long>(counts.first),
                  static_cast<unsigned long long>(counts.second));
    for (const auto& [reason, times] : tally_.refused)
      std::printf("  %llu x not emulated: %s\n", static_cast<unsigned long long>(times), reason.c_str());
    for (const auto& [reason, times] : tally_.failed)
      std::printf("  %llu x FAILED: %s\n", static_cast<unsigned long long>(times), reason.c_str());
    if (options_.linear)
      std::printf("%llu kernels were meant to wrap around, %llu did, in %llu launches\n%s",
                  static_cast<unsigned long long>(tally_.may_wrap), static_cast<unsigned long long>(tally_.wrapped),
                  static_cast<unsigned long long>(tally_.wrapped_launches), tally_.ledger.table().c_str());
    if (options_.darsie) print_skips();
    if (options_.dac) print_affine();
    // Kernels that never ran are no test.
    const bool all_ran = tally_.refused.empty() || options_.may_refuse;
    const bool was_a_test =
        (!options_.linear || is_varied()) && (!options_.darsie || all_was_skipped()) && (!options_.dac || was_split());
    return tally_.failures == 0 && all_ran && tally_.launches != 0 && was_a_test ? 0 : 1;
  }

private:
  // With many kernels about index arithmetic, a third wraps, and launch checks have both outcomes.
  bool is_varied() const {
    if (tally_.kernels < 200 || options_.chain) return true;
    const LedgerRow sum = tally_.ledger.sum();
    const bool is_enough = tally_.may_wrap * 10 >= tally_.kernels * 3 && tally_.wrapped == tally_.may_wrap &&
                           sum.discharged[0] != 0 && sum.held != 0 && sum.failed != 0;
    if (!is_enough) std::puts("too few kernels wrap around, or all checks come out alike");
    return is_enough;
  }

  void print_skips() const {
    const emulator::SkipCounters& sum = tally_.skips;
    const uint64_t all = sum.executed + sum.all_skipped();
    std::printf("%.1f %% of %llu warp instructions skipped by the standard machine, warps in step\n",
                100.0 * static_cast<double>(sum.all_skipped()) / static_cast<double>(std::max<uint64_t>(all, 1)),
                static_cast<unsigned long long>(all));
    std::printf("%llu results of whole warps were another warp's, too; %llu of them are marked\n",
                static_cast<unsigned long long>(tally_.repeated),
                static_cast<unsigned long long>(tally_.repeated_marked));
    const std::vector<emulator::NamedCount> in_step = emulator::named_counts(sum);
    const std::vector<emulator::NamedCount> in_all = emulator::named_counts(tally_.all_skips);
    for (size_t i = 0; i < in_step.size(); ++i)
      std::printf("  %-32.*s %14llu %16llu in all variants and orders\n", static_cast<int>(in_step[i].name.size()),
                  in_step[i].name.data(), static_cast<unsigned long long>(in_step[i].count),
                  static_cast<unsigned long long>(in_all[i].count));
  }

  // With many kernels, every event of the machine has occurred.
  bool all_was_skipped() const {
    if (tally_.kernels < 100) return true;
    bool all = true;
    for (const emulator::NamedCount& row : emulator::named_counts(tally_.all_skips)) {
      // No warp waits for warps outside the path.
      if (row.count != 0 || row.name == "forced syncs") continue;
      std::printf("never happened: %.*s\n", static_cast<int>(row.name.size()), row.name.data());
      all = false;
    }
    return all;
  }

  static std::vector<Chain> two_streams() { return {{"dac", transforms::OutputForm::hardware, {}}}; }

  // The machines on which a rewriting runs.
  std::vector<emulator::AffineSettings> machines(const Kernel& kernel) const {
    if (!options_.dac) return {{}};
    const bool data = !kernel.races;
    return {{.multiprocessors = 2, .check = true, .check_data = data},
            {.entries_per_warp = 1, .multiprocessors = 1, .check = true, .check_data = data},
            {.entries_per_warp = 2, .resident_blocks = 2, .multiprocessors = 1}};
  }

  void print_affine() const {
    for (const emulator::NamedAffineCount& row : emulator::named_counts(tally_.affine))
      std::printf("  %-48.*s %14llu\n", static_cast<int>(row.name.size()), row.name.data(),
                  static_cast<unsigned long long>(row.count));
    if (!tally_.affine.fallback_reason.empty())
      std::printf("first launch for which the machine is too small: %s\n", tally_.affine.fallback_reason.c_str());
  }

  // With many kernels, every function of the machine was used, and few kernels were too large for it.
  bool was_split() const {
    if (tally_.kernels < 100) return true;
    const emulator::AffineCounters& sum = tally_.affine;
    const bool all = sum.checked != 0 && sum.early_loads != 0 && sum.addresses != 0 && sum.barrier_holds != 0 &&
                     sum.waits_for_given != 0 && sum.conditions != 0 && sum.most_tuples > 1 &&
                     sum.stack_lane_updates != 0 &&
                     std::ranges::none_of(sum.predicate_cases, [](uint64_t times) { return times == 0; });
    const bool few_fallbacks = sum.fallbacks * 10 < tally_.variants;
    if (!all) std::puts("some of what DAC's machine does has never happened");
    if (!few_fallbacks) std::puts("the machine is too small for too many launches");
    return all && few_fallbacks;
  }

  // Removes numbers, so that similar reasons are counted together.
  static std::string shortened(const std::string& reason) {
    std::string result;
    for (char c : reason.substr(0, reason.find('\n')))
      if (c < '0' || c > '9') result += c;
    return result.substr(0, 100);
  }

  // Returns how often index arithmetic wrapped.
  uint64_t check_oracle(const Kernel& kernel, const Shape& shape, const Emulation& original) {
    if (!kernel.exact || kernel.races) return 0;
    const OracleResult oracle = run_oracle(kernel, shape);
    ++tally_.oracle_launches;
    if (!oracle.problem.empty()) report(kernel, shape, "oracle", oracle.problem);
    if (!kernel.may_wrap && oracle.wrapped != 0) report(kernel, shape, "oracle", "wraps around, and is not meant to");
    const std::string what = difference(kernel, shape, oracle.buffers, original.buffers);
    if (what.empty() || !oracle.problem.empty()) return oracle.wrapped;
    report(kernel, shape, "emulator against oracle", what);
    if (!options_.folder.empty()) reduce_original(kernel, shape);
    return oracle.wrapped;
  }

  void reduce_original(const Kernel& kernel, const Shape& shape) {
    const Kernel small = shrink_kernel(
        kernel, shape, [&](const Kernel& candidate) { return !disagreement_with_oracle(candidate, shape).empty(); });
    std::fprintf(stderr, "  reduced: %s\n", disagreement_with_oracle(small, shape).c_str());
    write_reduced(kernel, print_module(small));
  }

  // Returns "" if they agree, or if the emulator does not support the kernel.
  static std::string disagreement_with_oracle(const Kernel& kernel, const Shape& shape) {
    std::string failed;
    const std::unique_ptr<ir::Module> module = read_text(print_module(kernel), failed);
    if (!module) return "";
    const Emulation emulation = emulate(*module, kernel, shape);
    if (!emulation.refused.empty() || !emulation.failed.empty()) return "";
    return difference(kernel, shape, run_oracle(kernel, shape).buffers, emulation.buffers);
  }

  void write_reduced(const Kernel& kernel, const std::string& text) {
    const std::string path = options_.folder + "/" + kernel.name + ".reduced.ptx";
    if (const Status status = write_file(path, text); !status)
      std::fprintf(stderr, "fuzz_rewrites: %s\n", status.error().message.c_str());
    else
      std::fprintf(stderr, "  reduced to %s\n", path.c_str());
  }

  // Checks the marks against values, without a machine.
  void check_marks(const Kernel& kernel, const ir::Module& module) {
    for (const Shape& shape : kernel.shapes) {
      emulator::MarkCheck check;
      (void)emulate(module, kernel, shape, &check);
      ++tally_.launches;
      for (const emulator::MarkRow& row : check.rows()) {
        tally_.repeated += row.repeated;
        tally_.repeated_marked += row.promoted.is_definite() ? row.repeated : 0;
      }
      if (check.contradictions() != 0) return report(kernel, shape, "marks", check.messages().front());
    }
  }

  // All registers in staged entries: with the paper's number, and with the fewest that hold the largest region.
  void check_staging(const Kernel& kernel, const std::string& text) {
    for (const Shape& shape : kernel.shapes)
      for (const uint32_t entries : {512u, 0u}) {
        ++tally_.launches;
        const std::string what = disagreement_when_staged(text, kernel, shape, entries);
        if (what.empty()) continue;
        report(kernel, shape, entries ? "staged" : "staged in few entries", what);
        if (options_.folder.empty()) return;
        evaluate::ReducerOptions options;
        options.test_limit = reduction_limit;
        options.is_interesting = [&](const std::string& candidate) {
          return !disagreement_when_staged(candidate, kernel, shape, entries).empty();
        };
        const Result<evaluate::Reduction> reduction = evaluate::reduce(text, kernel.name + ".ptx", options);
        if (reduction) write_reduced(kernel, reduction->text);
        return;
      }
  }

  void check_skipping(const Kernel& kernel, const std::string& text, const ir::Module& module,
                      const std::vector<Emulation>& originals) {
    for (const emulator::SkipVariant variant : emulator::all_skip_variants)
      for (unsigned order = 0; order < 3; ++order) {
        const emulator::SkipSettings settings{
            .variant = variant, .check = order != 2, .order_seed = order == 0 ? 0 : kernel.seed * 3 + order};
        for (size_t i = 0; i < kernel.shapes.size(); ++i)
          if (!check_skipping(kernel, text, module, originals, i, settings)) return;
      }
  }

  bool check_skipping(const Kernel& kernel, const std::string& text, const ir::Module& module,
                      const std::vector<Emulation>& originals, size_t shape, const emulator::SkipSettings& settings) {
    const Emulation skipping = emulate(module, kernel, kernel.shapes[shape], nullptr, settings);
    ++tally_.launches;
    const auto& skips = skipping.machines.get<emulator::SkipCounters>();
    tally_.all_skips += skips;
    if (settings.variant == emulator::SkipVariant::standard && settings.order_seed == 0) tally_.skips += skips;
    std::string what = skipping.refused.empty() ? skipping.failed : skipping.refused;
    if (what.empty()) what = difference(kernel, kernel.shapes[shape], originals[shape].buffers, skipping.buffers);
    if (what.empty()) return true;
    report(kernel, kernel.shapes[shape],
           "skipping (" + std::string(spelling(settings.variant)) + ", order " + std::to_string(settings.order_seed) +
               (settings.check ? ", checked)" : ")"),
           what);
    if (options_.folder.empty()) return false;
    evaluate::ReducerOptions options;
    options.test_limit = reduction_limit;
    options.is_interesting = [&](const std::string& candidate) {
      return !disagreement_when_skipping(candidate, kernel, kernel.shapes[shape], settings).empty();
    };
    const Result<evaluate::Reduction> reduction = evaluate::reduce(text, kernel.name + ".ptx", options);
    if (reduction) write_reduced(kernel, reduction->text);
    return false;
  }

  void check_chain(const Kernel& kernel, const std::string& text, const Chain& chain,
                   const std::vector<Emulation>& originals) {
    ++tally_.rewritings;
    const Rewriting rewriting = rewrite(text, chain);
    if (!rewriting.failed.empty()) return report(kernel, kernel.shapes[0], chain.name(), rewriting.failed);
    std::string failed;
    const std::unique_ptr<ir::Module> module = read_text(rewriting.text, failed);
    if (!module) return report(kernel, kernel.shapes[0], chain.name(), "printed text: " + failed);
    // Several longer chains count as one, to limit the size of the table.
    auto& [times, changes] =
        tally_.chains[options_.linear || chain.passes.find(',') == std::string::npos ? chain.name() : "longer chains"];
    ++times;
    const bool is_changed = rewriting.text != identity_text_;
    if (chain.passes.empty() || is_changed) ++changes;
    if (options_.linear) count_obligations(chain, text, rewriting, is_changed, originals);
    if (const auto known = emulated_.find(rewriting.text); known != emulated_.end()) {
      if (options_.linear && is_changed) count_launches(chain, known->second);
      return;
    }
    std::vector<Emulation>& emulations = emulated_[rewriting.text];
    if (options_.assembles && chain.form != transforms::OutputForm::hardware) check_assembles(kernel, chain, rewriting);
    for (const emulator::AffineSettings& machine : machines(kernel))
      if (!check_launches(kernel, text, chain, *module, originals, machine, emulations)) return;
    if (options_.linear && is_changed) count_launches(chain, emulations);
  }

  bool check_launches(const Kernel& kernel, const std::string& text, const Chain& chain, const ir::Module& module,
                      const std::vector<Emulation>& originals, const emulator::AffineSettings& machine,
                      std::vector<Emulation>& emulations) {
    for (size_t i = 0; i < kernel.shapes.size(); ++i) {
      const Emulation rewritten = emulate(module, kernel, kernel.shapes[i], nullptr, machine);
      if (!rewritten.refused.empty()) {
        ++tally_.refused[shortened(rewritten.refused)];
        return false;
      }
      ++tally_.launches;
      if (rewritten.entry != kernel.name) ++tally_.variants;
      if (const auto* affine = rewritten.machines.find<emulator::AffineCounters>()) tally_.affine += *affine;
      emulations.push_back(
          {.entry = rewritten.entry, .has_variants = rewritten.has_variants, .guard = rewritten.guard});
      std::string what = rewritten.failed;
      if (what.empty()) what = difference(kernel, kernel.shapes[i], originals[i].buffers, rewritten.buffers);
      if (what.empty()) continue;
      report(kernel, kernel.shapes[i], chain.name(), what);
      if (!options_.folder.empty()) reduce_rewriting(kernel, kernel.shapes[i], text, chain, machine);
      return false;
    }
    return true;
  }

  void count_obligations(const Chain& chain, const std::string& text, const Rewriting& rewriting, bool is_changed,
                         const std::vector<Emulation>& originals) {
    ChainRow& row = tally_.ledger.chain(chain.name());
    ++row.kernels;
    row.changed += is_changed;
    std::vector<launch::LaunchFacts> launches;
    for (const Emulation& original : originals)
      launches.push_back(original.facts);
    tally_.ledger.add(chain.name(), text, rewriting.ledger, launches);
  }

  void count_launches(const Chain& chain, const std::vector<Emulation>& emulations) {
    ChainRow& row = tally_.ledger.chain(chain.name());
    for (const Emulation& emulation : emulations) {
      if (emulation.guard != Emulation::Guard::none)
        ++(emulation.guard == Emulation::Guard::passed ? row.guard_passed : row.guard_failed);
      ++(emulation.has_variants && emulation.entry.find("__") == std::string::npos ? row.original_ran
                                                                                   : row.rewritten_ran);
    }
  }

  void check_assembles(const Kernel& kernel, const Chain& chain, const Rewriting& rewriting) {
    PtxasOptions options;
    options.optimization_level = 1;
    const Result<PtxasRun> run = assemble(rewriting.text, options);
    if (!run) return report(kernel, kernel.shapes[0], "ptxas", run.error().message);
    ++tally_.assembled;
    if (!run->ok) report(kernel, kernel.shapes[0], "ptxas after " + chain.name(), run->messages);
  }

  // Shrinks the text while original and rewritten differ, or the rewritten one fails and the original does not.
  void reduce_rewriting(const Kernel& kernel, const Shape& shape, const std::string& text, const Chain& chain,
                        const emulator::AffineSettings& machine) {
    evaluate::ReducerOptions options;
    options.test_limit = reduction_limit;
    options.is_interesting = [&](const std::string& candidate) {
      return !disagreement(candidate, kernel, shape, chain, machine).empty();
    };
    const Result<evaluate::Reduction> reduction = evaluate::reduce(text, kernel.name + ".ptx", options);
    if (reduction) write_reduced(kernel, reduction->text);
  }

  void report(const Kernel& kernel, const Shape& shape, const std::string& stage, const std::string& what) {
    ++tally_.failures;
    if (++tally_.failed[stage + ": " + shortened(what)] <= 3)
      std::fprintf(stderr, "seed %llu, grid %u,%u,%u block %u,%u,%u, %s: %s\n",
                   static_cast<unsigned long long>(kernel.seed), shape.grid[0], shape.grid[1], shape.grid[2],
                   shape.block[0], shape.block[1], shape.block[2], stage.c_str(), what.c_str());
    if (options_.folder.empty()) return;
    const Status written = write_case(kernel, shape, options_.folder);
    if (!written) std::fprintf(stderr, "fuzz_rewrites: %s\n", written.error().message.c_str());
  }

  const Options& options_;
  Tally tally_;
  std::string identity_text_;                              // of the current kernel
  std::map<std::string, std::vector<Emulation>> emulated_; // texts from it that were emulated already; without buffers
};

bool set_knob(Knobs& knobs, const std::string& name, double value) {
  const std::pair<const char*, double*> numbers[] = {
      {"guard", &knobs.guard},           {"assign", &knobs.assign},
      {"immediate", &knobs.immediate},   {"uniform", &knobs.uniform},
      {"partial", &knobs.partial_warps}, {"approximate", &knobs.approximate},
      {"exit", &knobs.early_exit},       {"functions", &knobs.functions},
      {"perturb", &knobs.perturb},       {"qualified", &knobs.qualified_memory}};
  const std::pair<const char*, unsigned*> counts[] = {{"statements", &knobs.statements},
                                                      {"nested", &knobs.nested_statements},
                                                      {"depth", &knobs.depth},
                                                      {"trips", &knobs.trips}};
  for (const auto& [known, place] : numbers)
    if (name == known) return *place = value, true;
  for (const auto& [known, place] : counts)
    if (name == known) return *place = static_cast<unsigned>(value), true;
  return false;
}

// NAME=NUMBER
bool split_setting(const char* text, std::string& name, double& value) {
  const char* equals = std::strrchr(text, '=');
  if (equals == nullptr) return false;
  name.assign(text, equals);
  value = std::strtod(equals + 1, nullptr);
  return true;
}

bool parse_form(const std::string& name, transforms::OutputForm& form) {
  using transforms::OutputForm;
  form = name == "hardware" ? OutputForm::hardware : name == "annotated" ? OutputForm::annotated : OutputForm::legal;
  return name == "hardware" || name == "annotated" || name == "legal";
}

bool parse_options(int argc, char** argv, Options& options) {
  Chain chain;
  std::string name;
  double value = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* next = i + 1 < argc ? argv[i + 1] : nullptr;
    if (word == "--show") {
      options.show = true;
    } else if (word == "--sweeps") {
      options.sweeps = true;
    } else if (word == "--integers") {
      options.knobs.floats = false;
    } else if (word == "--linear") {
      options.linear = true;
      options.knobs = index_knobs();
    } else if (word == "--darsie") {
      options.darsie = true;
      options.rewrites = false;
      options.knobs = redundancy_knobs();
    } else if (word == "--regless") {
      options.regless = true;
      options.rewrites = false;
    } else if (word == "--dac") {
      options.dac = true;
      options.knobs = stream_knobs();
    } else if (word == "--integer-chains") {
      options.integer_chains = true;
      options.knobs = integer_knobs();
    } else if (word == "--run-ahead") {
      options.run_ahead = true;
      options.knobs = loop_knobs();
    } else if (word == "--generated") {
      emulator::default_engine() = emulator::Engine::generated;
    } else if (word == "--ptxas") {
      options.assembles = true;
    } else if (word == "--may-refuse") {
      options.may_refuse = true;
    } else if (word == "--no-rewrites") {
      options.rewrites = false;
    } else if (next == nullptr) {
      return false;
    } else if (word == "--count") {
      options.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--first") {
      options.first = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--only") {
      options.first = std::strtoull(argv[++i], nullptr, 10);
      options.count = 1;
    } else if (word == "--jobs") {
      options.jobs = std::max(1u, static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10)));
    } else if (word == "--longer") {
      options.longer = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--seconds") {
      options.seconds = std::strtod(argv[++i], nullptr);
    } else if (word == "--passes") {
      chain.passes = argv[++i];
      options.chain = chain;
    } else if (word == "--form" && parse_form(next, chain.form)) {
      options.chain = chain;
      ++i;
    } else if (word == "--assume") {
      chain.assumptions.push_back(argv[++i]);
      options.chain = chain;
    } else if (word == "--write" || word == "--keep") {
      options.keep = word == "--keep";
      options.folder = argv[++i];
    } else if (word == "--weight" && split_setting(next, name, value)) {
      options.knobs.weights[name] = value;
      ++i;
    } else if (word == "--knob" && split_setting(next, name, value) && set_knob(options.knobs, name, value)) {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

// Each driver takes the next seed.
template <class TimeIsUp>
void run_kernels(std::vector<Driver>& drivers, const Options& options, const TimeIsUp& time_is_up) {
  std::atomic<uint64_t> next = 0;
  const auto work = [&](Driver& driver) {
    for (uint64_t i = next++; i < options.count && !time_is_up(); i = next++)
      driver.run_kernel(generate_kernel(options.first + i, options.knobs));
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < drivers.size(); ++i)
    threads.emplace_back(work, std::ref(drivers[i]));
  work(drivers[0]);
  for (std::thread& thread : threads)
    thread.join();
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fprintf(stderr, "fuzz_rewrites: wrong option; the head of fuzz_rewrites.cpp lists them\n");
    return 2;
  }
  if (options.assembles && !find_ptxas().ok()) {
    std::printf("skipped: no ptxas on this machine\n");
    return 77;
  }
  if (emulator::default_engine() == emulator::Engine::generated && !emulator::why_no_generator().empty()) {
    std::printf("skipped: %s\n", emulator::why_no_generator().c_str());
    return 77;
  }
  std::vector<Driver> drivers(options.jobs, Driver(options));
  const auto start = std::chrono::steady_clock::now();
  const auto time_is_up = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    return options.seconds > 0 && passed.count() > options.seconds;
  };
  if (options.sweeps)
    for (uint32_t part = 0; part < sweep_count(); ++part)
      drivers[0].run_kernel(generate_sweep(options.first, part));
  else
    run_kernels(drivers, options, time_is_up);
  for (size_t i = 1; i < drivers.size(); ++i)
    drivers[0].add(drivers[i]);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  if (options.linear || options.darsie || options.dac)
    std::printf("%.0f s, %u at a time\n", passed.count(), options.jobs);
  return drivers[0].finish();
}
