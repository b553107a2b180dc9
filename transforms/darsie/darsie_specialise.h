// A kernel for one launch shape: what §4.2 of darsie decides when a kernel is launched, decided in its text.
#pragma once

#include "transforms/manager/pass.h"

#include <string>
#include <string_view>

namespace ptxrewrite::transforms {

// `shape`: `block=16x16[,grid=64x64][,param.2=1024]`. The kernel becomes a variant that demands just that; nothing
// happens, with a remark, when the text is wrong, does not fit the kernel, or is empty, and unless the option `force`
// is set when the machine code would be worse: more instructions, more spills or fewer warps on an SM by ptxas, where
// it may be asked, else more instructions by the machine model.
Change specialise(ir::Function& function, std::string_view shape, PassContext& context);

// What makes the text no launch, whatever the kernel; empty: nothing.
std::string what_is_wrong_with_launch(std::string_view shape);

} // namespace ptxrewrite::transforms
