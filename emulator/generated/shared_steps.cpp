// Functions that quick code calls for accesses, branches and long operations. A call is one instruction of LLVM IR,
// where inlined code would be many, and compile time grows with the number of instructions.
#include "emulator/generated/emitter.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator::generated {
namespace {
// Instructions of LLVM IR; a call costs about as many.
constexpr unsigned longest_row_inline = 6;
} // namespace

// `body` writes the function when it is first called.
Value Emitter::step_function(const std::string& name, Type result, const std::vector<Type>& parameters,
                             const std::function<void(Value)>& body) {
  if (const auto known = steps_.find(name); known != steps_.end()) return known->second;
  std::vector<Type> types = parameters;
  const Type type = ir_.llvm.FunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
  const Value step = steps_[name] = ir_.llvm.AddFunction(ir_.module(), name.c_str(), type);
  ir_.llvm.SetLinkage(step, LLVMInternalLinkage);
  const Value caller = ir_.function, context = context_;
  const Label here = ir_.here();
  ir_.function = step;
  context_ = ir_.llvm.GetParam(step, 0);
  ir_.place_at(ir_.label("step"));
  ir_.use_scalars();
  body(step);
  ir_.function = caller;
  context_ = context;
  ir_.place_at(here);
  return step;
}

Value Emitter::call_step(Value function, std::vector<Value> values) {
  return ir_.llvm.BuildCall2(ir_.builder, ir_.llvm.GlobalGetValueType(function), function, values.data(),
                             static_cast<unsigned>(values.size()), "");
}

// (begin, size, host, address, bytes, bits that have to be zero): the host's address, or 0.
void Emitter::write_host_step(Value function) {
  Value x[6];
  for (unsigned i = 0; i < 6; ++i)
    x[i] = ir_.llvm.GetParam(function, i);
  const Value offset = ir_.sub(x[3], x[0]);
  Value good = ir_.icmp(LLVMIntUGE, x[1], x[4]);
  good = ir_.bit_and(good, ir_.icmp(LLVMIntULE, offset, ir_.sub(x[1], x[4])));
  good = ir_.bit_and(good, ir_.icmp(LLVMIntEQ, ir_.bit_and(x[3], x[5]), ir_.scalar_constant(64, 0)));
  ir_.llvm.BuildRet(ir_.builder, ir_.select(good, ir_.add(x[2], offset), ir_.scalar_constant(64, 0)));
}

// The host's address of `bytes` at `address`, or 0: outside, or misaligned.
Value Emitter::host_if_inside(Access& access, Value address, uint64_t bytes) {
  const Type number = ir_.scalar(64);
  const Value general = step_function("host_step", number, {number, number, number, number, number, number},
                                      [&](Value function) { write_host_step(function); });
  const Value wanted = ir_.scalar_constant(64, bytes), zeros = ir_.scalar_constant(64, access.size - 1);
  if (!access.range.place)
    return call_step(general, {access.range.begin, access.range.size, access.range.host, address, wanted, zeros});
  const Value of_range =
      step_function("range_step", number, {ir_.pointer(), number, number, number}, [&](Value function) {
        Range range;
        range.place = ir_.llvm.GetParam(function, 0);
        load_range(range);
        ir_.llvm.BuildRet(ir_.builder,
                          call_step(general, {range.begin, range.size, range.host, ir_.llvm.GetParam(function, 1),
                                              ir_.llvm.GetParam(function, 2), ir_.llvm.GetParam(function, 3)}));
      });
  return call_step(of_range, {access.range.place, address, wanted, zeros});
}

// (context, byte offset of the micro-operation, mask, byte offset of the guess): did it end as usual?
void Emitter::write_call_step(Value function, bool has_guess) {
  const Value offset = ir_.llvm.GetParam(function, 1);
  const auto loaded = [&](size_t place) { return field(place, ir_.pointer()); };
  const Value op = ir_.offset(loaded(offsetof(CodeContext, ops)), offset);
  Type parameters[] = {ir_.pointer(), ir_.pointer(), ir_.scalar(32), ir_.pointer()};
  const unsigned count = has_guess ? 4 : 3;
  Value arguments[] = {loaded(offsetof(CodeContext, warp)), op, ir_.llvm.GetParam(function, 2), nullptr};
  if (has_guess) arguments[3] = ir_.offset(loaded(offsetof(CodeContext, guesses)), ir_.llvm.GetParam(function, 3));
  const Value callee = loaded(has_guess ? offsetof(CodeContext, call_access) : offsetof(CodeContext, call));
  const Value next = ir_.llvm.BuildCall2(ir_.builder, ir_.llvm.FunctionType(ir_.pointer(), parameters, count, 0),
                                         callee, arguments, count, "");
  ir_.store(next, ir_.offset(context_, offsetof(CodeContext, next)), 8, Memory::facts);
  ir_.llvm.BuildRet(ir_.builder, ir_.icmp(LLVMIntEQ, next, ir_.offset(op, sizeof(MicroOp))));
}

Value Emitter::handler_step(bool has_guess) {
  const Type number = ir_.scalar(64);
  return step_function(has_guess ? "access_step" : "call_step", ir_.scalar(1),
                       {ir_.pointer(), number, ir_.scalar(32), number},
                       [&](Value function) { write_call_step(function, has_guess); });
}

void Emitter::call_handler_by_step(uint32_t index, const Execution& execution, std::optional<size_t> guess) {
  const Value good = call_step(handler_step(guess.has_value()),
                               {context_, ir_.scalar_constant(64, uint64_t(index) * sizeof(MicroOp)), execution.mask,
                                ir_.scalar_constant(64, guess.value_or(0) * sizeof(AddressGuess))});
  const Label goes_on = ir_.label("called");
  ir_.branch_expected(good, goes_on, failed_label());
  ir_.place_at(goes_on);
}

bool Emitter::has_access_step(const Access& access) const {
  if (access.execution->guarded || access.memory.kind == MemoryHandler::fixed_load) return false;
  if (!access.address.is_uniform()) return full_ && places_of(access) != LanePlaces::any;
  return full_ || std::ranges::all_of(access.stored, [](const LaneValue& value) { return value.is_uniform(); });
}

// For the handler, which a step calls if the access is not as expected.
void Emitter::sources_to_frame(const OpUses& uses) {
  std::set<uint32_t> needed;
  for (const LaneUse& source : uses.sources)
    if (source.lanes && source.lanes.base() == LaneBase::registers) needed.insert(source.lanes.offset());
  for (uint32_t offset : changed_)
    if (!code_.is_register(offset)) needed.insert(offset);
  for (uint32_t offset : needed) {
    const Slot& slot = plan_.slots.at(offset);
    if (!changed_.contains(offset) || slot.in_frame || !slot.written) continue;
    store_frame(offset, read_register(offset, slot.bits), active_lanes_);
    if (!storage_.contains(offset)) changed_.erase(offset);
  }
}

// Parameters: the context, byte offsets of the range, the micro-operation, the guess and the first destination's lanes;
// the mask, the address' number and vector, the values to store. Results: the loaded values, and: did it end as usual?
void Emitter::access_by_step(Access& access, const OpUses& uses, bool is_store) {
  const unsigned bits = access.bits(), count = access.op->count;
  const bool is_uniform = access.address.is_uniform();
  std::string name = fmt::format("{}_{}x{}_{}_{}_{}", is_store ? "store" : "load", count, bits, access.address.bits,
                                 is_uniform ? -1 : static_cast<int>(places_of(access)), access.op->flags & 0xff);
  sources_to_frame(uses);
  ir_.use_scalars();
  const auto number = [&](uint64_t value) { return ir_.scalar_constant(64, value); };
  std::vector<Value> arguments = {context_,
                                  number(access.range.place ? access.op->auxiliary * sizeof(AccessSite) : 0),
                                  number(uint64_t(access.index) * sizeof(MicroOp)),
                                  number(access.guess.value_or(0) * sizeof(AddressGuess)),
                                  access.execution->mask,
                                  access.address.number};
  if (!is_uniform) arguments.push_back(access.address.vector);
  for (const LaneValue& value : access.stored) {
    arguments.push_back(is_uniform && value.is_uniform() ? value.number : vector_of(value));
    name += is_uniform && value.is_uniform() ? 'n' : 'v';
  }
  if (!is_store)
    for (const LaneUse& use : uses.destinations)
      arguments.push_back(number(use.lanes.offset()));
  std::vector<Type> parameters, results;
  for (Value argument : arguments)
    parameters.push_back(ir_.llvm.TypeOf(argument));
  for (unsigned i = 0; !is_store && i < count; ++i)
    results.push_back(access.loads_numbers ? ir_.scalar(bits) : ir_.vector(bits));
  results.push_back(ir_.scalar(1));
  const Value step = step_function(name, ir_.structure(results), parameters,
                                   [&](Value function) { write_access_step(function, access, is_store); });
  const Value result = call_step(step, arguments);
  const auto part = [&](unsigned i) { return ir_.llvm.BuildExtractValue(ir_.builder, result, i, ""); };
  for (unsigned i = 0; !is_store && i < count; ++i) {
    const uint32_t offset = uses.destinations[i].lanes.offset();
    LaneValue value;
    value.bits = bits;
    (access.loads_numbers ? value.number : value.vector) = part(i);
    held_[offset] = value;
    changed_.insert(offset);
  }
  const Label goes_on = ir_.label("accessed");
  ir_.branch_expected(part(static_cast<unsigned>(results.size()) - 1), goes_on, failed_label());
  ir_.place_at(goes_on);
}

void Emitter::write_access_step(Value function, const Access& of_caller, bool is_store) {
  const auto parameter = [&](unsigned i) { return ir_.llvm.GetParam(function, i); };
  Execution execution;
  execution.mask = parameter(4);
  Access access{0, of_caller.op, of_caller.memory, &execution};
  access.loads_numbers = of_caller.loads_numbers;
  access.size = of_caller.size;
  access.guess = of_caller.guess;
  (void)find_range(*access.op, access.memory, access.range);
  if (access.range.place)
    access.range.place = ir_.offset(field(offsetof(CodeContext, ranges), ir_.pointer()), parameter(1));
  access.address = of_caller.address;
  unsigned next = 5;
  access.address.number = parameter(next++);
  if (access.address.vector) access.address.vector = parameter(next++);
  for (LaneValue value : of_caller.stored) {
    const bool as_number = access.address.is_uniform() && value.is_uniform();
    value.number = as_number ? parameter(next) : nullptr;
    value.vector = as_number ? nullptr : parameter(next);
    value.open_nan = false;
    ++next;
    access.stored.push_back(value);
  }
  access.slow = ir_.label("slow");
  access.done = ir_.label("done");
  if (access.address.is_uniform())
    is_store ? emit_number_store(access) : emit_number_load(access);
  else
    emit_full_warp(access, is_store);
  ir_.place_at(access.slow);
  ir_.use_scalars();
  const Value good =
      call_step(handler_step(access.guess.has_value()), {context_, parameter(2), execution.mask, parameter(3)});
  const Value registers = field(offsetof(CodeContext, registers), ir_.pointer());
  std::vector<Value> loaded;
  const unsigned count = is_store ? 0 : access.op->count;
  for (unsigned i = 0; i < count; ++i) {
    const Value lanes = ir_.offset(registers, parameter(next + i));
    if (!access.loads_numbers) {
      loaded.push_back(ir_.load(ir_.vector(access.bits()), lanes, LaneRef::alignment, Memory::frame));
      continue;
    }
    const Value lane = ir_.mul(ir_.zext(first_lane(execution), 64), ir_.scalar_constant(64, access.memory.bytes));
    loaded.push_back(ir_.load(ir_.scalar(access.bits()), ir_.offset(lanes, lane), access.memory.bytes, Memory::frame));
  }
  arrive(access, loaded);
  ir_.place_at(access.done);
  std::vector<Value> values;
  for (unsigned i = 0; i <= count; ++i) {
    const auto value_of = [&](size_t way) {
      if (i < count) return access.loaded[way][i];
      return way + 1 == access.from.size() ? good : ir_.scalar_constant(1, 1);
    };
    const Value phi = ir_.llvm.BuildPhi(ir_.builder, ir_.llvm.TypeOf(value_of(0)), "");
    for (size_t way = 0; way < access.from.size(); ++way) {
      Value incoming = value_of(way);
      ir_.llvm.AddIncoming(phi, &incoming, &access.from[way], 1);
    }
    values.push_back(phi);
  }
  std::vector<Type> types;
  for (Value value : values)
    types.push_back(ir_.llvm.TypeOf(value));
  Value result = ir_.llvm.GetPoison(ir_.structure(types));
  for (unsigned i = 0; i < values.size(); ++i)
    result = ir_.llvm.BuildInsertValue(ir_.builder, result, values[i], i, "");
  ir_.llvm.BuildRet(ir_.builder, result);
}

// (context, mask of the lanes that take the branch, byte offset of the guard's counter, is it counted): 0: they part;
// 1: all take it; 2: none.
void Emitter::write_branch_step(Value function) {
  const Value mask = ir_.llvm.GetParam(function, 1);
  const Value active =
      full_ ? ir_.scalar_constant(32, full_mask) : field(offsetof(CodeContext, active), ir_.scalar(32), 4);
  const Value counter = ir_.offset(field(offsetof(CodeContext, guards), ir_.pointer()), ir_.llvm.GetParam(function, 2));
  const Value counts = ir_.llvm.GetParam(function, 3);
  const Value all = ir_.icmp(LLVMIntEQ, mask, active), none = ir_.icmp(LLVMIntEQ, mask, ir_.scalar_constant(32, 0));
  const Value lanes = ir_.zext(ir_.intrinsic("llvm.ctpop", {ir_.scalar(32)}, {active}), 64);
  const Value nothing = ir_.scalar_constant(64, 0);
  count(ir_.offset(counter, offsetof(GuardCounter, lanes)), ir_.bit_and(ir_.select(all, lanes, nothing), counts));
  count(ir_.offset(counter, offsetof(GuardCounter, off)),
        ir_.bit_and(ir_.select(none, ir_.scalar_constant(64, 1), nothing), counts));
  ir_.llvm.BuildRet(ir_.builder, ir_.select(all, ir_.scalar_constant(32, 1),
                                            ir_.select(none, ir_.scalar_constant(32, 2), ir_.scalar_constant(32, 0))));
}

void Emitter::branch_by_step(uint32_t index, const Execution& execution, uint32_t target) {
  const MicroOp& op = code_.op(index);
  const Value step =
      step_function("branch_step", ir_.scalar(32), {ir_.pointer(), ir_.scalar(32), ir_.scalar(64), ir_.scalar(64)},
                    [&](Value function) { write_branch_step(function); });
  keep_between();
  ir_.use_scalars();
  const Value way =
      call_step(step, {context_, execution.mask, ir_.scalar_constant(64, op.instruction * sizeof(GuardCounter)),
                       ir_.scalar_constant(64, op.counts_guard ? ~uint64_t(0) : 0)});
  const auto label_of = [&](uint32_t first) {
    return plan_.pieces.contains(first) ? piece_label(first) : ir_.label("leaves");
  };
  const Label taken = label_of(target), passed = label_of(index + 1), parts = ir_.label("parts");
  const Value choice = ir_.llvm.BuildSwitch(ir_.builder, way, parts, 2);
  ir_.llvm.AddCase(choice, ir_.scalar_constant(32, 1), taken);
  ir_.llvm.AddCase(choice, ir_.scalar_constant(32, 2), passed);
  for (const auto& [label, at] : {std::pair{parts, index}, std::pair{taken, target}, std::pair{passed, index + 1}}) {
    if (label != parts && plan_.pieces.contains(at)) continue;
    ir_.place_at(label);
    leave_at(at);
  }
}

// Null: it takes few instructions, or has two results.
Value Emitter::row_step(const Recipe& recipe, const Operands& operands) {
  const std::string name = fmt::format("row_{}_{}", reinterpret_cast<uintptr_t>(&recipe), operands.flags);
  if (const auto known = steps_.find(name); known != steps_.end()) return known->second;
  if (recipe.widths.destination_count != 1) return nullptr;
  std::vector<Type> parameters;
  for (unsigned i = 0; i < recipe.widths.source_count; ++i)
    parameters.push_back(ir_.vector(recipe.widths.source_bits[i]));
  const std::string place = fmt::format("row_step_{}", steps_.size());
  bool is_long = false;
  const Value step =
      step_function(place, ir_.vector(recipe.widths.destination_bits[0]), parameters, [&](Value function) {
        Operands inner;
        inner.flags = operands.flags;
        Value* each[] = {&inner.a, &inner.b, &inner.c, &inner.d};
        for (unsigned i = 0; i < parameters.size(); ++i)
          *each[i] = ir_.llvm.GetParam(function, i);
        ir_.use_vectors();
        const Results results = recipe.build(ir_, inner);
        if (!results.first) return;
        ir_.llvm.BuildRet(ir_.builder, results.first);
        unsigned count = 0;
        for (Value at = ir_.llvm.GetFirstInstruction(ir_.here()); at; at = ir_.llvm.GetNextInstruction(at))
          ++count;
        is_long = count > longest_row_inline;
      });
  steps_[name] = is_long ? step : nullptr;
  if (is_long) return step;
  ir_.llvm.DeleteFunction(step);
  steps_.at(place) = nullptr;
  return nullptr;
}

Results Emitter::build_row(const MicroOp& op, const Recipe& recipe, const Operands& operands) {
  const Value step = op.source[0] ? row_step(recipe, operands) : nullptr;
  ir_.use_vectors();
  if (!step) return recipe.build(ir_, operands);
  const Value all[] = {operands.a, operands.b, operands.c, operands.d};
  return call_step(step, {all, all + recipe.widths.source_count});
}

Label Emitter::failed_label() {
  if (failed_) return failed_;
  const Label here = ir_.here();
  failed_ = ir_.label("failed");
  ir_.place_at(failed_);
  ir_.store(ir_.load(ir_.scalar(64), fuel_, 8), ir_.offset(context_, offsetof(CodeContext, fuel)), 8, Memory::facts);
  ir_.llvm.BuildRet(ir_.builder, field(offsetof(CodeContext, next), ir_.pointer()));
  ir_.place_at(here);
  return failed_;
}

} // namespace ptxrewrite::emulator::generated
