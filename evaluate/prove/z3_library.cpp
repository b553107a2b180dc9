// See z3_library.h. Empty without Z3.
#ifdef PTXREWRITE_HAS_Z3
#include "evaluate/prove/z3_library.h"

#include <dlfcn.h>

namespace ptxrewrite::prove {

namespace {

bool load() {
  void* library = nullptr;
  // First the library that the headers belong to. RTLD_LOCAL because a program may have another version.
  for (const char* name : {PTXREWRITE_Z3_LIBRARY, "libz3.so.4"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    complete &= function != nullptr;
  };
#define FUNCTION(name) find(z3::name, #name);
  PTXREWRITE_Z3_FUNCTIONS(FUNCTION)
#undef FUNCTION
  return complete;
}

} // namespace

bool load_z3() {
  static const bool loaded = load();
  return loaded;
}

} // namespace ptxrewrite::prove
#endif
