// A random kernel as a tree of statements, with the data for launching it. Made by kernel_generator.h, written as PTX
// by kernel_print.h, executed by kernel_oracle.h, which is independent of our reader, IR and emulator.
//
// Sizes are bytes unless a name says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

// The kind of a register. Pointers have their own kinds because their values differ between machines: they address
// memory but never reach an output. f16 is in .b16 registers and f16x2 in .b32 ones.
enum class Kind : uint8_t { predicate, b16, b32, b64, f16, f16x2, f32, f64, pointer, shared_pointer };
inline constexpr size_t kind_count = 10;
unsigned width_of(Kind kind); // bits; 1 for a predicate

inline bool is_float(Kind kind) {
  return kind >= Kind::f16 && kind <= Kind::f64;
}

// The largest group of threads in which a value is uniform. Determines where barriers (block) and warp functions (block
// and warp) are permitted.
enum class Level : uint8_t { block, warp, thread };

struct Variable {
  Kind kind = Kind::b32;
  Level level = Level::thread;
  uint32_t function = 0; // 0: the kernel, n: functions[n - 1]
  bool scoped = false;   // declared in the braces of a scope statement
  bool constant = false; // never assigned again
};

struct Operand {
  bool is_variable = true;
  bool negated = false; // `!p`
  uint32_t variable = 0;
  Kind kind = Kind::b32; // of an immediate
  uint64_t bits = 0;

  static Operand of(uint32_t variable) { return {true, false, variable, Kind::b32, 0}; }
  static Operand immediate(Kind kind, uint64_t bits) { return {false, false, 0, kind, bits}; }
};

struct Guard {
  bool present = false;
  bool negated = false;
  uint32_t variable = 0;
};

enum class Space : uint8_t { global, shared, dynamic_shared, local, constant, parameter };

// A declared variable in memory, or a kernel parameter.
struct MemoryObject {
  std::string name;
  Space space = Space::global;
  uint32_t size = 0;
  uint32_t alignment = 16;
  std::vector<uint8_t> initial;
};

// One load or store; the registers are the statement's results or sources.
struct MemoryAccess {
  unsigned element_bits = 32;
  bool is_signed = false;
  bool is_store = false;
  int object = -1; // index into Kernel::objects, or
  Operand base;    // a pointer
  int64_t offset = 0;
};

enum class SpecialRegister : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge
};
const char* name_of(SpecialRegister which); // "%tid.x"

enum class WarpFunction : uint8_t {
  shfl_idx,
  shfl_up,
  shfl_down,
  shfl_bfly, // sources: value, lane, clamp and segment; results: value, maybe predicate
  vote_all,
  vote_any,
  vote_uni,
  ballot, // sources: predicate
  match_any,
  match_all, // sources: value
  redux_add,
  redux_min_s32,
  redux_max_s32,
  redux_min_u32,
  redux_max_u32,
  redux_and,
  redux_or,
  redux_xor,
  sync
};

enum class BarrierFunction : uint8_t { sync, count, all, any };

enum class AtomicFunction : uint8_t {
  add,
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned,
  and_,
  or_,
  xor_,
  increment,
  decrement,
  exchange,
  compare_and_swap
};

enum class StatementKind : uint8_t {
  operation,        // `operation` from results and sources
  special_register, // results[0] = special
  address_of,       // results[0] = address of memory.object
  load_or_store,    // memory
  atomic,           // atomic on memory; result optional
  warp,             // warp_function; the member mask is the last source
  barrier,          // barrier_function
  no_effect,        // fences, prefetches: `text` unchanged
  branch,           // if (guard) bodies[0] else bodies[1]
  loop,             // bodies: [0] body, [1] latch (after the body, target of continue), [2] condition
  choose,           // brx.idx over sources[0] among bodies
  break_loop,       // if (guard)
  continue_loop,    // if (guard)
  leave,            // if (guard) ret or exit
  call,             // results[0] = functions[callee](sources)
  scope,            // bodies[0] in braces, with `scoped` variables in declarations
};

struct Statement {
  StatementKind kind = StatementKind::operation;
  Guard guard;            // or the condition of branch, loop, break_loop, continue_loop, leave
  std::string text;       // mnemonic if there is no operation; whole text of no_effect
  uint32_t operation = 0; // index into operations()
  std::vector<uint32_t> results;
  std::vector<Operand> sources;
  MemoryAccess memory;
  SpecialRegister special = SpecialRegister::tid_x;
  WarpFunction warp_function = WarpFunction::sync;
  BarrierFunction barrier_function = BarrierFunction::sync;
  AtomicFunction atomic_function = AtomicFunction::add;
  uint32_t callee = 0;
  uint32_t outer_loops = 0;   // break_loop, continue_loop: 0 refers to the innermost loop, 1 to the one around it
  bool bottom_tested = false; // loop
  bool is_uniform = false;    // branch, loop, call: may be written with .uni
  std::vector<std::vector<Statement>> bodies;
  std::vector<uint32_t> declarations; // scope: its variables
};

struct Function {
  std::string name;
  bool register_parameters = false; // .reg parameters instead of .param
  std::vector<uint32_t> parameters; // variables
  uint32_t result = 0;              // variable, written before the end
  std::vector<Statement> body;
};

struct Shape {
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t launch = 0; // its index in Kernel::shapes: arguments may differ between launches
  uint32_t block_threads() const { return block[0] * block[1] * block[2]; }
  uint32_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  uint32_t threads() const { return block_threads() * blocks(); }
};

enum class Contents : uint8_t { zeros, random };
struct Buffer {
  std::string name;
  uint64_t fixed_size = 0;
  uint64_t size_per_thread = 0;
  Contents contents = Contents::random;
  uint64_t seed = 0;
};

// The kind of value that the host passes for a parameter.
enum class ArgumentKind : uint8_t { bytes, buffer, total_threads, row_threads };
struct Argument {
  ArgumentKind kind = ArgumentKind::bytes;
  uint32_t object = 0;                     // the parameter, an index into Kernel::objects
  std::string type = "b32";                // as declared
  bool is_array = false;                   // .align 8 .b8 name[size]
  std::vector<uint8_t> bytes;              // kind bytes: in launch 0 ...
  std::vector<std::vector<uint8_t>> later; // ... and in the others, if they differ
  uint32_t buffer = 0;                     // kind buffer: index into Kernel::buffers
  uint64_t offset = 0;                     // ... and the offset in bytes
  const std::vector<uint8_t>& bytes_in(const Shape& shape) const {
    return shape.launch == 0 || later.empty() ? bytes : later[shape.launch - 1];
  }
};

struct Kernel {
  uint64_t seed = 0;
  std::string name;
  std::vector<Variable> variables;
  std::vector<MemoryObject> objects;
  std::vector<Argument> arguments; // in the order of the parameters
  std::vector<Buffer> buffers;
  std::vector<Function> functions;
  std::vector<Statement> body;
  std::vector<Shape> shapes;
  bool may_wrap = true;                     // false: no sum or product of indices overflows its width in any launch
  bool exact = true;                        // no approximate instruction: the oracle can compute every bit
  bool races = false;                       // warps read data that others write concurrently, without using them
  std::map<std::string, uint64_t> features; // how often each was generated

  uint64_t buffer_size(size_t buffer, const Shape& shape) const {
    return buffers[buffer].fixed_size + buffers[buffer].size_per_thread * shape.threads();
  }
  // The contents of the buffer before the launch.
  std::vector<uint8_t> buffer_contents(size_t buffer, const Shape& shape) const;
  // The kernel's parameters in the layout of .param space, given the buffers' addresses.
  std::vector<uint8_t> parameter_block(const Shape& shape, const std::vector<uint64_t>& addresses) const;
  uint32_t dynamic_shared_size() const;
};

} // namespace ptxrewrite::fuzz
