#include "emulator/generated/ir_builder.h"

#include <algorithm>
#include <iterator>

namespace ptxrewrite::emulator::generated {

Ir::Ir(const Llvm& functions, LLVMContextRef context, LLVMModuleRef module)
    : llvm(functions), context_(context), module_(module), float_(llvm.FloatTypeInContext(context)),
      double_(llvm.DoubleTypeInContext(context)), pointer_(llvm.PointerTypeInContext(context, 0)) {
  builder = llvm.CreateBuilderInContext(context);
  // !{!"branch_weights", i32 2000, i32 1}
  LLVMMetadataRef parts[] = {llvm.MDStringInContext2(context, "branch_weights", 14),
                             llvm.ValueAsMetadata(scalar_constant(32, 2000)),
                             llvm.ValueAsMetadata(scalar_constant(32, 1))};
  weights_ = llvm.MetadataAsValue(context, llvm.MDNodeInContext2(context, parts, 3));
  profile_kind_ = llvm.GetMDKindIDInContext(context, "prof", 4);
  // Types below one root, and accesses of them.
  alias_kind_ = llvm.GetMDKindIDInContext(context, "tbaa", 4);
  const auto text = [&](std::string_view word) { return llvm.MDStringInContext2(context, word.data(), word.size()); };
  LLVMMetadataRef root = text("memory");
  root = llvm.MDNodeInContext2(context, &root, 1);
  const LLVMMetadataRef zero = llvm.ValueAsMetadata(scalar_constant(64, 0));
  constexpr std::string_view names[] = {"", "facts", "counters", "frame", "device"};
  for (size_t i = 1; i < std::size(names); ++i) {
    LLVMMetadataRef type[] = {text(names[i]), root, zero};
    const LLVMMetadataRef node = llvm.MDNodeInContext2(context, type, 3);
    LLVMMetadataRef tag[] = {node, node, zero};
    alias_tags_[i] = llvm.MetadataAsValue(context, llvm.MDNodeInContext2(context, tag, 3));
  }
}

Ir::~Ir() {
  llvm.DisposeBuilder(builder);
}

Value Ir::constant(unsigned bits, uint64_t value) const {
  const Value number = scalar_constant(bits, value);
  if (lanes_ == 1) return number;
  std::vector<Value> all(lanes_, number);
  return llvm.ConstVector(all.data(), lanes_);
}

Value Ir::ramp(unsigned bits, uint64_t step, unsigned period) const {
  std::vector<Value> all;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    all.push_back(scalar_constant(bits, lane % period * step));
  return llvm.ConstVector(all.data(), warp_size);
}

Value Ir::address(const void* place) const {
  return llvm.BuildIntToPtr(builder, scalar_constant(64, reinterpret_cast<uintptr_t>(place)), pointer_, "");
}

Value Ir::intrinsic(std::string_view name, std::initializer_list<Type> overloads,
                    std::initializer_list<Value> arguments) {
  const unsigned id = llvm.LookupIntrinsicID(name.data(), name.size());
  std::vector<Type> types(overloads);
  std::vector<Value> values(arguments);
  const Value declared = llvm.GetIntrinsicDeclaration(module_, id, types.data(), types.size());
  return llvm.BuildCall2(builder, llvm.GlobalGetValueType(declared), declared, values.data(),
                         static_cast<unsigned>(values.size()), "");
}

Value Ir::splat(Value number) {
  const Type type = llvm.VectorType(llvm.TypeOf(number), warp_size);
  const Value first = llvm.BuildInsertElement(builder, llvm.GetPoison(type), number, scalar_constant(32, 0), "");
  return llvm.BuildShuffleVector(builder, first, llvm.GetPoison(type),
                                 llvm.ConstNull(llvm.VectorType(scalar(32), warp_size)), "");
}

Value Ir::shuffle(Value a, Value b, const std::vector<unsigned>& lanes) {
  std::vector<Value> indices;
  for (unsigned lane : lanes)
    indices.push_back(scalar_constant(32, lane));
  return llvm.BuildShuffleVector(builder, a, b, llvm.ConstVector(indices.data(), static_cast<unsigned>(indices.size())),
                                 "");
}

Value Ir::touches(Value access, Memory memory) {
  if (const Value tag = alias_tags_[static_cast<size_t>(memory)]) llvm.SetMetadata(access, alias_kind_, tag);
  return access;
}

Value Ir::load(Type type, Value place, unsigned alignment, Memory memory) {
  const Value loaded = llvm.BuildLoad2(builder, type, place, "");
  llvm.SetAlignment(loaded, alignment);
  return touches(loaded, memory);
}

void Ir::store(Value value, Value place, unsigned alignment, Memory memory) {
  const Value stored = llvm.BuildStore(builder, value, place);
  llvm.SetAlignment(stored, alignment);
  touches(stored, memory);
}

void Ir::prefetch(Value place) {
  const Value reads = scalar_constant(32, 0), near = scalar_constant(32, 3), of_data = scalar_constant(32, 1);
  touches(intrinsic("llvm.prefetch", {pointer()}, {place, reads, near, of_data}), Memory::device);
}

Value Ir::offset(Value place, Value bytes) {
  return llvm.BuildGEP2(builder, scalar(8), place, &bytes, 1, "");
}

void Ir::branch(Value condition, Label if_true, Label if_false) {
  llvm.BuildCondBr(builder, condition, if_true, if_false);
}

void Ir::branch_expected(Value condition, Label expected, Label other) {
  llvm.SetMetadata(llvm.BuildCondBr(builder, condition, expected, other), profile_kind_, weights_);
}

} // namespace ptxrewrite::emulator::generated
