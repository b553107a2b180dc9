// All families of operations, in the order in which their rows are searched.
#include "emulator/core/machine.h"
#include "emulator/core/operation.h"

namespace ptxrewrite::emulator {

const OperationTable& OperationTable::get() {
  static const OperationTable table = [] {
    OperationTable made;
    for (const MachineModel* machine : machines())
      machine->add_operations(made);
    add_move_operations(made);
    add_tensor_copy_operations(made);
    add_tensor_memory_operations(made);
    add_mbarrier_operations(made);
    add_async_operations(made);
    add_memory_operations(made);
    add_atomic_operations(made);
    add_multimem_operations(made);
    add_control_operations(made);
    add_register_pool_operations(made);
    add_warp_operations(made);
    add_barrier_operations(made);
    add_stack_operations(made);
    add_texture_operations(made);
    add_surface_operations(made);
    add_matrix_operations(made);
    add_matrix_memory_operations(made);
    add_warp_group_operations(made);
    add_arithmetic_operations(made);
    add_carry_operations(made);
    add_bit_operations(made);
    add_logic_operations(made);
    add_comparison_operations(made);
    add_integer_conversions(made);
    add_float_arithmetic(made);
    add_half_arithmetic(made);
    add_float_min_max(made);
    add_float_comparisons(made);
    add_approximations(made);
    add_float_conversions(made);
    add_float_integer_conversions(made);
    add_video_operations(made);
    add_simd_video_operations(made);
    return made;
  }();
  return table;
}

} // namespace ptxrewrite::emulator
