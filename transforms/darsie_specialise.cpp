#include "transforms/darsie_specialise.h"

#include "ir/module.h"
#include "transforms/fold_launch.h"
#include "transforms/variant.h"

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

struct Request {
  KnownLaunch known;
  std::vector<std::string> requirements; // in the words of launch predicates
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

class Reader {
public:
  Reader(const ir::Function& function, Request& request) : function_(function), request_(request) {}

  // Nothing, or what is wrong.
  std::string read(std::string_view text) {
    const size_t parameters = function_.variable_lists.view(function_.signature.parameters).size();
    request_.known.launch.parameters.resize(parameters);
    request_.known.launch.grid = most_blocks;
    while (!text.empty()) {
      const size_t end = std::min(text.find(','), text.size());
      const std::string_view item = text.substr(0, end);
      const size_t equals = item.find('=');
      if (equals == item.npos) return "'" + std::string(item) + "' is not NAME=VALUE";
      if (std::string wrong = read_item(item.substr(0, equals), item.substr(equals + 1)); !wrong.empty()) return wrong;
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return block_seen_ ? "" : "block=.. is missing";
  }

private:
  std::string read_item(std::string_view name, std::string_view value) {
    if (name == "block") return read_block(value);
    if (name == "grid") return read_grid(value);
    if (name.starts_with("param.")) return read_parameter(name, value);
    return "'" + std::string(name) + "' is none of block, grid, param.N";
  }

  std::string read_block(std::string_view value) {
    const auto block = extents_in(value, most_threads);
    if (!block || uint64_t((*block)[0]) * (*block)[1] * (*block)[2] > most_threads_in_all)
      return "'" + std::string(value) + "' is no block shape";
    request_.known.launch.block = *block;
    block_seen_ = true;
    demand_extents("ntid.", *block);
    return "";
  }

  std::string read_grid(std::string_view value) {
    const auto grid = extents_in(value, most_blocks);
    if (!grid) return "'" + std::string(value) + "' is no grid shape";
    request_.known.launch.grid = *grid;
    request_.known.grid_known = true;
    demand_extents("nctaid.", *grid);
    return "";
  }

  std::string read_parameter(std::string_view name, std::string_view value) {
    const auto place = number_in(name.substr(name.find('.') + 1));
    const auto list = function_.variable_lists.view(function_.signature.parameters);
    if (!place || *place >= list.size()) return "the kernel has no parameter '" + std::string(name) + "'";
    const ir::Variable& variable = function_.variables[list[*place]];
    const unsigned bits = ir::bit_width(variable.type);
    const bool integer = ir::is_integer(variable.type) || ir::is_bit_type(variable.type);
    if (!integer || variable.is_array || variable.vector_width != 1 || bits > 64)
      return "parameter " + std::to_string(*place) + " is no integer";
    const bool negative = value.starts_with('-');
    auto number = number_in(negative ? value.substr(1) : value);
    if (number && negative) number = 0 - *number;
    const uint64_t kept = number ? *number << (64 - bits) >> (64 - bits) : 0;
    const bool fits = number && (kept == *number || (negative && (kept >> (bits - 1) & 1) &&
                                                     static_cast<int64_t>(kept << (64 - bits)) >> (64 - bits) ==
                                                         static_cast<int64_t>(*number)));
    if (!fits) return "'" + std::string(value) + "' does not fit parameter " + std::to_string(*place);
    std::vector<uint8_t>& bytes = request_.known.launch.parameters[*place];
    bytes.clear();
    for (unsigned i = 0; i < bits; i += 8)
      bytes.push_back(static_cast<uint8_t>(kept >> i));
    request_.requirements.push_back("P" + std::to_string(*place) + " == " + std::to_string(kept));
    return "";
  }

  void demand_extents(const char* name, const std::array<uint32_t, 3>& extents) {
    for (size_t i = 0; i < extents.size(); ++i)
      request_.requirements.push_back(name + std::string(components[i]) + " == " + std::to_string(extents[i]));
  }

  const ir::Function& function_;
  Request& request_;
  bool block_seen_ = false;
};

// A kernel that says itself which blocks it takes.
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
  ir::FunctionDirective directive;
  directive.name = module.intern(".reqntid");
  directive.numbers = block;
  directive.count = 3;
  function.directives.insert(function.directives.begin(), directive);
  function.changed();
}

// Indices of which there is one only are 0.
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

} // namespace

Change specialise(ir::Function& function, std::string_view shape, PassContext& context) {
  auto refuse = [&](const std::string& why) {
    context.remarks.emplace_back("left as it is: " + why, function.header_range);
    return Change::unchanged;
  };
  if (shape.empty()) return refuse("today's GPUs skip nothing; --specialise makes a kernel for one launch");
  if (std::string why = why_no_variant(function, "darsie", context); !why.empty()) return refuse(why);
  Request request;
  if (std::string wrong = Reader(function, request).read(shape); !wrong.empty()) return refuse(wrong);
  if (contradicts(function, request.known.launch.block)) return refuse("its own directives exclude this block shape");
  auto original = std::make_unique<ir::Function>(function);
  require_block(function, request.known.launch.block);
  fix_single_indices(function, request.known);
  const FoldCounts counts = fold_for_launch(function, request.known);
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
