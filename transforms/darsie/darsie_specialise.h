// Specializes a kernel for one launch shape: makes the decisions that §4.2 of darsie makes at launch in the kernel's
// text.
#pragma once

#include "transforms/manager/pass.h"

#include <string>
#include <string_view>

namespace ptxrewrite::transforms {

// `shape`: `block=16x16[,grid=64x64][,param.2=1024]`. The kernel becomes a variant that requires exactly this launch.
// Leaves it unchanged, with a remark, if the text is malformed, does not fit the kernel, or is empty; and, without the
// option `force`, if the machine code would be worse: more instructions, more spills or fewer warps on an SM by ptxas,
// if it may be used, otherwise more instructions by the machine model.
Change specialise(ir::Function& function, std::string_view shape, PassContext& context);

// Why the text does not describe a launch of any kernel; empty if it does.
std::string what_is_wrong_with_launch(std::string_view shape);

} // namespace ptxrewrite::transforms
