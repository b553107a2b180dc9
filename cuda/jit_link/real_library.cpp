#include "cuda/jit_link/real_library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <string>
#include <vector>

namespace ptxrewrite::jit_link {
namespace {

constexpr const char* file_name = PTXREWRITE_NVJITLINK_NAME;

// Site-packages folders from which this process has loaded files.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    for (const char* name : {"/site-packages/", "/dist-packages/"}) {
      const size_t begin = line.find('/'), at = line.find(name);
      if (at == std::string::npos) continue;
      const std::string folder = line.substr(begin, at + std::string(name).size() - begin);
      if (folders.empty() || folders.back() != folder) folders.push_back(folder);
    }
  return folders;
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const char* chosen = std::getenv("PTXREWRITE_NVJITLINK")) return {chosen};
  for (const std::string& folder : package_folders())
    for (const char* place : {"nvidia/cu13/lib/", "nvidia/nvjitlink/lib/"})
      paths.push_back(folder + place + file_name);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable))
      for (const char* place : {"/lib64/", "/lib/"})
        paths.push_back(std::string(home) + place + file_name);
  paths.push_back(std::string("/usr/local/cuda/lib64/") + file_name);
  return paths;
}

template <class Function> bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const RealLibrary* load() {
  for (const std::string& path : candidates()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    static RealLibrary real;
    if (find(library, "nvJitLinkCreate", real.create) && find(library, "nvJitLinkDestroy", real.destroy) &&
        find(library, "nvJitLinkAddData", real.add_data) && find(library, "nvJitLinkAddFile", real.add_file) &&
        find(library, "nvJitLinkComplete", real.complete) &&
        find(library, "nvJitLinkGetLinkedPtxSize", real.ptx_size) && find(library, "nvJitLinkGetLinkedPtx", real.ptx) &&
        find(library, "nvJitLinkGetErrorLogSize", real.error_size) &&
        find(library, "nvJitLinkGetErrorLog", real.error) && find(library, "nvJitLinkGetInfoLogSize", real.info_size) &&
        find(library, "nvJitLinkGetInfoLog", real.info) && find(library, "nvJitLinkVersion", real.version))
      return &real;
  }
  return nullptr;
}

} // namespace

const RealLibrary* real_library() {
  static const RealLibrary* const library = load();
  return library;
}

} // namespace ptxrewrite::jit_link
