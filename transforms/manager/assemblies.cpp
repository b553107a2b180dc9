// Collects questions; writes and assembles the texts that answer them.
#include "transforms/manager/assemblies.h"

#include "ir/core/function.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ptxrewrite::transforms {

namespace {

// Annotations do not change the machine code, but differ between versions.
void remove_annotations(ir::Function& function) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::annotation) function.remove(id);
}

// How much of a callee ptxas inlines, and the registers that this needs, may depend on all callers.
bool calls(const ir::Function& function) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, ir::Opcode::call)) return true;
  return false;
}

// Returns the module's text with `versions` in the place of `function`, without the other kernels. The versions are
// given back unchanged.
std::string text_in_place(ir::Module& module, size_t function, std::vector<std::unique_ptr<ir::Function>>& versions) {
  const size_t first = module.functions.size();
  std::vector<ir::Item> items = std::move(module.items);
  module.items.clear();
  bool is_placed = false;
  const auto place = [&] {
    for (size_t i = 0; i < versions.size(); ++i)
      module.items.push_back({ir::ItemKind::function, static_cast<uint32_t>(first + i), {}, {}});
    is_placed = true;
  };
  for (const ir::Item& item : items) {
    const bool is_function = item.kind == ir::ItemKind::function;
    if (is_function && item.id == function)
      place();
    else if (!is_function || !module.functions[item.id]->is_entry)
      module.items.push_back(item);
  }
  if (!is_placed) place();
  for (std::unique_ptr<ir::Function>& version : versions)
    module.functions.push_back(std::move(version));
  std::string text;
  ir::print(module, text);
  for (size_t i = 0; i < versions.size(); ++i)
    versions[i] = std::move(module.functions[first + i]);
  module.functions.resize(first);
  module.items = std::move(items);
  return text;
}

// Returns the index of the definition with this name, or the number of functions if there is none.
size_t place_of(const ir::Module& module, Symbol name) {
  const auto found = std::ranges::find_if(
      module.functions, [&](const auto& function) { return function && function->name == name && function->has_body; });
  return static_cast<size_t>(found - module.functions.begin());
}

Assemblies::Answer answer_of(Result<FiguresByArchitecture> figures) {
  if (figures) return {Assemblies::Answer::State::known, *std::move(figures), {}};
  return {Assemblies::Answer::State::refused, {}, figures.error().message};
}

Result<FiguresByArchitecture> rows_of(const std::vector<Result<ir::FiguresByFunction>>& answers,
                                      const std::vector<std::string>& architectures, std::string_view kernel) {
  FiguresByArchitecture rows;
  for (size_t i = 0; i < architectures.size(); ++i) {
    if (!answers[i]) return Error{architectures[i] + ": " + answers[i].error().message, {}};
    const auto row = answers[i]->find(kernel);
    if (row == answers[i]->end()) return Error{architectures[i] + ": ptxas has left the kernel out", {}};
    rows.emplace_back(architectures[i], row->second);
  }
  return rows;
}

// Assembles for each architecture, each in a thread of its own.
std::vector<Result<ir::FiguresByFunction>> assembled(const std::string& text,
                                                     const std::vector<std::string>& architectures) {
  std::vector<Result<ir::FiguresByFunction>> answers(architectures.size(), Error{"not assembled", {}});
  std::vector<std::thread> others;
  const auto one = [&](size_t i) { answers[i] = ir::machine_figures(text, architectures[i]); };
  for (size_t i = 1; i < architectures.size(); ++i)
    others.emplace_back(one, i);
  if (!architectures.empty()) one(0);
  for (std::thread& other : others)
    other.join();
  return answers;
}

} // namespace

std::string text_of_kernel_alone(const ir::Function& kernel) {
  std::vector<std::unique_ptr<ir::Function>> versions;
  versions.push_back(std::make_unique<ir::Function>(kernel));
  ir::destruct_ssa(*versions[0]);
  ir::Module& module = versions[0]->module();
  return text_in_place(module, place_of(module, kernel.name), versions);
}

Result<FiguresByArchitecture> assemble_alone(const ir::Function& kernel,
                                             const std::vector<std::string>& architectures) {
  return rows_of(assembled(text_of_kernel_alone(kernel), architectures), architectures,
                 kernel.module().text(kernel.name));
}

void Assemblies::begin(ir::Module& module, ir::FunctionId function) {
  module_ = &module;
  function_ = function;
  name_ = module.functions[function.index()]->name;
  answers_.clear();
  questions_.clear();
  runs_ = assembled_kernels_ = 0;
  seconds_ = 0;
}

bool Assemblies::has_refused() const {
  return std::ranges::any_of(answers_, [](const auto& row) { return row.second.state == Answer::State::refused; });
}

bool Assemblies::can_run(size_t times) const {
  return runs_ + times <= effort_.assemblies && (effort_.seconds <= 0 || seconds_ < effort_.seconds);
}

Assemblies::Answer Assemblies::figures(const ir::Function& version, const std::vector<std::string>& architectures) {
  auto kernel = std::make_unique<ir::Function>(version);
  remove_annotations(*kernel);
  ir::destruct_ssa(*kernel);
  kernel->name = name_;
  std::string key;
  for (const std::string& architecture : architectures)
    key += architecture + '\n';
  ir::print(*kernel, key);
  if (const auto known = answers_.find(key); known != answers_.end()) return known->second;
  if (!can_run(architectures.size())) return left_out();
  questions_.push_back({key, architectures, std::move(kernel)});
  return answers_.emplace(std::move(key), Answer{}).first->second;
}

Assemblies::Answer Assemblies::left_out() const {
  return {Answer::State::left_out,
          {},
          std::to_string(runs_) + " of " + std::to_string(effort_.assemblies) + " assemblies are spent (--effort)"};
}

std::vector<Result<ir::FiguresByFunction>>
Assemblies::run(const std::string& text, const std::vector<std::string>& architectures, size_t kernels) {
  runs_ += static_cast<uint32_t>(architectures.size());
  assembled_kernels_ += static_cast<uint32_t>(kernels * architectures.size());
  const auto start = std::chrono::steady_clock::now();
  std::vector<Result<ir::FiguresByFunction>> answers = assembled(text, architectures);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answers;
}

void Assemblies::answer_alone(std::span<Question> group) {
  for (Question& question : group) {
    Answer& answer = answers_.at(question.key);
    answer = left_out();
    if (!can_run(question.architectures.size())) continue;
    std::vector<std::unique_ptr<ir::Function>> versions;
    versions.push_back(std::move(question.kernel));
    const std::string text = text_in_place(*module_, function_.index(), versions);
    answer = answer_of(rows_of(run(text, question.architectures, 1), question.architectures, module_->text(name_)));
  }
}

void Assemblies::answer_together(std::span<Question> group) {
  const std::vector<std::string>& architectures = group.front().architectures;
  const bool can_share = group.size() > 1 && std::ranges::all_of(group, [](const Question& question) {
                           return question.kernel->is_entry && !calls(*question.kernel);
                         });
  if (!can_share || !can_run(architectures.size())) return answer_alone(group);
  const std::string own(module_->text(name_));
  std::vector<std::string> names{own};
  std::vector<std::unique_ptr<ir::Function>> versions;
  for (Question& question : group) {
    if (names.size() <= versions.size()) names.push_back(own + "__weighed_" + std::to_string(versions.size()));
    question.kernel->name = module_->intern(names[versions.size()]);
    versions.push_back(std::move(question.kernel));
  }
  const std::string text = text_in_place(*module_, function_.index(), versions);
  const std::vector<Result<ir::FiguresByFunction>> results = run(text, architectures, group.size());
  const bool is_refused = std::ranges::any_of(results, [](const auto& one) { return !one.ok(); });
  for (size_t i = 0; i < group.size(); ++i) {
    versions[i]->name = name_;
    group[i].kernel = std::move(versions[i]);
    if (!is_refused) answers_.at(group[i].key) = answer_of(rows_of(results, architectures, names[i]));
  }
  // At least one of them cannot be assembled.
  if (is_refused) answer_alone(group);
}

void Assemblies::answer() {
  std::vector<Question> questions = std::move(questions_);
  questions_.clear();
  while (!questions.empty()) {
    const std::vector<std::string> architectures = questions.front().architectures;
    const auto others = std::stable_partition(questions.begin(), questions.end(), [&](const Question& question) {
      return question.architectures == architectures;
    });
    answer_together(std::span(questions.begin(), others));
    questions.erase(questions.begin(), others);
  }
}

} // namespace ptxrewrite::transforms
