#include "transforms/narrow/range_tests.h"

#include "ir/core/builder.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::Modifier;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr const char* range_test_raised = "narrow: one comparison for a range";
constexpr size_t most_leaves = 16;

// A comparison of signed numbers with two plain operands.
struct Test {
  InstructionId id;
  Operand left, right;
  std::string_view relation; // lt le gt ge
};

// An operand of a chain of and.pred or or.pred that is not itself a link of the chain.
struct Leaf {
  Operand operand;
  std::optional<Test> test;
};

std::string_view relation_of(const ir::Form& form) {
  if (form.has(Modifier::lt)) return "lt";
  if (form.has(Modifier::le)) return "le";
  if (form.has(Modifier::gt)) return "gt";
  return form.has(Modifier::ge) ? "ge" : "";
}

class RangeTests {
public:
  RangeTests(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms, legal::BoundsOfValues& bounds)
      : attempt_(attempt), sites_(sites), function_(attempt.function()), forms_(forms), bounds_(bounds) {}

  bool run() {
    bool changed = false;
    for (ir::BlockId block : forms_.control_flow().reverse_postorder())
      for (InstructionId id : function_.instructions_in(block))
        changed |= is_chain(id, ir::Opcode::and_) || is_chain(id, ir::Opcode::or_) ? merge_in(id) : merge_combined(id);
    return changed;
  }

private:
  bool is_chain(InstructionId id, ir::Opcode opcode) const {
    if (!function_.is_opcode(id, opcode) || function_.instructions[id].guard) return false;
    const std::span<const Operand> operands = function_.operands_of(id);
    return function_.form_of(id).type() == ir::ScalarType::pred && operands.size() == 3 &&
           operands[0].is(OperandKind::value);
  }

  static bool is_plain(const Operand& operand) {
    return operand.is(OperandKind::integer) || (operand.is(OperandKind::value) && operand.selector == ir::no_selector);
  }

  std::optional<Test> test_of(const Operand& operand) const {
    if (!operand.is(OperandKind::value) || operand.has(ir::OperandFlag::negated)) return std::nullopt;
    const InstructionId id = forms_.def_use().definition(operand.as_value()).instruction;
    if (!id || !function_.is_opcode(id, ir::Opcode::setp) || function_.instructions[id].guard) return std::nullopt;
    const ir::Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    const std::string_view relation = relation_of(form);
    if (form.type() != ir::ScalarType::s32 || operands.size() != 3 || relation.empty()) return std::nullopt;
    if (!is_plain(operands[1]) || !is_plain(operands[2])) return std::nullopt;
    return Test{id, operands[1], operands[2], relation};
  }

  void collect(InstructionId id, ir::Opcode opcode, std::vector<Leaf>& leaves, size_t depth = 0) const {
    for (size_t place = 1; place < 3; ++place) {
      const Operand operand = function_.operands_of(id)[place];
      InstructionId inner;
      if (operand.is(OperandKind::value) && !operand.has(ir::OperandFlag::negated))
        inner = forms_.def_use().definition(operand.as_value()).instruction;
      // A link with other readers stays.
      if (inner && is_chain(inner, opcode) && leaves.size() < most_leaves && depth < most_leaves &&
          forms_.def_use().uses(operand.as_value()).size() == 1)
        collect(inner, opcode, leaves, depth + 1);
      else
        leaves.push_back({operand, test_of(operand)});
    }
  }

  // setp.lt.and.s32 p, x, w, q with q defined as x >= 0, or vice versa.
  bool merge_combined(InstructionId id) {
    if (!function_.is_opcode(id, ir::Opcode::setp) || function_.instructions[id].guard) return false;
    const ir::Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    const bool conjunction = form.has(Modifier::and_);
    const std::string_view relation = relation_of(form);
    if ((!conjunction && !form.has(Modifier::or_)) || form.type() != ir::ScalarType::s32 || operands.size() != 4 ||
        !operands[0].is(OperandKind::value) || relation.empty() || !is_plain(operands[1]) || !is_plain(operands[2]))
      return false;
    const Operand result = operands[0];
    const Test own{id, operands[1], operands[2], relation};
    const std::optional<Test> other = test_of(operands[3]);
    if (!other) return false;
    const bool own_is_bound = is_sign_test(*other, conjunction) && is_bound_test(own, conjunction, other->left);
    if (!own_is_bound && !(is_sign_test(own, conjunction) && is_bound_test(*other, conjunction, own.left)))
      return false;
    const Test bound = own_is_bound ? own : *other;
    const auto proof = bounds_.prove(bound.id, bound.right, {0, INT32_MAX});
    if (!proof || !sites_.take(id, "comparisons with 0 and a bound -> one, unsigned")) return false;
    bounds_.rest_on(attempt_, *proof, range_test_raised, id);
    ir::Builder builder(function_);
    builder.before(id).standing_for(id);
    builder.emit("setp." + std::string(bound.relation) + ".u32", {result, bound.left, bound.right});
    function_.remove(id);
    return true;
  }

  // x >= 0 in a chain of ands, x < 0 in a chain of ors.
  static bool is_sign_test(const Test& test, bool conjunction) {
    if (!test.right.is(OperandKind::integer) || !test.left.is(OperandKind::value)) return false;
    const int64_t bound = test.right.immediate;
    if (conjunction) return (test.relation == "ge" && bound == 0) || (test.relation == "gt" && bound == -1);
    return (test.relation == "lt" && bound == 0) || (test.relation == "le" && bound == -1);
  }

  // The numbers whose signs are tested: one, or x and y for (x | y) < 0.
  void collect_signs(const Operand& operand, std::vector<Operand>& signs, size_t depth = 0) const {
    const InstructionId id =
        operand.is(OperandKind::value) ? forms_.def_use().definition(operand.as_value()).instruction : InstructionId();
    const bool joined = id && function_.is_opcode(id, ir::Opcode::or_) && !function_.instructions[id].guard &&
                        function_.operands_of(id).size() == 3 && signs.size() < most_leaves && depth < most_leaves;
    if (!joined) {
      if (std::ranges::find(signs, operand) == signs.end()) signs.push_back(operand);
      return;
    }
    collect_signs(function_.operands_of(id)[1], signs, depth + 1);
    collect_signs(function_.operands_of(id)[2], signs, depth + 1);
  }

  // The leaves that compare the numbers of the sign test with bounds; empty unless there is one for each number.
  std::vector<Leaf*> bounds_for(const Leaf& sign, std::vector<Leaf>& leaves, bool conjunction) const {
    std::vector<Operand> signs;
    collect_signs(sign.test->left, signs);
    std::vector<Leaf*> found;
    for (const Operand& x : signs) {
      auto bound = std::ranges::find_if(
          leaves, [&](const Leaf& leaf) { return leaf.test && is_bound_test(*leaf.test, conjunction, x); });
      if (bound == leaves.end()) return {};
      found.push_back(&*bound);
    }
    return found;
  }

  // x < w or x <= w; in a chain of ors, x >= w or x > w.
  static bool is_bound_test(const Test& test, bool conjunction, const Operand& x) {
    if (test.left != x || test.right.is(OperandKind::integer)) return false;
    return conjunction ? test.relation == "lt" || test.relation == "le"
                       : test.relation == "ge" || test.relation == "gt";
  }

  bool merge_in(InstructionId root) {
    const ir::Opcode opcode = function_.form_of(root).opcode;
    const bool conjunction = opcode == ir::Opcode::and_;
    // Inner links of a chain are handled with its last link.
    const auto uses = forms_.def_use().uses(function_.operands_of(root)[0].as_value());
    if (uses.size() == 1 && uses[0].instruction && is_chain(uses[0].instruction, opcode)) return false;
    std::vector<Leaf> leaves;
    collect(root, opcode, leaves);
    bool changed = false;
    for (size_t sign = 0; sign < leaves.size(); ++sign) {
      if (!leaves[sign].test || !is_sign_test(*leaves[sign].test, conjunction)) continue;
      if (!merge(root, bounds_for(leaves[sign], leaves, conjunction))) continue;
      leaves.erase(leaves.begin() + static_cast<ptrdiff_t>(sign--));
      changed = true;
    }
    if (changed) write_chain(root, leaves);
    return changed;
  }

  // The leaves with the bounds become tests of both ends of the range.
  bool merge(InstructionId root, const std::vector<Leaf*>& bounds) {
    std::vector<legal::RangeProof> proofs;
    for (const Leaf* bound : bounds)
      if (auto proof = bounds_.prove(bound->test->id, bound->test->right, {0, INT32_MAX}))
        proofs.push_back(std::move(*proof));
    if (bounds.empty() || proofs.size() != bounds.size() ||
        !sites_.take(bounds[0]->test->id, "comparisons with 0 and a bound -> one, unsigned"))
      return false;
    ir::Builder builder(function_);
    for (size_t i = 0; i < bounds.size(); ++i) {
      const Test test = *bounds[i]->test;
      bounds_.rest_on(attempt_, proofs[i], range_test_raised, test.id);
      builder.before(root).standing_for(test.id);
      bounds[i]->operand = Operand::value(builder.emit_value("setp." + std::string(test.relation) + ".u32",
                                                             ir::ScalarType::pred, {test.left, test.right}, "%p"));
      bounds[i]->test.reset();
    }
    return true;
  }

  // Emits the rest of a chain in the place of its last link.
  void write_chain(InstructionId root, const std::vector<Leaf>& leaves) {
    const std::string mnemonic(function_.form_of(root).mnemonic);
    const Operand result = function_.operands_of(root)[0];
    ir::Builder builder(function_);
    builder.before(root).standing_for(root);
    Operand chain = leaves[0].operand;
    for (size_t i = 1; i + 1 < leaves.size(); ++i)
      chain = Operand::value(builder.emit_value(mnemonic, ir::ScalarType::pred, {chain, leaves[i].operand}, "%p"));
    if (leaves.size() == 1)
      builder.emit("mov.pred", {result, chain});
    else
      builder.emit(mnemonic, {result, chain, leaves.back().operand});
    function_.remove(root);
  }

  legal::Attempt& attempt_;
  legal::SiteFilter& sites_;
  ir::Function& function_;
  ir::LinearForms& forms_;
  legal::BoundsOfValues& bounds_;
};

} // namespace

bool merge_range_tests(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms,
                       legal::BoundsOfValues& bounds) {
  return RangeTests(attempt, sites, forms, bounds).run();
}

} // namespace ptxrewrite::transforms
