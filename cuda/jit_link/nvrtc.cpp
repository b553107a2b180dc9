// nvrtcCompileProgram for programs under `ptxrewrite exec`. NVRTC's machine code contains its PTX only with line
// information, so the option for it is added. Loaded into every program (LD_PRELOAD); it precedes NVRTC's own function
// in programs that are linked with NVRTC.
#include <dlfcn.h>
#include <string_view>
#include <vector>

namespace {

constexpr int internal_error = 11; // NVRTC_ERROR_INTERNAL_ERROR
constexpr const char* line_information = "-lineinfo";

bool adds_ptx(std::string_view option) {
  return option == line_information || option == "--generate-line-info" || option == "-G" || option == "--device-debug";
}

} // namespace

extern "C" __attribute__((visibility("default"))) int nvrtcCompileProgram(void* program, int count,
                                                                          const char* const* options) {
  using Function = int (*)(void*, int, const char* const*);
  static const auto compile = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "nvrtcCompileProgram"));
  if (!compile) return internal_error;
  std::vector<const char*> all;
  bool has_ptx = false;
  for (int i = 0; options && i < count; ++i) {
    all.push_back(options[i]);
    has_ptx |= options[i] && adds_ptx(options[i]);
  }
  if (!has_ptx) all.push_back(line_information);
  return compile(program, static_cast<int>(all.size()), all.data());
}
