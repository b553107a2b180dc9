// Passes from outside the tree: shared libraries whose static RegisterPass objects run when they are loaded.
#include "transforms/manager/pipeline.h"

#include <dlfcn.h>

namespace ptxrewrite::transforms {

Status load_pass_library(const std::string& path) {
  size_t before = all_passes().size();
  // dlopen would search the system's library folders for a bare name; a user names a file.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // Never closed: the registry keeps pointers into the library.
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const char* reason = dlerror();
    return Error{"cannot load pass library: " + std::string(reason ? reason : path), {}};
  }
  if (all_passes().size() == before)
    return Error{"'" + path + "' registers no pass, or only passes with names that exist already", {}};
  return {};
}

} // namespace ptxrewrite::transforms
