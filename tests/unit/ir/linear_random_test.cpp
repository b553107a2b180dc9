// Random kernels with wrapping arithmetic in mixed widths and signs, branches, guards and loops: the form of a value
// must equal the value that each thread computes, whenever its obligations hold.
#include "tests/unit/ir/linear_interpreter.h"

#include "ir/analysis/linear/report.h"
#include "ir/core/builder.h"

#include <doctest/doctest.h>

#include <random>

namespace ptxrewrite::tests::linear_random_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using ptxrewrite::tests::LinearChecker;

namespace {

class KernelGenerator {
public:
  KernelGenerator(Module& module, uint32_t seed) : random_(seed), builder_(module.function(module.add_function())) {
    module.address_size = 64;
    function_ = &module.function(FunctionId(static_cast<uint32_t>(module.functions.size() - 1)));
    function_->is_entry = function_->has_body = function_->is_ssa = true;
    function_->name = module.intern("k");
    builder_ = Builder(*function_);
    std::vector<VariableId> parameters;
    for (ScalarType type :
         {ScalarType::u32, ScalarType::u32, ScalarType::u32, ScalarType::u64, ScalarType::u64, ScalarType::u16}) {
      Variable variable;
      variable.name = module.intern("p" + std::to_string(parameters.size()));
      variable.space = StateSpace::param;
      variable.type = type;
      parameters.push_back(function_->variables.add(variable));
      parameter_types.push_back(type);
    }
    function_->signature.parameters = function_->variable_lists.add(parameters);
    start_block();
    for (size_t i = 0; i < parameters.size(); ++i) {
      std::vector<Operand> operands{
          Operand::definition(builder_.new_value(register_type(bit_width(parameter_types[i])), "%p"))};
      operands.push_back(Operand::group(OperandKind::address, 1));
      operands.push_back(Operand::symbol(SymbolRef::local_variable(parameters[i])));
      builder_.emit("ld.param." + std::string(spelling(parameter_types[i])), operands);
      pool(bit_width(parameter_types[i])).push_back(operands[0].as_value());
    }
    for (SpecialRegister special :
         {SpecialRegister::tid, SpecialRegister::ctaid, SpecialRegister::ntid, SpecialRegister::nctaid})
      for (unsigned component = 0; component < 3; ++component) {
        if (pick(3) == 0) continue;
        values32_.push_back(builder_.emit_value(
            "mov.u32", ScalarType::b32,
            {Operand::special(static_cast<uint32_t>(special), component_selector(component))}, "%i"));
      }
    predicates_.push_back(compare());
  }

  Function& function() { return *function_; }
  std::vector<ScalarType> parameter_types;

  // `with_control`: branches, loops and guards too.
  void generate(unsigned length, bool with_control) {
    with_control_ = with_control;
    body(length, 0);
    builder_.emit("ret", std::initializer_list<Operand>{});
  }

private:
  uint32_t pick(uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random_); }
  static ScalarType register_type(unsigned width) {
    return width == 1    ? ScalarType::pred
           : width == 16 ? ScalarType::b16
           : width == 32 ? ScalarType::b32
                         : ScalarType::b64;
  }
  std::vector<ValueId>& pool(unsigned width) { return width == 16 ? values16_ : width == 32 ? values32_ : values64_; }
  unsigned any_width() { return std::array<unsigned, 6>{32, 32, 32, 64, 64, 16}[pick(6)]; }
  std::string typed(std::string_view name, unsigned width, bool is_signed) {
    return std::string(name) + (is_signed ? ".s" : ".u") + std::to_string(width);
  }

  void start_block() {
    block_ = function_->add_block();
    function_->place_block(block_);
    builder_.at_end(block_);
  }

  ValueId known(unsigned width) {
    auto& list = pool(width);
    // Prefers recent values, so that chains get long.
    size_t size = list.size();
    if (size > 6 && pick(2)) return list[size - 1 - pick(6)];
    return list[pick(static_cast<uint32_t>(size))];
  }
  int64_t literal(unsigned width) {
    switch (pick(8)) {
    case 0:
      return -1;
    case 1:
      return int64_t(1) << pick(width);
    case 2:
      return static_cast<int64_t>((uint64_t(1) << pick(width)) - 1);
    case 3:
      return static_cast<int64_t>(random_());
    default:
      return pick(9);
    }
  }
  Operand source(unsigned width) {
    if (pick(4) == 0) return Operand::integer(sized(literal(width), width));
    return Operand::value(known(width));
  }
  static int64_t sized(int64_t value, unsigned width) {
    return width >= 64 ? value : static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - width)) >> (64 - width);
  }

  ValueId emit(const std::string& mnemonic, unsigned width, std::initializer_list<Operand> sources) {
    ValueId value = builder_.emit_value(mnemonic, register_type(width), sources, width == 1 ? "%q" : "%v");
    guard_now_and_then(value, width);
    return value;
  }

  // Turns the last instruction into a guarded one whose old value is some other value.
  void guard_now_and_then(ValueId value, unsigned width) {
    if (!with_control_ || width == 1 || pick(8) || predicates_.empty()) return;
    InstructionId id = function_->blocks[block_].last;
    std::vector<Operand> operands(function_->operands_of(id).begin(), function_->operands_of(id).end());
    ValueId old = known(width);
    if (old == value) return;
    Operand operand = Operand::value(old);
    operand.flags = OperandFlag::old_value;
    operands.push_back(operand);
    function_->set_operands(id, operands);
    function_->instructions[id].guard = predicates_[pick(static_cast<uint32_t>(predicates_.size()))];
    function_->instructions[id].guard_negated = pick(2);
  }

  ValueId compare() {
    static constexpr std::array words = {"eq", "ne", "lt", "le", "gt", "ge"};
    unsigned width = any_width();
    return builder_.emit_value("setp." + std::string(words[pick(6)]) + (pick(2) ? ".s" : ".u") + std::to_string(width),
                               ScalarType::pred, {Operand::value(known(width)), source(width)}, "%q");
  }

  // Long: one case per operation.
  void statement() {
    unsigned width = any_width();
    bool is_signed = pick(2);
    ValueId value;
    switch (pick(19)) {
    case 0:
    case 1:
      value = emit(typed("add", width, is_signed), width, {Operand::value(known(width)), source(width)});
      break;
    case 2:
      value = emit(typed("sub", width, is_signed), width, {Operand::value(known(width)), source(width)});
      break;
    case 3:
      value = emit(typed("mul.lo", width, is_signed), width, {Operand::value(known(width)), source(width)});
      break;
    case 4:
      value = emit(typed("mad.lo", width, is_signed), width,
                   {Operand::value(known(width)), source(width), Operand::value(known(width))});
      break;
    case 5:
      value = emit("shl.b" + std::to_string(width), width,
                   {Operand::value(known(width)), pick(4) ? Operand::integer(pick(width)) : Operand::value(known(32))});
      break;
    case 6:
      value = emit(typed("neg", width, true), width, {Operand::value(known(width))});
      break;
    case 7:
      value = emit("not.b" + std::to_string(width), width, {Operand::value(known(width))});
      break;
    case 8:
    case 9: {
      unsigned from = pick(5) ? 32 : 16;
      width = 2 * from;
      value = emit(typed("mul.wide", from, is_signed), width, {Operand::value(known(from)), source(from)});
      break;
    }
    case 10: {
      unsigned from = pick(5) ? 32 : 16;
      width = 2 * from;
      value = emit(typed("mad.wide", from, is_signed), width,
                   {Operand::value(known(from)), source(from), Operand::value(known(width))});
      break;
    }
    case 11:
    case 12: {
      unsigned from = any_width();
      if (from == width) from = width == 64 ? 32 : 64;
      value = emit("cvt" + std::string(pick(2) ? ".s" : ".u") + std::to_string(width) + (is_signed ? ".s" : ".u") +
                       std::to_string(from),
                   width, {Operand::value(known(from))});
      break;
    }
    case 13: {
      static constexpr std::array words = {"and.b", "or.b", "xor.b"};
      value = emit(words[pick(3)] + std::to_string(width), width,
                   {Operand::value(known(width)),
                    pick(2) ? Operand::integer((int64_t(1) << pick(width - 1)) - 1) : source(width)});
      break;
    }
    case 14:
      value =
          emit(typed(pick(2) ? "min" : "max", width, is_signed), width, {Operand::value(known(width)), source(width)});
      break;
    case 15:
      value =
          emit(typed(pick(2) ? "rem" : "div", width, is_signed), width, {Operand::value(known(width)), source(width)});
      break;
    case 16:
      value = emit("selp.b" + std::to_string(width), width,
                   {Operand::value(known(width)), source(width),
                    Operand::value(predicates_[pick(static_cast<uint32_t>(predicates_.size()))])});
      break;
    case 17:
      value =
          emit(typed("shr", width, is_signed), width, {Operand::value(known(width)), Operand::integer(pick(width))});
      break;
    case 18:
      value = width == 16 ? emit("abs.s16", 16, {Operand::value(known(16))})
                          : emit("abs.s" + std::to_string(width), width, {Operand::value(known(width))});
      break;
    }
    pool(width).push_back(value);
    if (pick(4) == 0) predicates_.push_back(compare());
  }

  void body(unsigned length, unsigned depth) {
    for (unsigned i = 0; i < length; ++i) {
      if (with_control_ && depth < 2 && pick(9) == 0) {
        if (pick(2))
          branch(2 + pick(4), depth + 1);
        else
          loop(2 + pick(4), depth + 1);
      } else {
        statement();
      }
    }
  }

  struct Scope {
    std::vector<ValueId> values16, values32, values64, predicates;
  };
  Scope scope() const { return {values16_, values32_, values64_, predicates_}; }
  void restore(const Scope& old) {
    values16_ = old.values16, values32_ = old.values32, values64_ = old.values64, predicates_ = old.predicates;
  }

  // if (p) { ... } [else { ... }] join(a, b): values from both sides.
  void branch(unsigned length, unsigned depth) {
    ValueId predicate = predicates_[pick(static_cast<uint32_t>(predicates_.size()))];
    BlockId top = block_;
    BlockId other = function_->add_block();
    builder_.guarded_by(predicate, pick(2));
    builder_.emit("bra", {Operand::block(other)});
    builder_.unguarded();
    Scope before = scope();
    std::vector<unsigned> widths{32, 64, any_width()};
    start_block();
    BlockId inner = block_;
    body(length, depth);
    BlockId inner_end = block_;
    std::vector<ValueId> inner_values;
    for (unsigned width : widths)
      inner_values.push_back(known(width));
    restore(before);
    BlockId join = function_->add_block();
    builder_.emit("bra.uni", {Operand::block(join)});
    bool with_else = pick(2);
    function_->place_block(other);
    block_ = other;
    builder_.at_end(other);
    if (with_else) body(length, depth);
    std::vector<ValueId> other_values;
    for (unsigned width : widths)
      other_values.push_back(known(width));
    BlockId other_end = block_;
    restore(before);
    std::vector<EdgeId> out{function_->add_edge(top, other), function_->add_edge(top, inner)};
    function_->set_successors(top, out, true);
    std::vector<EdgeId> from_inner{function_->add_edge(inner_end, join, inner_values)};
    function_->set_successors(inner_end, from_inner, false);
    std::vector<EdgeId> from_other{function_->add_edge(other_end, join, other_values)};
    function_->set_successors(other_end, from_other, true);
    function_->place_block(join);
    enter_with_parameters(join, widths);
  }

  std::vector<ValueId> enter_with_parameters(BlockId block, const std::vector<unsigned>& widths) {
    std::vector<ValueId> parameters;
    for (unsigned width : widths)
      parameters.push_back(builder_.new_value(register_type(width), "%b"));
    function_->set_parameters(block, parameters);
    block_ = block;
    builder_.at_end(block);
    for (size_t i = 0; i < widths.size(); ++i)
      pool(widths[i]).push_back(parameters[i]);
    return parameters;
  }

  // do { ... } while (i REL limit) with a few carried values; i counts by a small step.
  void loop(unsigned length, unsigned depth) {
    unsigned counter_width = pick(4) ? 32 : 64;
    std::vector<unsigned> widths{counter_width, 32, 64};
    std::vector<ValueId> start;
    for (unsigned width : widths)
      start.push_back(known(width));
    if (pick(2))
      start[0] = builder_.emit_value(counter_width == 32 ? "mov.u32" : "mov.u64", register_type(counter_width),
                                     {Operand::integer(pick(3))}, "%v");
    BlockId before = block_;
    BlockId header = function_->add_block();
    function_->place_block(header);
    std::vector<ValueId> carried = enter_with_parameters(header, widths);
    body(length, depth);
    std::vector<ValueId> next;
    int64_t step = pick(4) ? 1 : int64_t(pick(7)) - 3;
    next.push_back(builder_.emit_value(typed("add", counter_width, true), register_type(counter_width),
                                       {Operand::value(carried[0]), Operand::integer(step)}, "%n"));
    for (size_t i = 1; i < widths.size(); ++i) {
      if (pick(3) == 0)
        next.push_back(known(widths[i]));
      else
        next.push_back(builder_.emit_value(typed("add", widths[i], true), register_type(widths[i]),
                                           {Operand::value(carried[i]), source(widths[i])}, "%n"));
    }
    static constexpr std::array words = {"lt", "le", "ne", "gt", "ge"};
    // A second, certain exit keeps most loops short.
    Operand limit = pick(3) ? Operand::integer(2 + pick(6)) : Operand::value(known(counter_width));
    ValueId again = builder_.emit_value(
        "setp." + std::string(words[pick(5)]) + (pick(2) ? ".s" : ".u") + std::to_string(counter_width),
        ScalarType::pred, {Operand::value(pick(4) ? next[0] : carried[0]), limit}, "%q");
    BlockId latch = block_;
    builder_.guarded_by(again);
    builder_.emit("bra", {Operand::block(header)});
    builder_.unguarded();
    std::vector<EdgeId> into{function_->add_edge(before, header, start)};
    function_->set_successors(before, into, true);
    start_block();
    std::vector<EdgeId> out{function_->add_edge(latch, header, next), function_->add_edge(latch, block_)};
    function_->set_successors(latch, out, true);
    for (size_t i = 0; i < widths.size(); ++i)
      pool(widths[i]).push_back(next[i]);
  }

  std::mt19937 random_;
  Builder builder_;
  Function* function_ = nullptr;
  BlockId block_;
  bool with_control_ = false;
  std::vector<ValueId> values16_, values32_, values64_, predicates_;
};

struct Totals {
  LinearChecker::Counts counts;
  unsigned kernels = 0, launches = 0, endless = 0;
};

void add(LinearChecker::Counts& sum, const LinearChecker::Counts& one) {
  sum.compared += one.compared;
  sum.with_threads += one.with_threads;
  sum.obliged += one.obliged;
  sum.refused += one.refused;
  sum.refused_rightly += one.refused_rightly;
  sum.uniform += one.uniform;
}

LaunchValues random_launch(std::mt19937& random, const std::vector<ScalarType>& parameter_types) {
  auto pick = [&](uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random); };
  LaunchValues launch;
  launch.block = {1 + pick(5), 1 + pick(3), 1 + pick(2)};
  launch.grid = {1 + pick(4), 1 + pick(3), 1 + pick(2)};
  if (pick(3) == 0) launch.grid[0] = 1 + (random() & 0x7ffffffe);
  if (pick(4) == 0) launch.block[0] = 1024;
  for (ScalarType type : parameter_types) {
    uint64_t value = pick(20);
    switch (pick(6)) {
    case 0:
      value = (uint64_t(random()) << 32) ^ random();
      break;
    case 1:
      value = uint64_t(1) << pick(bit_width(type));
      break;
    case 2:
      value = (uint64_t(1) << (bit_width(type) - 1)) - pick(3);
      break;
    case 3:
      value = 0 - uint64_t(pick(5));
      break;
    default:
      break;
    }
    launch.add_parameter(value, byte_width(type));
  }
  return launch;
}

Totals campaign(unsigned kernels, unsigned length, bool with_control, uint32_t seed) {
  Totals totals;
  for (unsigned i = 0; i < kernels; ++i) {
    Module module;
    KernelGenerator generator(module, seed + i);
    generator.generate(length, with_control);
    LinearForms forms(generator.function());
    std::mt19937 random(seed * 7 + i);
    ++totals.kernels;
    for (unsigned shape = 0; shape < 4; ++shape) {
      LaunchValues launch = random_launch(random, generator.parameter_types);
      LinearChecker checker(forms, launch);
      bool ended = true;
      for (unsigned sample = 0; sample < 10 && ended; ++sample) {
        std::array<uint32_t, 3> tid{}, ctaid{};
        for (unsigned d = 0; d < 3; ++d) {
          // First, last, and some in between.
          tid[d] = sample == 0 ? 0 : sample == 1 ? launch.block[d] - 1 : random() % launch.block[d];
          ctaid[d] = sample == 0 ? 0 : sample == 1 ? launch.grid[d] - 1 : random() % launch.grid[d];
        }
        ended = checker.run(tid, ctaid);
      }
      totals.endless += !ended;
      ++totals.launches;
      add(totals.counts, checker.counts());
      if (!checker.mismatches().empty()) {
        std::string text = analyze_report(generator.function());
        INFO("seed " << seed + i << "\n" << text);
        FAIL_CHECK(checker.mismatches()[0]);
        return totals;
      }
    }
  }
  return totals;
}

} // namespace

TEST_CASE("straight-line index arithmetic in mixed widths and signs: every form is what the threads compute") {
  Totals totals = campaign(1200, 25, false, 1);
  INFO("compared " << totals.counts.compared << ", with indices " << totals.counts.with_threads << ", obliged "
                   << totals.counts.obliged << ", refused " << totals.counts.refused << " (rightly "
                   << totals.counts.refused_rightly << "), uniform " << totals.counts.uniform);
  CHECK(totals.counts.with_threads > 40000);
  CHECK(totals.counts.obliged > 4000);
  CHECK(totals.counts.refused_rightly >
        1000); // launches that wrap: the obligation is false, and the form would be wrong
}

TEST_CASE("branches, guards and loops: every form is what the threads compute, trip by trip") {
  Totals totals = campaign(500, 20, true, 100000);
  INFO("compared " << totals.counts.compared << ", with indices " << totals.counts.with_threads << ", obliged "
                   << totals.counts.obliged << ", refused " << totals.counts.refused << " (rightly "
                   << totals.counts.refused_rightly << "), uniform " << totals.counts.uniform << ", endless "
                   << totals.endless << " of " << totals.launches);
  CHECK(totals.counts.with_threads > 40000);
  CHECK(totals.counts.obliged > 4000);
  CHECK(totals.endless * 2 < totals.launches);
}

} // namespace ptxrewrite::tests::linear_random_test
