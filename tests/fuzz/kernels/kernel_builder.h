// The state of a kernel under construction, shared by the sources that generate its parts (the interface is
// kernel_generator.h).
#pragma once

#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_operations.h"
#include "tests/fuzz/kernels/operations/operation_rows.h"
#include "tests/fuzz/random.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

inline Level highest(Level a, Level b) {
  return std::max(a, b);
}

class Builder {
public:
  Builder(uint64_t seed, const Knobs& knobs);
  Kernel build();
  Kernel build_sweep(uint32_t first, uint32_t last);

private:
  using Statements = std::vector<Statement>;

  // kernel_generator.cpp: the parts of a kernel.
  void choose_shapes();
  void declare_buffers();
  void declare_objects();
  uint32_t add_object(const std::string& name, Space space, uint32_t size, uint32_t alignment);
  uint32_t add_argument(const std::string& name, const std::string& type, ArgumentKind kind, uint32_t size);
  uint32_t add_buffer_argument(const std::string& name, uint32_t buffer, uint64_t offset);
  void add_scalar_arguments();
  void emit_prologue();
  void emit_scalar_loads();
  void emit_live_lanes();
  void emit_first_values();
  void emit_epilogue();
  void sweep_operation(uint32_t operation);
  void generate_functions();
  void generate_function(uint32_t index);

  // kernel_statements.cpp: choosing statements, and operations on registers.
  void random_statements(unsigned count);
  void random_statement();
  void random_operation();
  void emit_operation(uint32_t operation);
  void random_special_register();
  void random_no_effect();
  void random_integer_chain(); // kernel_integer_chains.cpp
  void random_call();

  // kernel_values.cpp: variables and operands.
  template <size_t count> Kind pick_kind(const Kind (&kinds)[count]) {
    Kind kind = random_.pick(kinds);
    while (!knobs_.floats && is_float(kind))
      kind = random_.pick(kinds);
    return kind;
  }
  uint32_t new_variable(Kind kind, Level level, bool constant = false);
  uint32_t hidden_variable(Kind kind, Level level); // never picked by other statements
  uint32_t pick_variable(Kind kind, Level limit);
  bool find_variable(Kind kind, Level least, Level limit, uint32_t& found);
  uint32_t make_variable(Kind kind);
  uint32_t pick_predicate(Level limit);
  uint32_t pick_condition();   // of a level drawn by the knobs, if there is one
  uint32_t pick_for_control(); // 32 bits, likewise
  Level pick_level();
  Operand pick_operand(char letter, Level limit);
  Operand random_immediate(Kind kind, bool may_be_nan);
  uint32_t make_number(uint32_t variable); // a float that is not NaN
  bool pick_target(Kind kind, Level least, uint32_t& target);
  Guard pick_guard(Level limit);
  Level level_of(const Operand& operand) const;
  Level level_of(const std::vector<Operand>& operands) const;
  Level level_of(uint32_t variable) const { return kernel_.variables[variable].level; }
  // A new constant register with the value of operation(sources).
  uint32_t compute(std::string_view text, std::string_view results, std::string_view letters,
                   const std::vector<Operand>& sources);
  uint32_t special(SpecialRegister which);
  static Operand reg(uint32_t variable) { return Operand::of(variable); }
  static Operand number32(int64_t value) {
    return Operand::immediate(Kind::b32, static_cast<uint64_t>(value) & 0xffffffff);
  }
  static Operand number64(int64_t value) { return Operand::immediate(Kind::b64, static_cast<uint64_t>(value)); }
  static Operand number16(int64_t value) {
    return Operand::immediate(Kind::b16, static_cast<uint64_t>(value) & 0xffff);
  }

  // kernel_addresses.cpp: indices and pointers.
  uint32_t multiply_add(uint32_t a, const Operand& b, uint32_t c); // 32 bits
  uint32_t multiply_add(SpecialRegister a, SpecialRegister b, SpecialRegister c);
  uint32_t thread_in_block();
  uint32_t block_in_grid();
  uint32_t block_size();
  uint32_t global_index(bool row_major); // 0 .. threads - 1, one each
  uint32_t perturbed(uint32_t index);    // the same number, 32 bits and less than 65536, by a detour
  uint32_t scaled_pointer(uint32_t base, uint32_t index, unsigned element_bytes, bool is_signed);
  uint32_t masked_index(uint32_t elements);           // any 32-bit value, masked; `elements` is a power of two
  uint32_t linear_index(uint32_t limit);              // a sum of products of indices, below limit in all shapes
  uint32_t shared_pointer(int object, uint32_t slot); // to the 16 bytes of that slot; 32 bits
  uint32_t object_pointer(int object, bool generic);
  uint32_t extremum(SpecialRegister which) const; // largest value over all shapes

  // kernel_index_values.cpp: index arithmetic in all widths and signs. Bounds are those of the exact number in all
  // threads of all launches, read as signed.
  struct Bounds {
    Int128 low = 0, high = 0;
  };
  struct Index {
    Operand operand;
    unsigned bits = 32; // 16, 32, 64
    Bounds bounds;
  };
  static bool fits(const Bounds& bounds, unsigned bits);
  static Bounds sum(const Bounds& a, const Bounds& b);
  static Bounds product(const Bounds& a, const Bounds& b);
  static Bounds hull(const Bounds& a, const Bounds& b);
  const char* any_sign();
  uint64_t wild_number(unsigned bits);
  Index any_index(unsigned depth); // a register
  Index index(unsigned bits, unsigned depth);
  Index index_leaf(unsigned bits);
  Index index_literal(unsigned bits);
  Index index_special();
  bool earlier_index(unsigned bits, Index& found);
  Index converted(const Index& from, unsigned bits);
  uint32_t as_variable(const Index& index);
  Index finished(uint32_t variable, unsigned bits, Bounds bounds);
  std::optional<Index> arithmetic(const std::string& text, unsigned bits, const std::vector<Index>& sources,
                                  const Bounds& bounds);
  std::optional<Index> random_index(unsigned bits, unsigned depth);
  std::optional<Index> random_sum(unsigned bits, unsigned depth);
  std::optional<Index> random_negation(unsigned bits, unsigned depth);
  std::optional<Index> random_product(unsigned bits, unsigned depth);
  std::optional<Index> random_wide_product(unsigned bits, unsigned depth);
  std::optional<Index> random_left_shift(unsigned bits, unsigned depth);
  std::optional<Index> random_other_index(unsigned bits, unsigned depth);
  uint32_t pick_dividend(Level limit);
  void add_index_arguments();
  void set_index_argument(uint32_t argument, bool is_signed, const std::vector<uint64_t>& values);
  void emit_sure_wrap();
  void emit_index_arguments();

  // kernel_index_uses.cpp: uses of indices.
  struct Region { // readable at every address
    std::string space;
    uint32_t base = 0; // pointer
    uint32_t bytes = 0;
  };
  Region any_region();
  uint32_t index_pointer(uint32_t base, const Index& index, unsigned element_bytes, bool is_signed);
  uint32_t in_range(const Index& index, uint32_t limit); // a predicate
  void emit_index_loads(const Region& region, const Index& index, Kind kind, uint32_t beyond);
  void emit_guarded_index_loads(const Region& region, const Index& index, Kind kind, uint32_t limit);
  Index confined(const Index& index, uint32_t limit); // by a mask, a minimum or a remainder
  void use_index(const Index& index);
  void random_index_data();
  void random_index_access();
  std::vector<Index> emit_inductions(Statement& loop, unsigned most);
  void random_index_loop();
  void random_index_choice();
  void random_many_forms();
  uint32_t own_shared_slot();
  void random_own_shared();
  void random_index_store();

  // kernel_memory.cpp: loads, stores, atomics.
  Statement& emit_load(const std::string& space, const MemoryAccess& access, Kind kind, unsigned count, Level level,
                       bool may_qualify, bool read_only);
  void emit_store(const std::string& space, const MemoryAccess& access, unsigned bytes_left);
  void emit_store_of(const std::string& space, MemoryAccess access, const std::vector<uint32_t>& variables);
  uint32_t storable(Kind kind); // a variable whose bits may be observed
  uint32_t as_storable(uint32_t variable);
  unsigned slot_offset(unsigned bytes);
  std::string memory_qualifier(const std::string& space, bool is_store, bool read_only);
  void random_masked_load();
  void random_linear_load();
  void random_stencil();
  void random_slot_store();
  void random_linear_store();
  void random_slot_update();
  void random_table_load();
  void random_parameter_load();
  void random_local_access();
  void random_global_atomic();
  void random_slot_atomic();
  void store_to_slot(const std::vector<uint32_t>& variables);

  // kernel_cooperation.cpp: cooperation of threads.
  void emit_barrier();
  void random_barrier_reduction();
  void random_exchange();
  void random_shared_atomic();
  void random_race();
  void random_warp_function();
  uint32_t neighbour();

  // kernel_control.cpp
  void random_branch();
  void random_loop();
  void random_choose();
  void random_break();
  void random_leave();
  void random_scope();
  Statements in_body(Level level, const std::function<void()>& emit_body);
  Statements nested(unsigned count, Level level);
  uint32_t pick_limit(unsigned most, Level& level);
  uint32_t emit_counting(Statement& loop, uint32_t limit32, Level level);
  Statements walking_load(uint32_t walker);
  uint32_t emit_walk(Statements& latch); // a pointer that advances through the input in a loop

  Statement& emit(Statement statement);
  void count(const std::string& feature) { ++kernel_.features[feature]; }
  double weight(const std::string& name) const;

  Kernel kernel_;
  Random random_;
  Knobs knobs_;
  Statements* out_ = nullptr;      // destination of new statements
  uint32_t function_ = 0;          // 0: the kernel
  Level context_ = Level::block;   // the group of threads that executes a statement together
  std::vector<uint32_t> visible_;  // variables that have a value here
  std::vector<uint32_t> special_;  // cached special registers, 0 if none
  std::vector<Statement*> scopes_; // open scope statements
  std::vector<Level> loops_;       // contexts of the open loops
  unsigned depth_ = 0;
  unsigned trips_ = 1; // product of the open loops' limits
  bool in_exchange_ = false;
  bool sync_allowed_ = true; // false after an early exit

  unsigned dimensions_ = 1;
  bool full_warps_ = true;
  bool row_major_ = false;
  uint32_t largest_block_ = 32;
  uint32_t largest_grid_ = 1;
  unsigned slot_size_ = 256, slot_used_ = 0;
  unsigned atomic_regions_ = 0;
  // Buffers and the pointers to them.
  uint32_t input_ = 0, output_ = 0, columns_ = 0, cells_ = 0;
  uint32_t own_pointer_ = 0; // generic address of the local object, with Knobs::own_addresses
  uint32_t input_pointer_ = 0, middle_pointer_ = 0, slot_pointer_ = 0, columns_pointer_ = 0, cells_pointer_ = 0;
  uint32_t global_index_ = 0, thread_in_block_ = 0, block_size_ = 0, total_threads_ = 0;
  uint32_t last_lane_ = 0, lane_mask_ = 0; // for partial warps
  int shared_object_ = -1, own_shared_object_ = -1, local_object_ = -1, constant_object_ = -1, table_object_ = -1;
  std::vector<uint32_t> scalar_arguments_; // indices into Kernel::arguments
  uint32_t array_argument_ = 0;
  std::vector<Index> indices_; // some of them no longer visible
  std::vector<std::pair<uint32_t, Bounds>> index_arguments_;
  Index large_index_; // the last parameter for indices
  bool own_shared_is_reversed_ = false;
};

// Sizes for which addresses are generated.
inline constexpr uint32_t input_bytes = 1 << 16; // powers of two
inline constexpr uint32_t table_bytes = 256;
inline constexpr uint32_t local_bytes = 64;
inline constexpr uint32_t column_count = 8;     // 8-byte columns, one element per thread each
inline constexpr uint32_t reversed_columns = 2; // after them, with the last thread's element first
inline constexpr uint32_t atomic_cells = 16;    // per atomic statement
inline constexpr uint32_t atomic_region_limit = 16;
inline constexpr uint32_t shared_slot = 16;

} // namespace ptxrewrite::fuzz
