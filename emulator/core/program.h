// A decoded kernel: the micro-operations of all functions it can call, the locations of its registers and variables,
// and the data shared by all blocks of all its launches.
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

// Storage of a .param variable in a function's activation, lane by lane. The offset is from Activation::registers or,
// if the function takes the variable's address, from the activation's part of each thread's local memory.
struct ParameterSlot {
  uint32_t offset = 0;
  uint32_t stride = 0; // bytes per lane
  uint32_t size = 0;
  bool in_local = false;
};

// An argument or result of a call: the bytes of a slot, or a lane array; neither: the result is unused. A vector
// register is one CallValue per element.
struct CallValue {
  ParameterSlot slot;
  LaneRef lanes;    // valid: passes a register or constant
  uint8_t bits = 0; // its width; 1 = predicate
};

struct CallSite {
  ir::FunctionId callee_id;
  const DecodedFunction* callee = nullptr; // nullptr: called through `target`
  LaneRef target;                          // 64-bit lane array of code addresses
  std::vector<CallValue> arguments;        // in the caller's activation
  std::vector<CallValue> results;
};

// Cleared when an activation starts: registers that are read before any write on some path. (Undefined in PTX, zero
// here, so that runs are reproducible.)
struct ZeroedLanes {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// The location of an instruction's source or result during its execution: for observers.
struct OperandLanes {
  LaneRef lanes;
  uint8_t bits = 0; // 1: a predicate's mask
};
struct InstructionLanes {
  std::vector<OperandLanes> sources;
  std::vector<OperandLanes> results;
  bool complete = true; // it reads nothing of its thread but the sources: no .param variable of a function
};

struct DecodedFunction {
  const ir::Function* source = nullptr;
  // For a stream that a machine executes beside the warps (MachineModel::stream_of): the kernel, whose variables it
  // names by the kernel's handles; else nullptr.
  const ir::Function* stream_of = nullptr;
  ir::FunctionId id;
  uint64_t address = 0; // for calls through registers
  std::vector<MicroOp> code;
  std::vector<LaneRef> lists;                            // MicroOp::extra of operations with more operands than fit
  std::vector<std::shared_ptr<const void>> descriptions; // of operations with more data than fits a MicroOp
  std::vector<CallSite> calls;
  std::vector<std::vector<uint32_t>> branch_tables; // code indices, of brx.idx
  std::vector<CallValue> parameters;                // of a device function, at the callee's locations
  std::vector<CallValue> results;
  std::vector<ZeroedLanes> zeroed;
  std::map<uint32_t, ParameterSlot> slots;    // by VariableId
  std::map<uint32_t, uint64_t> local_offsets; // of .local variables, by VariableId
  uint32_t frame_bytes = 0;
  uint64_t local_bytes = 0;
  uint32_t first_instruction = 0;         // image-wide index of InstructionId 0
  std::vector<InstructionLanes> lanes_of; // by InstructionId
  std::vector<LaneRef> registers;         // by ValueId; invalid if a value has no lane array
  std::vector<uint32_t> block_starts;     // by BlockId: code index; UINT32_MAX: not in the layout
  std::vector<uint8_t> section_of; // by InstructionId: 1 + SectionKind inside a section of a hardware form, else 0
  std::vector<uint32_t> region_of; // by InstructionId: its counting region; UINT32_MAX: never executed
};

// Special registers that are constant while a block runs are lane arrays at these offsets.
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
  // For launches in clusters (KernelImage::clustered).
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
  // Whether there were more constants than a LaneRef can address: get() returned the first one's lanes for the rest.
  bool is_full() const { return is_full_; }

private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage_;
  bool is_full_ = false;
  std::map<std::tuple<unsigned, uint64_t, uint64_t>, LaneRef> known_;
};

// The kernel's directives about clusters (PTX ISA 11.7 and 11.8).
struct ClusterDirectives {
  std::optional<Dimensions> required; // .reqnctapercluster
  bool is_explicit = false;           // .explicitcluster: the launch has to specify a size
  uint32_t largest = 0;               // .maxclusterrank; 0: not given
  bool blocks_are_clusters = false;   // .blocksareclusters
};

struct KernelImage {
  const ir::Module* module = nullptr;
  ClusterDirectives cluster;
  bool clustered = false; // decoded for launches with a cluster size: addresses of shared memory are not constant
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
  uint32_t reduction_kinds = 0; // reductions in global memory with order-independent results: special/atomics.cpp
  bool has_calls = false;
  bool uses_local = false;
  bool uses_stack = false; // alloca
  bool uses_heap = false;  // malloc
  std::span<std::byte> constant_bank;
  const TextureTable* textures = nullptr; // of the program
  MachineData machines;                   // the machines' data about the kernel, in their own types

  // The offset of dynamic shared memory.
  uint64_t static_shared() const { return align_up(shared_static, 16); }
  const DecodedFunction& function_of(uint32_t instruction) const;
  // The offset of a shared variable of the module or of `function`; nullopt if it is no shared variable.
  std::optional<uint64_t> shared_offset(const ir::Function& function, ir::SymbolRef symbol) const;
};

// The function itself, or its definition if `function` is a declaration.
ir::FunctionId definition_of(const ir::Module& module, ir::FunctionId function);

// Code addresses, for function pointers, by FunctionId: generic addresses outside of memory. A declaration has the
// address of its definition. Kernels are numbered after all device functions, so that a kernel's variants in a module
// leave the addresses that kernels can store as they were.
inline constexpr uint64_t code_window = 0x7f04'0000'0000;
std::vector<uint64_t> code_addresses(const ir::Module& module);

// Declared bytes of a variable, and its alignment. 0 for `x[]`.
uint64_t variable_bytes(const ir::Variable& variable, std::span<const uint64_t> dimensions);
uint64_t variable_alignment(const ir::Variable& variable);

// Addresses of .global and .const variables.
struct VariablePlace {
  uint64_t address = 0; // global: generic address; const: offset in the bank
  uint64_t bytes = 0;
};
struct ModulePlaces {
  // Key: nullptr and a VariableId of the module, or a function and a VariableId of its body.
  std::map<std::pair<const ir::Function*, uint32_t>, VariablePlace> variables;
  std::vector<uint64_t> functions; // code_addresses of the module
};

// Decodes an entry and all functions it can call. Returns an error, with its position, for unsupported instructions.
Result<std::unique_ptr<KernelImage>> decode_kernel(const ir::Module& module, ir::FunctionId entry,
                                                   const ModulePlaces& places, DeviceMemory& memory,
                                                   std::span<std::byte> constant_bank, bool clustered = false);
ClusterDirectives cluster_directives(const ir::Module& module, const ir::Function& kernel);

} // namespace ptxrewrite::emulator
