// A kernel for one launch shape: what §4.2 of darsie decides when a kernel is launched, decided in its text.
#pragma once

#include "transforms/pass.h"

#include <string_view>

namespace ptxrewrite::transforms {

// `shape`: `block=16x16[,grid=64x64][,param.2=1024]`. The kernel becomes a variant that demands just that; nothing
// happens, with a remark, when the text is wrong, does not fit the kernel, or is empty.
Change specialise(ir::Function& function, std::string_view shape, PassContext& context);

} // namespace ptxrewrite::transforms
