// Special registers and directives: look-up tables from their .def files.
#include "ir/isa/isa.h"

#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

constexpr SpecialRegisterInfo register_infos[] = {
    {},
#define SPECIAL_REGISTER(name, text, type, width, uniformity, is_volatile, readers, version, targets, meaning)         \
  {text, ScalarType::type, width, Uniformity::uniformity, is_volatile, readers, version, targets, meaning},
#include "ir/isa/specialregs.def"
#undef SPECIAL_REGISTER
};
static_assert(std::size(register_infos) <= 256);

constexpr DirectiveInfo directive_infos[] = {
#define DIRECTIVE(name, group, syntax, allowed_at, version, notes) {name, group, syntax, allowed_at, version, notes},
#include "ir/isa/directives.def"
#undef DIRECTIVE
};

} // namespace

std::optional<SpecialRegister> parse_special_register(std::string_view name) {
  static const std::unordered_map<std::string_view, SpecialRegister> names = [] {
    std::unordered_map<std::string_view, SpecialRegister> map;
    for (size_t i = 1; i < std::size(register_infos); ++i)
      map.emplace(register_infos[i].name, SpecialRegister(i));
    return map;
  }();
  auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

const SpecialRegisterInfo& info(SpecialRegister special) {
  return register_infos[static_cast<size_t>(special)];
}

std::span<const DirectiveInfo> directives() {
  return directive_infos;
}

const DirectiveInfo* find_directive(std::string_view name) {
  for (const DirectiveInfo& directive : directive_infos)
    if (directive.name == name) return &directive;
  return nullptr;
}

} // namespace ptxrewrite::ir
