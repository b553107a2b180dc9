#include "tests/rules/rule_kernels.h"

#include <cstdio>
#include <map>

namespace ptxrewrite::tests {

using namespace transforms::legal::composite;

namespace {

// Literals for the rule's names that meet its conditions.
class Literals {
public:
  explicit Literals(const Rule& rule) : rule_(rule) {
    collect(rule.pattern);
    found_ = choose(0);
  }
  bool found() const { return found_; }
  const std::map<std::string, uint32_t>& values() const { return values_; }

private:
  void collect(const RuleTerm& term) {
    if (term.kind == RuleTerm::Kind::name) values_.emplace(term.text, 0);
    for (const RuleTerm& operand : term.operands)
      collect(operand);
  }
  bool choose(size_t index);

  const Rule& rule_;
  std::map<std::string, uint32_t> values_;
  bool found_ = false;
};

bool Literals::choose(size_t index) {
  if (index == values_.size()) {
    const Meaning meaning{[&](const std::string& name) { return values_.at(name); },
                          [](const std::string&, const std::string&, uint32_t) { return true; }};
    for (const RuleExpression& condition : rule_.conditions)
      if (!evaluate(condition, meaning)) return false;
    return true;
  }
  auto row = std::next(values_.begin(), static_cast<std::ptrdiff_t>(index));
  for (uint32_t candidate : {5u, 27u, 3u, 32u, 59u, 43u, 21u, 0x3ffu, 0x7fe0u, 0xfffffc00u, 0xffff801fu}) {
    row->second = candidate;
    if (choose(index + 1)) return true;
  }
  return false;
}

// A kernel that stores one term.
class Kernel {
public:
  Kernel(const Rule& rule, const std::map<std::string, uint32_t>& literals) : rule_(rule), literals_(literals) {}

  std::string text(const std::string& name, const RuleTerm& term) {
    load(rule_.pattern);
    const std::string result = value(term);
    const std::string type = is_wide(term.text) ? "b64" : "b32";
    return ".visible .entry " + name +
           "(.param .u64 buffer)\n{\n.reg .b16 %h<99>;\n.reg .b32 %t;\n.reg .b32 %r<99>;\n.reg .b64 %rd<99>;\n.reg "
           ".pred %p<9>;\n"
           "ld.param.u64 %rd1, [buffer];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 256;\n"
           "add.s64 %rd3, %rd1, %rd2;\n" +
           body_ + "st.global." + type + " [%rd3], " + result + ";\nret;\n}\n";
  }

private:
  static bool is_narrow(const std::string& mnemonic) {
    return (mnemonic.ends_with("16") && !mnemonic.starts_with("cvt.")) || mnemonic.starts_with("cvt.u16.");
  }
  static bool is_float(const std::string& mnemonic) {
    return mnemonic.ends_with(".f32") && !mnemonic.starts_with("cvt.");
  }
  static bool is_wide(const std::string& mnemonic) {
    if (mnemonic.starts_with("cvt.")) return mnemonic.substr(5, 2) == "64";
    return mnemonic.ends_with("64") || mnemonic.find(".wide.") != std::string::npos;
  }
  static std::string float_literal(uint32_t bits) {
    char text[16];
    std::snprintf(text, sizeof text, "0f%08X", bits);
    return text;
  }
  std::string fresh(bool wide) { return (wide ? "%rd" : "%r") + std::to_string(next_++); }
  void load(const RuleTerm& term);
  std::string value(const RuleTerm& term);
  std::string application(const RuleTerm& term);
  std::optional<uint32_t> fact(const std::string& name, const std::string& variable) const;

  const Rule& rule_;
  const std::map<std::string, uint32_t>& literals_;
  std::map<std::string, std::string> registers_; // of variables
  std::string body_;
  unsigned next_ = 4;
};

std::optional<uint32_t> Kernel::fact(const std::string& name, const std::string& variable) const {
  for (const RuleExpression& condition : rule_.conditions)
    if (condition.kind == RuleExpression::Kind::fact && condition.text == name && condition.variable == variable)
      return condition.operands[0].number;
  return std::nullopt;
}

void Kernel::load(const RuleTerm& term) {
  for (const RuleTerm& operand : term.operands)
    load(operand);
  if (term.kind != RuleTerm::Kind::variable || registers_.contains(term.text)) return;
  const std::string place = "[%rd3+" + std::to_string(8 * registers_.size()) + "]";
  std::string loaded = fresh(term.bits == 64);
  const char* type = term.bits == 64 ? "b64" : fact("fits", term.text) ? "s16" : "b32";
  body_ += std::string("ld.global.") + type + " " + loaded + ", " + place + ";\n";
  if (std::optional<uint32_t> zeros = fact("zeros", term.text)) {
    const std::string masked = fresh(false);
    body_ += "and.b32 " + masked + ", " + loaded + ", " + std::to_string(~*zeros) + ";\n";
    loaded = masked;
  }
  registers_[term.text] = loaded;
}

std::string Kernel::value(const RuleTerm& term) {
  const Meaning meaning{[&](const std::string& name) { return literals_.at(name); }, {}};
  switch (term.kind) {
  case RuleTerm::Kind::variable:
    return registers_.at(term.text);
  case RuleTerm::Kind::literal:
    return std::to_string(static_cast<int32_t>(term.number));
  case RuleTerm::Kind::name:
    return std::to_string(static_cast<int32_t>(literals_.at(term.text)));
  case RuleTerm::Kind::computed:
    return std::to_string(static_cast<int32_t>(evaluate(term.expression, meaning)));
  case RuleTerm::Kind::application:
    break;
  }
  return application(term);
}

std::string Kernel::application(const RuleTerm& term) {
  std::vector<std::string> operands;
  for (const RuleTerm& operand : term.operands)
    operands.push_back(is_float(term.text) && operand.kind == RuleTerm::Kind::literal ? float_literal(operand.number)
                                                                                      : value(operand));
  if (term.text == "low.b64" || term.text == "high.b64") {
    const std::string low = fresh(false), high = fresh(false);
    body_ += "mov.b64 {" + low + ", " + high + "}, " + operands[0] + ";\n";
    return term.text == "low.b64" ? low : high;
  }
  const bool is_predicate = term.text.starts_with("setp.");
  const std::string result = is_predicate           ? "%p" + std::to_string(next_++ % 8 + 1)
                             : is_narrow(term.text) ? "%h" + std::to_string(next_++)
                                                    : fresh(is_wide(term.text));
  std::string list;
  for (const std::string& operand : operands)
    list += ", " + operand;
  if (term.text == "pack.b64")
    body_ += "mov.b64 " + result + ", {" + operands[0] + ", " + operands[1] + "};\n";
  else if (term.text.starts_with("byte") && term.text.ends_with(".u16"))
    body_ += "bfe.u32 %t, " + operands[0] + ", " + std::to_string(8 * (term.text[4] - '0')) + ", 8;\ncvt.u16.u32 " +
             result + ", %t;\n";
  else if (term.text.starts_with("byte"))
    body_ +=
        "bfe" + term.text.substr(5) + " " + result + list + ", " + std::to_string(8 * (term.text[4] - '0')) + ", 8;\n";
  else
    body_ += term.text + " " + result + list + ";\n";
  return result;
}

} // namespace

std::optional<std::string> kernel_of(const Rule& rule, const std::string& name, bool replaced) {
  const Literals literals(rule);
  if (!literals.found()) return std::nullopt;
  return Kernel(rule, literals.values()).text(name, replaced ? rule.replacement : rule.pattern);
}

std::string module_header(const std::string& architecture) {
  return ".version 9.0\n.target " + architecture + "\n.address_size 64\n";
}

} // namespace ptxrewrite::tests
