#include "launch/variants.h"

#include "launch/scalar_bytes.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace ptxrewrite::launch {

namespace {

// The annotations of one kernel, as spelled.
struct Annotations {
  std::string original;
  std::vector<std::string> requirements;
  std::vector<std::string> parameters; // "u64 P5+4*P1"
  std::vector<std::string> grids;
  std::vector<std::string> blocks;
};

// The rest of `text` after "@ WORD keyword "; nullopt if it does not match.
std::optional<std::string_view> behind(std::string_view text, std::string_view keyword) {
  if (!text.starts_with("@ ")) return std::nullopt;
  text.remove_prefix(2);
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  text.remove_prefix(blank + 1);
  if (!text.starts_with(keyword) || text.size() <= keyword.size() || text[keyword.size()] != ' ') return std::nullopt;
  text.remove_prefix(keyword.size() + 1);
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\r'))
    text.remove_suffix(1);
  return text;
}

Annotations annotations_of(const ir::Function& function) {
  Annotations found;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::annotation) continue;
      auto operands = function.operands_of(id);
      if (operands.empty() || !operands[0].is(ir::OperandKind::text)) continue;
      std::string_view text = function.module().text(Symbol(operands[0].id));
      if (auto name = behind(text, "original")) found.original = *name;
      if (auto predicate = behind(text, "requires")) found.requirements.emplace_back(*predicate);
      if (auto parameter = behind(text, "parameter")) found.parameters.emplace_back(*parameter);
      if (auto grid = behind(text, "grid")) found.grids.emplace_back(*grid);
      if (auto block_shape = behind(text, "block")) found.blocks.emplace_back(*block_shape);
    }
  return found;
}

// Parses "u64 P5+4*P1"; nullopt on errors.
std::optional<ComputedParameter> read_parameter(const std::string& text) {
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  std::optional<ir::ScalarType> type = ir::parse_type(text.substr(0, blank));
  if (!type || !is_plain_type(*type) || ir::is_float(*type)) return std::nullopt;
  Result<LaunchExpression> value = LaunchExpression::parse(std::string_view(text).substr(blank + 1));
  if (!value) return std::nullopt;
  return ComputedParameter{*type, *std::move(value)};
}

Variant variant_of(const std::string& entry, const Annotations& annotations) {
  Variant variant;
  variant.entry = entry;
  for (const std::string& text : annotations.requirements) {
    Result<LaunchExpression> predicate = LaunchExpression::parse(text);
    if (predicate)
      variant.requirements.push_back(*std::move(predicate));
    else
      variant.unreadable.push_back(text);
  }
  for (const std::string& text : annotations.parameters) {
    if (std::optional<ComputedParameter> parameter = read_parameter(text))
      variant.parameters.push_back(*std::move(parameter));
    else
      variant.unreadable.push_back(text);
  }
  for (const std::string& text : annotations.grids) {
    if (text == "persistent")
      variant.grid = GridMode::persistent;
    else if (text != "same")
      variant.unreadable.push_back(text);
  }
  for (const std::string& text : annotations.blocks) {
    if (text == "producer")
      variant.block = BlockMode::producer;
    else if (text != "same")
      variant.unreadable.push_back(text);
  }
  return variant;
}

// For messages: the beginning of a condition.
std::string beginning(const std::string& text) {
  constexpr size_t limit = 60;
  return text.size() <= limit ? text : text.substr(0, limit) + "...";
}

constexpr uint32_t warp_size = 32;

} // namespace

const Variants::Kernel* Variants::find(std::string_view name) const {
  for (const Kernel& kernel : kernels_)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

Status Variants::add_side_file(const SideFile& file) {
  auto missing = [&](const std::string& entry) {
    return Error{file.source.name() + ": the module has no kernel '" + entry + "'", {}};
  };
  for (const SideKernel& described : file.kernels) {
    if (!find_kernel(*module_, described.original)) return missing(described.original);
    Kernel kernel{described.name, described.original, {}};
    for (const SideVariant& variant : described.variants) {
      if (!find_kernel(*module_, variant.entry)) return missing(variant.entry);
      Variant one{variant.entry, {}, {}, variant.parameters, variant.grid, variant.block};
      if (variant.when) one.requirements.push_back(*variant.when);
      kernel.variants.push_back(std::move(one));
    }
    kernels_.push_back(std::move(kernel));
  }
  return {};
}

void Variants::add_annotations(const SideFile* side_file) {
  std::unordered_set<std::string_view> kernels;
  for (const auto& function : module_->functions)
    if (function->is_entry && function->has_body) kernels.insert(module_->text(function->name));
  std::unordered_map<std::string, size_t> places; // in kernels_
  for (size_t place = 0; place < kernels_.size(); ++place)
    places.try_emplace(kernels_[place].name, place);
  auto is_described = [&](const std::string& name) {
    return side_file &&
           std::ranges::any_of(side_file->kernels, [&](const SideKernel& kernel) { return kernel.name == name; });
  };
  for (const auto& function : module_->functions) {
    if (!function->is_entry || !function->has_body) continue;
    Annotations found = annotations_of(*function);
    // Without its original a variant has no fallback and replaces nothing.
    if (found.original.empty() || is_described(found.original) || !kernels.contains(found.original)) continue;
    const std::string entry(module_->text(function->name));
    if (entry == found.original) continue;
    Variant variant = variant_of(entry, found);
    const auto [place, is_new] = places.try_emplace(found.original, kernels_.size());
    if (is_new) kernels_.push_back({found.original, found.original, {}});
    kernels_[place->second].variants.push_back(std::move(variant));
  }
}

Result<Variants> Variants::of(const ir::Module& module, const SideFile* side_file) {
  Variants variants;
  variants.module_ = &module;
  if (side_file)
    if (Status status = variants.add_side_file(*side_file); !status) return status.error();
  variants.add_annotations(side_file);
  return variants;
}

SideFile Variants::as_side_file(std::vector<LeftOut>& left_out) const {
  SideFile file;
  for (const Kernel& kernel : kernels_) {
    SideKernel described{kernel.name, kernel.original, {}};
    for (const Variant& variant : kernel.variants) {
      auto leave_out = [&](std::string reason) { left_out.push_back({kernel.name, variant.entry, std::move(reason)}); };
      if (!variant.unreadable.empty()) {
        leave_out("a condition or parameter cannot be read: " + beginning(variant.unreadable.front()));
        continue;
      }
      SideVariant one{variant.entry, {}, variant.parameters, variant.grid, variant.block};
      std::string when;
      for (const LaunchExpression& requirement : variant.requirements)
        when += (when.empty() ? "(" : " && (") + requirement.text() + ')';
      if (variant.requirements.size() == 1) {
        one.when = variant.requirements.front();
      } else if (!when.empty()) {
        Result<LaunchExpression> all = LaunchExpression::parse(when); // parts that parse, in parentheses
        if (!all) {
          leave_out("its " + std::to_string(variant.requirements.size()) +
                    " conditions together: " + all.error().message);
          continue;
        }
        one.when = *std::move(all);
      }
      described.variants.push_back(std::move(one));
    }
    if (!described.variants.empty()) file.kernels.push_back(std::move(described));
  }
  return file;
}

std::span<const Variant> Variants::of_kernel(std::string_view kernel) const {
  const Kernel* found = find(kernel);
  return found ? std::span<const Variant>(found->variants) : std::span<const Variant>();
}

size_t Variants::most_of_a_kernel() const {
  size_t most = 0;
  for (const Kernel& kernel : kernels_)
    most = std::max(most, kernel.variants.size());
  return most;
}

Variants Variants::without_first(size_t count) const {
  Variants rest = *this;
  for (Kernel& kernel : rest.kernels_) {
    const auto end = kernel.variants.begin() + static_cast<std::ptrdiff_t>(std::min(count, kernel.variants.size()));
    kernel.variants.erase(kernel.variants.begin(), end);
  }
  return rest;
}

// Fills `choice` and returns true if the variant is to run; otherwise adds a reason.
bool Variants::try_variant(const Variant& variant, const LaunchFacts& facts, const ir::Function& original,
                           const VariantObjection& objection, VariantChoice& choice) const {
  auto refuse = [&](const std::string& why) {
    choice.reasons.push_back(variant.entry + ": " + why);
    return false;
  };
  if (!variant.unreadable.empty()) return refuse("cannot be read: " + variant.unreadable.front());
  for (const LaunchExpression& requirement : variant.requirements) {
    Result<Int128> value = requirement.evaluate(facts);
    if (!value) return refuse(value.error().message + ", in: " + requirement.text());
    if (*value == 0) return refuse("not fulfilled: " + requirement.text());
  }
  const ir::Function* entry = find_kernel(*module_, variant.entry);
  if (!entry) return refuse("the module has no such kernel");
  if (objection)
    if (const std::string why = objection(original, *entry); !why.empty()) return refuse(why);
  const Signature signature = signature_of(*entry);
  const size_t original_count = facts.parameters.size();
  if (signature.parameters.size() != original_count + variant.parameters.size())
    return refuse("it has " + std::to_string(signature.parameters.size()) + " parameters, not " +
                  std::to_string(original_count + variant.parameters.size()));
  std::vector<std::byte> block(signature.bytes);
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const Parameter& parameter = signature.parameters[i];
    std::array<std::byte, 8> computed{};
    std::span<const std::byte> bytes;
    if (i < original_count) {
      bytes = facts.parameters[i];
    } else {
      const ComputedParameter& rule = variant.parameters[i - original_count];
      Result<Int128> value = rule.value.evaluate(facts);
      if (!value) return refuse(value.error().message + ", in: " + rule.value.text());
      if (std::string wrong = encode(rule.type, Number(*value), computed.data()); !wrong.empty())
        return refuse(wrong + ", in: " + rule.value.text());
      bytes = std::span<const std::byte>(computed).first(byte_width(rule.type));
    }
    if (bytes.size() != parameter.bytes) return refuse("parameter " + std::to_string(i) + " has another size");
    std::ranges::copy(bytes, block.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }
  choice.entry = entry;
  choice.parameter_block = std::move(block);
  choice.grid = variant.grid;
  if (variant.block == BlockMode::producer)
    choice.block = {static_cast<uint32_t>(facts.block.count()) + warp_size, 1, 1};
  choice.is_original = false;
  return true;
}

Result<VariantChoice> Variants::choose(std::string_view kernel, std::span<const std::byte> parameter_block,
                                       const Dim3& grid, const Dim3& block, const VariantObjection& objection) const {
  const Kernel* known = find(kernel);
  const ir::Function* original = find_kernel(*module_, known ? known->original : kernel);
  if (!original) return Error{"the module has no kernel '" + std::string(kernel) + "'", {}};
  VariantChoice choice;
  choice.block = block;
  if (known) {
    const LaunchFacts facts = facts_of(signature_of(*original), parameter_block, grid, block);
    for (const Variant& variant : known->variants)
      if (try_variant(variant, facts, *original, objection, choice)) return choice;
  }
  choice.entry = original;
  choice.parameter_block.assign(parameter_block.begin(), parameter_block.end());
  return choice;
}

} // namespace ptxrewrite::launch
