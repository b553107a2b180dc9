// Runs ptxas on a text and caches the figures of its cubin, see figures.h.
#include "ir/machine/figures/figures.h"

#include "ir/machine/figures/cubin.h"
#include "ir/machine/figures/figures_store.h"
#include "support/ptxas.h"

#include <deque>
#include <fstream>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <tuple>
#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

Result<FiguresByFunction> assemble_figures(std::string_view ptx, const std::string& architecture) {
  Result<PtxasRun> run = assemble(ptx, {.arch = architecture});
  if (!run) return run.error();
  if (!run->ok)
    return Error{run->crashed     ? "ptxas crashed"
                 : run->timed_out ? "ptxas did not end in time"
                                  : "ptxas refuses the text: " + run->messages.substr(0, run->messages.find('\n')),
                 {}};
  Result<Cubin> cubin = read_cubin(std::move(run->cubin));
  if (!cubin) return cubin.error();
  FiguresByFunction figures;
  for (const CubinFunction& function : cubin->functions) {
    MachineFigures row{function.instructions, function.registers, 0};
    const PtxasFigures* printed = run->find(function.name);
    row.spilled_bytes = function.spill_stores.value_or(printed ? printed->spill_stores : 0) +
                        function.spill_loads.value_or(printed ? printed->spill_loads : 0);
    figures.emplace(function.name, row);
  }
  return figures;
}

// Results by (architecture, text), the oldest evicted first. Keys are whole texts: a hash alone could match a different
// text. Failures are not cached, because a missing ptxas may be found later.
class FiguresCache {
public:
  std::optional<FiguresByFunction> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto found = results_.find(key);
    if (found == results_.end()) return std::nullopt;
    return found->second;
  }

  void remember(std::string key, const FiguresByFunction& figures) {
    std::lock_guard lock(mutex_);
    bytes_ += key.size();
    auto [place, inserted] = results_.emplace(std::move(key), figures);
    if (!inserted) {
      bytes_ -= place->first.size();
      return;
    }
    order_.push_back(&place->first);
    while (order_.size() > max_results || (bytes_ > max_bytes && order_.size() > 1)) {
      bytes_ -= order_.front()->size();
      results_.erase(results_.find(*order_.front()));
      order_.pop_front();
    }
  }

private:
  static constexpr size_t max_results = 256;
  static constexpr size_t max_bytes = size_t{64} << 20;

  std::mutex mutex_;
  std::unordered_map<std::string, FiguresByFunction> results_;
  std::deque<const std::string*> order_; // keys of results_, oldest first; nodes of the map do not move
  size_t bytes_ = 0;                     // of the keys
};

FiguresCache& cache() {
  static FiguresCache instance;
  return instance;
}

// The cache that persists between runs.
class SharedStore {
public:
  std::optional<FiguresByFunction> find(const std::string& question) { return store_.find(question); }
  void keep(const std::string& question, const FiguresByFunction& figures) {
    std::lock_guard lock(mutex_);
    store_.keep(question, figures);
  }

private:
  std::mutex mutex_;
  FiguresStore store_{figures_folder()};
};

SharedStore& store() {
  static SharedStore instance;
  return instance;
}

// Identifies the ptxas: figures of another version would differ.
std::string identity_of(const std::string& ptxas) {
  struct stat status {};
  if (stat(ptxas.c_str(), &status) != 0) return ptxas;
  return ptxas + ' ' + std::to_string(status.st_size) + ' ' + std::to_string(status.st_mtim.tv_sec) + '.' +
         std::to_string(status.st_mtim.tv_nsec);
}

// A script in place of ptxas may run any program, depending on the environment: its results are not stored.
bool is_script(const std::string& ptxas) {
  std::ifstream file(ptxas, std::ios::binary);
  char start[2] = {};
  file.read(start, sizeof start);
  return !file || std::string_view(start, sizeof start) == "#!";
}

} // namespace

Result<FiguresByFunction> machine_figures(std::string_view ptx, const std::string& architecture) {
  Result<std::string> ptxas = find_ptxas();
  if (!ptxas) return ptxas.error();
  std::string key = identity_of(*ptxas) + '\n' + architecture + '\n';
  key += ptx;
  if (std::optional<FiguresByFunction> known = cache().find(key)) return *std::move(known);
  const bool is_stored = !is_script(*ptxas);
  if (std::optional<FiguresByFunction> known = is_stored ? store().find(key) : std::nullopt) {
    cache().remember(std::move(key), *known);
    return *std::move(known);
  }
  Result<FiguresByFunction> figures = assemble_figures(ptx, architecture);
  if (!figures) return figures;
  if (is_stored) store().keep(key, *figures);
  cache().remember(std::move(key), *figures);
  return figures;
}

bool is_worse(const MachineFigures& after, const MachineFigures& before) {
  auto cost = [](const MachineFigures& f) { return std::tuple(f.spilled_bytes, f.instructions, f.registers); };
  return cost(after) > cost(before);
}

std::vector<std::string> worse_functions(const FiguresByFunction& before, const FiguresByFunction& after) {
  std::vector<std::string> names;
  for (const auto& [name, figures] : after) {
    auto old = before.find(name);
    if (old != before.end() && is_worse(figures, old->second)) names.push_back(name);
  }
  return names;
}

} // namespace ptxrewrite::ir
