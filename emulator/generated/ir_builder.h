// LLVM IR of lane values. A value has one of two shapes: one number for all lanes, or a vector of 32. The same calls
// build both, so that a row of the generator (rows.h) is written only once.
#pragma once

#include "emulator/core/micro_op.h"
#include "emulator/generated/llvm.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator::generated {

using Value = LLVMValueRef;
using Type = LLVMTypeRef;
using Label = LLVMBasicBlockRef;

// Kind of memory of an access. Different kinds do not overlap, so that LLVM can move loads of one over stores to
// another. facts: data about the block and its accesses, which only handlers modify.
enum class Memory : uint8_t { slot, facts, counters, frame, device };

class Ir {
public:
  Ir(const Llvm& llvm, LLVMContextRef context, LLVMModuleRef module);
  ~Ir();
  Ir(const Ir&) = delete;
  Ir& operator=(const Ir&) = delete;

  const Llvm& llvm;

  // --- shape: of constants and types that are named by their bits ---
  void use_scalars() { lanes_ = 1; }
  void use_vectors() { lanes_ = warp_size; }
  Type shaped(Type element, unsigned lanes) const { return lanes == 1 ? element : llvm.VectorType(element, lanes); }
  Type integers(unsigned bits) const { return shaped(scalar(bits), lanes_); }
  Type floats(unsigned bits) const { return shaped(bits == 32 ? float_ : double_, lanes_); }
  Type scalar(unsigned bits) const { return llvm.IntTypeInContext(context_, bits); }
  Type vector(unsigned bits) const { return llvm.VectorType(scalar(bits), warp_size); }
  Type pointer() const { return pointer_; }
  Type structure(std::vector<Type> parts) const {
    return llvm.StructTypeInContext(context_, parts.data(), static_cast<unsigned>(parts.size()), 0);
  }
  LLVMModuleRef module() const { return module_; }
  Value constant(unsigned bits, uint64_t value) const;
  Value scalar_constant(unsigned bits, uint64_t value) const { return llvm.ConstInt(scalar(bits), value, 0); }
  // lane * step for each lane.
  Value ramp(unsigned bits, uint64_t step, unsigned period = warp_size) const;
  Value address(const void* place) const;

  // --- operations on either shape ---
  Value add(Value a, Value b) { return llvm.BuildAdd(builder, a, b, ""); }
  Value sub(Value a, Value b) { return llvm.BuildSub(builder, a, b, ""); }
  Value mul(Value a, Value b) { return llvm.BuildMul(builder, a, b, ""); }
  Value bit_and(Value a, Value b) { return llvm.BuildAnd(builder, a, b, ""); }
  Value bit_or(Value a, Value b) { return llvm.BuildOr(builder, a, b, ""); }
  Value bit_xor(Value a, Value b) { return llvm.BuildXor(builder, a, b, ""); }
  // Of conditions. LLVM 19 does not end selecting instructions for some of these with AVX-512, where conditions come
  // from the bits of a number and are passed on between blocks, unless the operands are frozen.
  Value xor_conditions(Value a, Value b) {
    return bit_xor(llvm.BuildFreeze(builder, a, ""), llvm.BuildFreeze(builder, b, ""));
  }
  Value bit_not(Value a) { return llvm.BuildNot(builder, a, ""); }
  Value shl(Value a, Value b) { return llvm.BuildShl(builder, a, b, ""); }
  Value lshr(Value a, Value b) { return llvm.BuildLShr(builder, a, b, ""); }
  Value ashr(Value a, Value b) { return llvm.BuildAShr(builder, a, b, ""); }
  Value icmp(LLVMIntPredicate predicate, Value a, Value b) { return llvm.BuildICmp(builder, predicate, a, b, ""); }
  Value fcmp(LLVMRealPredicate predicate, Value a, Value b) { return llvm.BuildFCmp(builder, predicate, a, b, ""); }
  Value select(Value condition, Value a, Value b) { return llvm.BuildSelect(builder, condition, a, b, ""); }
  Value zext(Value a, unsigned bits) { return llvm.BuildZExt(builder, a, integers(bits), ""); }
  Value sext(Value a, unsigned bits) { return llvm.BuildSExt(builder, a, integers(bits), ""); }
  Value trunc(Value a, unsigned bits) { return llvm.BuildTrunc(builder, a, integers(bits), ""); }
  Value fadd(Value a, Value b) { return llvm.BuildFAdd(builder, a, b, ""); }
  Value fsub(Value a, Value b) { return llvm.BuildFSub(builder, a, b, ""); }
  Value fmul(Value a, Value b) { return llvm.BuildFMul(builder, a, b, ""); }
  Value fdiv(Value a, Value b) { return llvm.BuildFDiv(builder, a, b, ""); }
  Value bitcast(Value a, Type type) { return llvm.BuildBitCast(builder, a, type, ""); }
  Value to_float(Value bits, unsigned width) { return bitcast(bits, floats(width)); }
  Value to_bits(Value number, unsigned width) { return bitcast(number, integers(width)); }
  // An intrinsic that is overloaded by the types of `overloads`.
  Value intrinsic(std::string_view name, std::initializer_list<Type> overloads, std::initializer_list<Value> arguments);

  // --- scalars and vectors ---
  Value splat(Value number);
  Value extract(Value vector, unsigned lane) {
    return llvm.BuildExtractElement(builder, vector, scalar_constant(32, lane), "");
  }
  Value shuffle(Value a, Value b, const std::vector<unsigned>& lanes);
  // Converts a vector of conditions to 32 bits, one per lane, and the reverse.
  Value mask_of(Value conditions) { return bitcast(conditions, scalar(32)); }
  Value conditions_of(Value mask) { return bitcast(mask, vector(1)); }
  Value holds_for_all(Value conditions) { return icmp(LLVMIntEQ, mask_of(conditions), scalar_constant(32, full_mask)); }

  // --- memory and control ---
  Value load(Type type, Value place, unsigned alignment, Memory memory = Memory::slot);
  void store(Value value, Value place, unsigned alignment, Memory memory = Memory::slot);
  Value touches(Value access, Memory memory);
  // Of device memory, into all caches; any address will do.
  void prefetch(Value place);
  // `bytes` behind a pointer; an address that is a number becomes a pointer.
  Value offset(Value place, Value bytes);
  Value offset(Value place, uint64_t bytes) { return offset(place, scalar_constant(64, bytes)); }
  Value pointer_at(Value number) { return llvm.BuildIntToPtr(builder, number, pointer_, ""); }
  Label label(const char* name) { return llvm.AppendBasicBlockInContext(context_, function, name); }
  void place_at(Label place) { llvm.PositionBuilderAtEnd(builder, place); }
  Label here() const { return llvm.GetInsertBlock(builder); }
  void jump(Label target) { llvm.BuildBr(builder, target); }
  // `likely`: false means that the branch to `if_false` is the usual one.
  void branch(Value condition, Label if_true, Label if_false);
  // Branches to `expected`, hardly ever to `other`.
  void branch_expected(Value condition, Label expected, Label other);

  LLVMBuilderRef builder = nullptr;
  Value function = nullptr;

private:
  LLVMContextRef context_;
  LLVMModuleRef module_;
  Type float_, double_, pointer_;
  Value weights_ = nullptr;
  unsigned profile_kind_ = 0, alias_kind_ = 0;
  Value alias_tags_[5] = {}; // by Memory
  unsigned lanes_ = 1;
};

} // namespace ptxrewrite::emulator::generated
