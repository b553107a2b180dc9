// Passes from outside the tree: shared libraries whose static RegisterPass objects run when they are loaded. A library
// of another interface than this program's (pass.h) asks the dynamic linker for names that the program does not have.
#include "transforms/manager/pipeline.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

namespace ptxrewrite::transforms {

namespace {

// The name that the dynamic linker did not find: `LIB.so: undefined symbol: NAME`, demangled; empty: it says something
// else.
std::string missing_name(std::string_view reason) {
  constexpr std::string_view words = "undefined symbol: ";
  const size_t at = reason.find(words);
  if (at == reason.npos) return {};
  std::string mangled(reason.substr(at + words.size()));
  mangled.resize(std::min(mangled.size(), mangled.find_first_of(", \n"))); // glibc may add a version
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                               std::free);
  return plain ? plain.get() : mangled;
}

// "0.2" of `...RegisterPassOf<0u, 2u, 123ul>::...`; empty if it is another name.
std::string version_in(std::string_view name) {
  constexpr std::string_view words = "RegisterPassOf<";
  size_t at = name.find(words);
  if (at == name.npos) return {};
  at += words.size();
  unsigned numbers[2] = {};
  for (unsigned& number : numbers) {
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), number);
    if (error != std::errc()) return {};
    at = name.find(' ', static_cast<size_t>(end - name.data()));
    if (at++ == name.npos) return {};
  }
  return fmt::format("{}.{}", numbers[0], numbers[1]);
}

Error load_error(const std::string& path, std::string_view reason) {
  const std::string name = missing_name(reason), own = fmt::format("{}.{}", interface_major, interface_minor);
  const char* const remedy = "compile it against this program's headers";
  const std::string built = version_in(name);
  if (!built.empty() && built != own)
    return Error{
        fmt::format("pass library '{}' was built for ptxrewrite {}, and this is {}: {}", path, built, own, remedy), {}};
  if (!built.empty())
    return Error{
        fmt::format("pass library '{}' was built with other headers of ptxrewrite {}, or with other settings of the "
                    "standard library: {}",
                    path, own, remedy),
        {}};
  if (name.find("ptxrewrite::") != name.npos)
    return Error{
        fmt::format("pass library '{}' was built for another ptxrewrite, which has {}: {}", path, name, remedy), {}};
  return Error{"cannot load pass library: " + std::string(reason), {}};
}

} // namespace

Status load_pass_library(const std::string& path) {
  size_t before = all_passes().size();
  // dlopen would search the system's library folders for a bare name; a user names a file.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // RTLD_NOW: all names are looked up before the library's static objects register passes. Never closed: the registry
  // keeps pointers into the library.
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const char* reason = dlerror();
    return load_error(path, reason ? reason : path);
  }
  if (all_passes().size() == before)
    return Error{"'" + path + "' registers no pass, or only passes with names that exist already", {}};
  return {};
}

} // namespace ptxrewrite::transforms
