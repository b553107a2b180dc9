// Forwards every entry point of cuda.h that calls.cpp does not define to the real driver, regardless of its parameters,
// by a jump through a slot that is filled when the library is loaded. The symbols are weak, so that definitions in
// calls.cpp replace them.
#include "cuda/interpose/real_driver.h"

#if defined(__x86_64__)
#define PTXREWRITE_JUMP(NAME) "  jmp *ptxrewrite_slot_" #NAME "(%rip)\n"
#elif defined(__aarch64__)
#define PTXREWRITE_JUMP(NAME)                                                                                          \
  "  adrp x16, ptxrewrite_slot_" #NAME "\n"                                                                            \
  "  ldr x16, [x16, :lo12:ptxrewrite_slot_" #NAME "]\n"                                                                \
  "  br x16\n"
#else
#error "the interposed driver knows x86-64 and AArch64"
#endif

#define ENTRY_POINT(NAME)                                                                                              \
  extern "C" __attribute__((visibility("hidden"))) void* ptxrewrite_slot_##NAME;                                       \
  void* ptxrewrite_slot_##NAME = nullptr;                                                                              \
  asm(".text\n"                                                                                                        \
      ".weak " #NAME "\n"                                                                                              \
      ".type " #NAME ", %function\n" #NAME ":\n" PTXREWRITE_JUMP(NAME) ".size " #NAME ", .-" #NAME "\n");
#include "cuda/driver_api/entry_points.def"
#undef ENTRY_POINT

namespace ptxrewrite::cuda::interpose {
namespace {

[[gnu::constructor]] void fill_slots() {
  const RealDriver& driver = RealDriver::get();
#define ENTRY_POINT(NAME) ptxrewrite_slot_##NAME = driver.symbol_or_refusal(#NAME);
#include "cuda/driver_api/entry_points.def"
#undef ENTRY_POINT
}

} // namespace
} // namespace ptxrewrite::cuda::interpose
