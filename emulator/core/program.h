// A kernel as it is executed: the micro-operations of all functions it can call, where its registers and variables lie,
// and what is shared between all blocks of all its launches.
#pragma once

#include "emulator/core/emulator.h"
#include "emulator/core/micro_op.h"
#include "emulator/core/warp.h"
#include "emulator/memory/texture.h"
#include "ir/isa/isa.h"
#include "support/sizes.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

// Byte storage of a .param variable of a function's activation, lane after lane. Offset from Activation::registers; of
// a variable whose address the function takes, from the activation's part of each thread's local memory.
struct ParameterSlot {
  uint32_t offset = 0;
  uint32_t stride = 0; // bytes per lane
  uint32_t size = 0;
  bool in_local = false;
};

// One argument or result of a call: bytes of a slot, or a lane array; neither: nobody takes the result. A vector
// register is as many of them as it has elements.
struct CallValue {
  ParameterSlot slot;
  LaneRef lanes;    // valid: a register or constant is passed
  uint8_t bits = 0; // its width; 1 = predicate
};

struct CallSite {
  ir::FunctionId callee_id;
  const DecodedFunction* callee = nullptr; // null: through `target`
  LaneRef target;                          // 64-bit lane array of code addresses
  std::vector<CallValue> arguments;        // in the caller's activation
  std::vector<CallValue> results;
};

// Fill with zero when an activation starts: registers that some path reads before any write. (Undefined in PTX, zero
// here, so that runs repeat.)
struct ZeroedLanes {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// Where a value that an instruction takes or gives lies while it executes: for observers.
struct OperandLanes {
  LaneRef lanes;
  uint8_t bits = 0; // 1: a predicate's mask
};
struct InstructionLanes {
  std::vector<OperandLanes> sources;
  std::vector<OperandLanes> results;
  bool complete = true; // it takes nothing from its thread but the sources: no .param variable of a function
};

struct DecodedFunction {
  const ir::Function* source = nullptr;
  // The kernel, whose variables it names by the kernel's handles: of a stream that a machine executes beside the warps
  // (MachineModel::stream_of); else null.
  const ir::Function* stream_of = nullptr;
  ir::FunctionId id;
  std::vector<MicroOp> code;
  std::vector<LaneRef> lists;                            // MicroOp::extra of operations with more operands than fit
  std::vector<std::shared_ptr<const void>> descriptions; // of operations that have more to know than fits
  std::vector<CallSite> calls;
  std::vector<std::vector<uint32_t>> branch_tables; // code indices, of brx.idx
  std::vector<CallValue> parameters;                // of a device function, where the callee finds them
  std::vector<CallValue> results;
  std::vector<ZeroedLanes> zeroed;
  std::map<uint32_t, ParameterSlot> slots;    // by VariableId
  std::map<uint32_t, uint64_t> local_offsets; // of .local variables, by VariableId
  uint32_t frame_bytes = 0;
  uint64_t local_bytes = 0;
  uint32_t first_instruction = 0;         // image-wide index of InstructionId 0
  std::vector<InstructionLanes> lanes_of; // by InstructionId
  std::vector<LaneRef> registers;         // by ValueId; not valid where a value has no lane array
  std::vector<uint32_t> block_starts;     // by BlockId: code index; UINT32_MAX: not in the layout
  std::vector<uint8_t> section_of; // by InstructionId: 1 + SectionKind inside a section of a hardware form, else 0
  std::vector<uint32_t> region_of; // by InstructionId: the counting region it is in, UINT32_MAX: never executed
};

// Special registers whose value does not change while a block runs are lane arrays at these offsets.
enum class ThreadSpecial : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  laneid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  warpid,
  zero,
  count
};
enum class BlockSpecial : uint8_t {
  ctaid_x,
  ctaid_y,
  ctaid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  nwarpid,
  smid,
  nsmid,
  dynamic_smem_size,
  total_smem_size,
  envreg1,
  envreg2,
  zero,
  one,
  // Of launches in clusters (KernelImage::clustered).
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  shared_begin, // of the block's own shared memory, in shared::cluster
  count
};
inline constexpr uint32_t lane_array_bytes = warp_size * 4;
constexpr LaneRef thread_special(ThreadSpecial which) {
  return {LaneBase::thread_special, static_cast<uint32_t>(which) * lane_array_bytes};
}
constexpr LaneRef block_special(BlockSpecial which) {
  return {LaneBase::block_special, static_cast<uint32_t>(which) * lane_array_bytes};
}
inline constexpr uint32_t emulated_sm_count = 132; // %nsmid; blocks take turns on %smid

// The immediates of a program, each as a full lane array.
class ConstantPool {
public:
  // A lane array of `bits` (1: predicate mask, 8 .. 128) holding `value` in every lane.
  LaneRef get(uint64_t value, unsigned bits, uint64_t high = 0);
  std::byte* data() { return reinterpret_cast<std::byte*>(storage_.data()); }
  // There were more than a LaneRef can name, and what was given for them is not theirs.
  bool is_full() const { return is_full_; }

private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage_;
  bool is_full_ = false;
  std::map<std::tuple<unsigned, uint64_t, uint64_t>, LaneRef> known_;
};

// What a kernel says about the clusters that it is launched in (PTX ISA 11.7 and 11.8).
struct ClusterDirectives {
  std::optional<Dimensions> required; // .reqnctapercluster
  bool is_explicit = false;           // .explicitcluster: the launch has to say a size
  uint32_t largest = 0;               // .maxclusterrank; 0: says nothing
  bool blocks_are_clusters = false;   // .blocksareclusters
};

struct KernelImage {
  const ir::Module* module = nullptr;
  ClusterDirectives cluster;
  bool clustered = false; // decoded for launches that have a cluster size: symbols of shared memory are not constant
  DeviceMemory* memory = nullptr;
  std::vector<std::unique_ptr<DecodedFunction>> functions; // [0] is the entry
  std::unordered_map<uint32_t, DecodedFunction*> by_id;    // by FunctionId
  ConstantPool constants;
  std::map<std::pair<const ir::Function*, uint32_t>, uint64_t> shared_offsets; // (null: of the module, VariableId)
  uint64_t shared_static = 0;                                                  // bytes of variables
  uint64_t parameter_bytes = 0;
  std::map<uint32_t, uint64_t> parameter_offsets; // of the entry, by VariableId
  uint32_t region_count = 0;
  uint32_t instruction_count = 0;
  uint32_t memory_operations = 0;
  bool order_sensitive = false; // see emulator.h
  uint32_t reduction_kinds = 0; // of global memory, in which results do not depend on order: special/atomics.cpp
  bool has_calls = false;
  bool uses_local = false;
  bool uses_stack = false; // alloca
  bool uses_heap = false;  // malloc
  std::span<std::byte> constant_bank;
  const TextureTable* textures = nullptr; // of the program
  MachineData machines;                   // what machines know of the kernel, by types of their own

  // Where dynamic shared memory starts.
  uint64_t static_shared() const { return align_up(shared_static, 16); }
  const DecodedFunction& function_of(uint32_t instruction) const;
  // Where a shared variable of the module or of `function` lies; nothing if it is no shared variable.
  std::optional<uint64_t> shared_offset(const ir::Function& function, ir::SymbolRef symbol) const;
};

// The function itself when `function` is a declaration of one that has its body elsewhere in the module.
ir::FunctionId definition_of(const ir::Module& module, ir::FunctionId function);

// Code addresses, for function pointers: generic addresses that are no memory. Of definitions only.
inline constexpr uint64_t code_window = 0x7f04'0000'0000;
constexpr uint64_t code_address(ir::FunctionId function) {
  return code_window + (uint64_t(function.index()) + 1) * 16;
}

// Bytes of one variable as declared, and its alignment. 0 for `x[]`.
uint64_t variable_bytes(const ir::Variable& variable, std::span<const uint64_t> dimensions);
uint64_t variable_alignment(const ir::Variable& variable);

// Addresses of .global and .const variables.
struct VariablePlace {
  uint64_t address = 0; // global: generic address; const: offset in the bank
  uint64_t bytes = 0;
};
struct ModulePlaces {
  // Null and the VariableId of a variable of the module, or a function and that of one declared in its body.
  std::map<std::pair<const ir::Function*, uint32_t>, VariablePlace> variables;
};

// Decodes an entry and all it can call. Error: what is not emulated, with its place in the source.
Result<std::unique_ptr<KernelImage>> decode_kernel(const ir::Module& module, ir::FunctionId entry,
                                                   const ModulePlaces& places, DeviceMemory& memory,
                                                   std::span<std::byte> constant_bank, bool clustered = false);
ClusterDirectives cluster_directives(const ir::Module& module, const ir::Function& kernel);

} // namespace ptxrewrite::emulator
