#include "transforms/darsie/darsie_specialise.h"

#include "ir/core/module.h"
#include "transforms/common/choice.h"
#include "transforms/common/fold_launch.h"
#include "transforms/common/variant.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace ptxrewrite::transforms {

namespace {

constexpr std::array<std::string_view, 3> components = {"x", "y", "z"};
constexpr std::array<uint32_t, 3> most_threads = {1024, 1024, 64};
constexpr uint32_t most_threads_in_all = 1024;
constexpr std::array<uint32_t, 3> most_blocks = {2147483647, 65535, 65535};

// A launch as the user writes it, for any kernel.
struct WrittenParameter {
  uint64_t place = 0;
  bool negative = false;
  uint64_t magnitude = 0;
  std::string_view text;
};
struct WrittenLaunch {
  std::optional<std::array<uint32_t, 3>> block, grid;
  std::vector<WrittenParameter> parameters;
};

struct Request {
  KnownLaunch known;
  std::vector<std::string> requirements; // as launch predicates
};

std::optional<uint64_t> number_in(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) base = 16, text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::array<uint32_t, 3>> extents_in(std::string_view text, const std::array<uint32_t, 3>& most) {
  std::array<uint32_t, 3> extents{1, 1, 1};
  for (size_t i = 0;; ++i) {
    const size_t end = std::min(text.find('x'), text.size());
    const auto number = number_in(text.substr(0, end));
    if (i == extents.size() || !number || *number == 0 || *number > most[i]) return std::nullopt;
    extents[i] = static_cast<uint32_t>(*number);
    if (end == text.size()) return extents;
    text.remove_prefix(end + 1);
  }
}

std::string read_item(std::string_view name, std::string_view value, WrittenLaunch& launch) {
  if (name == "block") {
    launch.block = extents_in(value, most_threads);
    const bool fits =
        launch.block && uint64_t((*launch.block)[0]) * (*launch.block)[1] * (*launch.block)[2] <= most_threads_in_all;
    return fits ? "" : "'" + std::string(value) + "' is no block shape: at most 1024x1024x64, and 1024 threads in all";
  }
  if (name == "grid") {
    launch.grid = extents_in(value, most_blocks);
    return launch.grid ? "" : "'" + std::string(value) + "' is no grid shape: at most 2147483647x65535x65535";
  }
  if (!name.starts_with("param.")) return "'" + std::string(name) + "' is none of block, grid, param.N";
  const auto place = number_in(name.substr(name.find('.') + 1));
  if (!place) return "'" + std::string(name) + "' is no parameter: they are param.0, param.1 ...";
  const bool negative = value.starts_with('-');
  const auto magnitude = number_in(negative ? value.substr(1) : value);
  if (!magnitude) return "'" + std::string(value) + "' is no integer";
  launch.parameters.push_back({*place, negative, *magnitude, value});
  return "";
}

// Parses the text. Returns an error message; empty if there is none.
std::string read_launch(std::string_view text, WrittenLaunch& launch) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    const size_t equals = item.find('=');
    if (equals == item.npos) return "'" + std::string(item) + "' is not NAME=VALUE";
    if (std::string wrong = read_item(item.substr(0, equals), item.substr(equals + 1), launch); !wrong.empty())
      return wrong;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return launch.block ? "" : "block=.. is missing";
}

// Applies the launch to one kernel.
class Fitter {
public:
  Fitter(const ir::Function& function, Request& request) : function_(function), request_(request) {}

  // Returns why the launch does not fit; empty if it does.
  std::string fit(const WrittenLaunch& written) {
    const size_t parameters = function_.variable_lists.view(function_.signature.parameters).size();
    request_.known.launch.parameters.resize(parameters);
    request_.known.launch.block = *written.block;
    request_.known.launch.grid = written.grid.value_or(most_blocks);
    request_.known.grid_known = written.grid.has_value();
    demand_extents("ntid.", *written.block);
    if (written.grid) demand_extents("nctaid.", *written.grid);
    for (const WrittenParameter& parameter : written.parameters)
      if (std::string wrong = fit_parameter(parameter); !wrong.empty()) return wrong;
    return "";
  }

private:
  std::string fit_parameter(const WrittenParameter& parameter) {
    const auto list = function_.variable_lists.view(function_.signature.parameters);
    const std::string name = std::to_string(parameter.place);
    if (parameter.place >= list.size()) return "the kernel has no parameter 'param." + name + "'";
    const ir::Variable& variable = function_.variables[list[parameter.place]];
    const unsigned bits = ir::bit_width(variable.type);
    const bool integer = ir::is_integer(variable.type) || ir::is_bit_type(variable.type);
    if (!integer || variable.is_array || variable.vector_width != 1 || bits > 64)
      return "parameter " + name + " is no integer";
    const uint64_t number = parameter.negative ? 0 - parameter.magnitude : parameter.magnitude;
    const uint64_t kept = number << (64 - bits) >> (64 - bits);
    const bool is_extension = static_cast<int64_t>(kept << (64 - bits)) >> (64 - bits) == static_cast<int64_t>(number);
    if (kept != number && !(parameter.negative && is_extension))
      return "'" + std::string(parameter.text) + "' does not fit parameter " + name;
    std::vector<uint8_t>& bytes = request_.known.launch.parameters[parameter.place];
    bytes.clear();
    for (unsigned i = 0; i < bits; i += 8)
      bytes.push_back(static_cast<uint8_t>(kept >> i));
    request_.requirements.push_back("P" + name + " == " + std::to_string(kept));
    return "";
  }

  void demand_extents(const char* name, const std::array<uint32_t, 3>& extents) {
    for (size_t i = 0; i < extents.size(); ++i)
      request_.requirements.push_back(name + std::string(components[i]) + " == " + std::to_string(extents[i]));
  }

  const ir::Function& function_;
  Request& request_;
};

// Does the kernel declare a different block shape?
bool contradicts(const ir::Function& function, const std::array<uint32_t, 3>& block) {
  for (const ir::FunctionDirective& directive : function.directives) {
    const std::string_view name = function.module().text(directive.name);
    std::array<uint32_t, 3> stated{1, 1, 1};
    for (uint8_t i = 0; i < directive.count && i < 3; ++i)
      stated[i] = directive.numbers[i];
    if (name == ".reqntid" && stated != block) return true;
    if (name == ".maxntid" && uint64_t(block[0]) * block[1] * block[2] > uint64_t(stated[0]) * stated[1] * stated[2])
      return true;
  }
  return false;
}

void require_block(ir::Function& function, const std::array<uint32_t, 3>& block) {
  ir::Module& module = function.module();
  std::erase_if(function.directives, [&](const ir::FunctionDirective& directive) {
    const std::string_view name = module.text(directive.name);
    return name == ".reqntid" || name == ".maxntid";
  });
  // The directive that the module's version supports: ptxas at least learns how many registers a thread may use.
  const unsigned version = module.version_major * 10u + module.version_minor;
  if (version < 13) return function.changed();
  ir::FunctionDirective directive;
  directive.name = module.intern(version < 21 ? ".maxntid" : ".reqntid");
  directive.numbers = block;
  directive.count = 3;
  function.directives.insert(function.directives.begin(), directive);
  function.changed();
}

// Replaces indices of dimensions with extent 1 by 0.
void fix_single_indices(ir::Function& function, const KnownLaunch& known) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      for (ir::Operand& operand : function.operands_of(id)) {
        if (!operand.is(ir::OperandKind::special_register)) continue;
        const auto special = static_cast<ir::SpecialRegister>(operand.id);
        for (unsigned i = 0; i < 3; ++i) {
          if (operand.selector != ir::component_selector(i)) continue;
          const bool single = (special == ir::SpecialRegister::tid && known.launch.block[i] == 1) ||
                              (special == ir::SpecialRegister::ctaid && known.grid_known && known.launch.grid[i] == 1);
          if (single) operand = ir::Operand::integer(0);
        }
      }
}

// Returns why the rewritten kernel is rejected; empty if it is not worse, or if `force` is set.
std::string why_it_loses(const ir::Function& rewritten, const ir::Function& original, PassContext& context) {
  if (context.options.flag("force")) return "";
  std::vector<std::string> machines = legal::architectures_to_ask(original.module(), context);
  const std::optional<legal::KernelCost> before = legal::cost_of_original(original, machines, context);
  if (!before) return "not weighed";
  const Result<legal::KernelCost> after = legal::cost_of(rewritten, machines, context);
  if (!after) return "the kernel for this launch is not assembled (force keeps it): " + after.error().message;
  const std::string figures = legal::comparison(*after, *before);
  if (legal::loses(*after, *before)) return "the kernel for this launch is worse (force keeps it): " + figures;
  context.remarks.emplace_back("a kernel for this launch; " + figures, original.header_range);
  return "";
}

} // namespace

std::string what_is_wrong_with_launch(std::string_view shape) {
  WrittenLaunch written;
  return read_launch(shape, written);
}

Change specialise(ir::Function& function, std::string_view shape, PassContext& context) {
  auto refuse = [&](const std::string& why) {
    context.remarks.emplace_back("left as it is: " + why, function.header_range);
    return Change::unchanged;
  };
  if (shape.empty()) return refuse("today's GPUs skip nothing; --specialise makes a kernel for one launch");
  if (std::string why = why_no_variant(function, "darsie", context); !why.empty()) return refuse(why);
  WrittenLaunch written;
  if (std::string wrong = read_launch(shape, written); !wrong.empty()) return refuse(wrong);
  Request request;
  if (std::string wrong = Fitter(function, request).fit(written); !wrong.empty()) return refuse(wrong);
  if (contradicts(function, request.known.launch.block)) return refuse("its own directives exclude this block shape");
  ir::Function rewritten(function);
  require_block(rewritten, request.known.launch.block);
  fix_single_indices(rewritten, request.known);
  const FoldCounts counts = fold_for_launch(rewritten, request.known);
  if (std::string why = why_it_loses(rewritten, function, context); !why.empty()) return refuse(why);
  auto original = std::make_unique<ir::Function>(std::move(function));
  function = std::move(rewritten);
  ++context.statistics["darsie.specialised"];
  context.statistics["darsie.literals"] += static_cast<int64_t>(counts.literals);
  context.statistics["darsie.conditions"] += static_cast<int64_t>(counts.conditions);
  context.statistics["darsie.blocks-removed"] += static_cast<int64_t>(counts.blocks);
  VariantTerms terms;
  terms.pass = "darsie";
  terms.requirements = std::move(request.requirements);
  make_variant(function, std::move(original), terms, context);
  return Change::changed;
}

} // namespace ptxrewrite::transforms
