// Element operations of cp.reduce.async.bulk and cp.reduce.async.bulk.tensor in memory (PTX ISA 9.7.9.25.4.2 and
// 9.7.9.27.1.3).
#pragma once

#include "ir/isa/isa.h"
#include "ir/isa/tensor_map.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptxrewrite::emulator {

enum class ReduceOperation : uint8_t { add, min, max, increment, decrement, and_, or_, xor_ };
std::optional<ReduceOperation> reduce_operation_of(const ir::Form& form);
const char* name_of(ReduceOperation operation);

// to[i] = to[i] op from[i], for `bytes` bytes of elements. `concurrent`: other host threads may do so at the same time.
// `to` is aligned to the elements' size.
using ReduceElements = void (*)(std::byte* to, const std::byte* from, uint32_t bytes, bool concurrent);

// Returns nullptr if the type has no such operation. f32 sums flush subnormal numbers, as red in global memory does,
// except with .noftz (`keeps_subnormals`).
ReduceElements reduce_elements(ReduceOperation operation, ir::TensorElement element, bool keeps_subnormals = false);
// The same for tensor copies, which have fewer (PTX ISA 9.7.9.27.1.3, "valid combinations of .redOp and element type").
ReduceElements reduce_tensor_elements(ReduceOperation operation, ir::TensorElement element);

} // namespace ptxrewrite::emulator
