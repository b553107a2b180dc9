// libnvJitLink for programs under `ptxrewrite exec`: its output is a cubin that carries PTX. PTX is linked as text;
// LTO-IR is compiled to PTX by NVIDIA's own library.
#include "cuda/fatbin/elf_image.h"
#include "cuda/fatbin/link_ptx.h"
#include "cuda/jit_link/real_library.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#define JIT_LINK_API extern "C" __attribute__((visibility("default")))

namespace ptxrewrite::jit_link {
namespace {

// nvJitLinkResult.
enum Result : int {
  success = 0,
  missing_architecture = 2,
  invalid_input = 3,
  internal = 6,
  null_input = 10,
  incorrect_type = 12,
  needs_lto = 18,
};

// nvJitLinkInputType.
enum class InputType : int { ptx = 2, lto_ir = 3 };

constexpr unsigned version_without_library[] = {12, 0};

struct Link {
  uint32_t architecture = 0; // 90 for sm_90
  bool is_lto = false;
  std::vector<std::string> options;
  std::vector<std::string> texts;
  void* real = nullptr; // a link of NVIDIA's library, for LTO-IR
  std::string ptx, image, errors, info;
};

int fail(Link& link, int code, const std::string& text) {
  link.errors += text + '\n';
  return code;
}

std::string text_of(int (*size)(void*, size_t*), int (*get)(void*, char*), void* handle) {
  size_t bytes = 0;
  if (size(handle, &bytes) != success || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(handle, text.data()) != success) return {};
  text.resize(std::min(bytes, text.find('\0')));
  return text;
}

int forward(Link& link, int (*call)(Link&, const RealLibrary&)) {
  const RealLibrary* real = real_library();
  if (!real) return fail(link, internal, "LTO-IR needs NVIDIA's libnvJitLink: set PTXREWRITE_NVJITLINK to its path");
  const int code = call(link, *real);
  if (code == success) return code;
  link.errors += text_of(real->error_size, real->error, link.real);
  return code;
}

int open_real(Link& link) {
  if (link.real) return success;
  if (!link.is_lto) return fail(link, needs_lto, "LTO-IR needs the option -lto");
  return forward(link, [](Link& l, const RealLibrary& real) {
    std::vector<const char*> options;
    for (const std::string& option : l.options)
      options.push_back(option.c_str());
    options.push_back("-ptx");
    return real.create(&l.real, static_cast<uint32_t>(options.size()), options.data());
  });
}

// "-arch=sm_90a"
uint32_t architecture_of(std::string_view option) {
  const size_t at = option.find('_');
  return at == std::string_view::npos ? 0 : static_cast<uint32_t>(std::atoi(option.data() + at + 1));
}

int add_text(Link& link, const char* data, size_t bytes) {
  link.texts.emplace_back(data, strnlen(data, bytes));
  return success;
}

int complete_real(Link& link) {
  return forward(link, [](Link& l, const RealLibrary& real) {
    const int code = real.complete(l.real);
    l.info += text_of(real.info_size, real.info, l.real);
    if (code == success) l.texts.push_back(text_of(real.ptx_size, real.ptx, l.real));
    return code;
  });
}

template <class T> int store(T* to, T value) {
  if (!to) return null_input;
  *to = value;
  return success;
}

int copy_out(void* to, const std::string& bytes, size_t count) {
  if (!to) return null_input;
  std::memcpy(to, bytes.c_str(), count);
  return success;
}

} // namespace

JIT_LINK_API int nvJitLinkCreate(Link** made, uint32_t count, const char** options) {
  if (!made || (count && !options)) return null_input;
  auto* link = new Link;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.starts_with("-arch=")) link->architecture = architecture_of(option);
    link->is_lto |= option == "-lto" || option == "-dlto";
    if (option != "-ptx") link->options.push_back(option);
  }
  if (link->architecture == 0) {
    delete link;
    return missing_architecture;
  }
  *made = link;
  return success;
}

JIT_LINK_API int nvJitLinkDestroy(Link** link) {
  if (!link || !*link) return null_input;
  if ((*link)->real) real_library()->destroy(&(*link)->real);
  delete *link;
  *link = nullptr;
  return success;
}

JIT_LINK_API int nvJitLinkAddData(Link* link, int type, const void* data, size_t bytes, const char* name) {
  if (!link || !data) return null_input;
  if (type == static_cast<int>(InputType::ptx)) return add_text(*link, static_cast<const char*>(data), bytes);
  if (const auto image = cuda::read_elf_image({static_cast<const std::byte*>(data), bytes});
      image && !image->ptx.empty()) {
    link->texts.insert(link->texts.end(), image->ptx.begin(), image->ptx.end());
    return success;
  }
  if (const int code = open_real(*link); code != success) return code;
  const RealLibrary& real = *real_library();
  const int code = real.add_data(link->real, type, data, bytes, name);
  if (code != success) link->errors += text_of(real.error_size, real.error, link->real);
  return code;
}

JIT_LINK_API int nvJitLinkAddFile(Link* link, int type, const char* path) {
  if (!link || !path) return null_input;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(*link, invalid_input, std::string("cannot read ") + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return nvJitLinkAddData(link, type, bytes.data(), bytes.size(), path);
}

JIT_LINK_API int nvJitLinkComplete(Link* link) {
  if (!link) return null_input;
  if (link->real)
    if (const int code = complete_real(*link); code != success) return code;
  if (link->texts.empty()) return fail(*link, invalid_input, "nothing to link");
  link->ptx = cuda::link_ptx(link->texts);
  link->image = cuda::write_elf_image(link->ptx, link->architecture);
  return success;
}

JIT_LINK_API int nvJitLinkGetLinkedCubinSize(Link* link, size_t* bytes) {
  return link ? store(bytes, link->image.size()) : null_input;
}

JIT_LINK_API int nvJitLinkGetLinkedCubin(Link* link, void* image) {
  return link ? copy_out(image, link->image, link->image.size()) : null_input;
}

JIT_LINK_API int nvJitLinkGetLinkedPtxSize(Link* link, size_t* bytes) {
  return link ? store(bytes, link->ptx.size() + 1) : null_input;
}

JIT_LINK_API int nvJitLinkGetLinkedPtx(Link* link, char* text) {
  return link ? copy_out(text, link->ptx, link->ptx.size() + 1) : null_input;
}

// Only PTX and cubins can be loaded, so LTO-IR is not available as a result.
JIT_LINK_API int nvJitLinkGetLinkedLTOIRSize(Link* link, size_t* bytes) {
  return link ? (store<size_t>(bytes, 0), incorrect_type) : null_input;
}

JIT_LINK_API int nvJitLinkGetLinkedLTOIR(Link* link, void*) {
  return link ? incorrect_type : null_input;
}

JIT_LINK_API int nvJitLinkGetErrorLogSize(Link* link, size_t* bytes) {
  return link ? store(bytes, link->errors.size() + 1) : null_input;
}

JIT_LINK_API int nvJitLinkGetErrorLog(Link* link, char* text) {
  return link ? copy_out(text, link->errors, link->errors.size() + 1) : null_input;
}

JIT_LINK_API int nvJitLinkGetInfoLogSize(Link* link, size_t* bytes) {
  return link ? store(bytes, link->info.size() + 1) : null_input;
}

JIT_LINK_API int nvJitLinkGetInfoLog(Link* link, char* text) {
  return link ? copy_out(text, link->info, link->info.size() + 1) : null_input;
}

// Programs pass LTO-IR to version 12.3 or later: without NVIDIA's library, an older version is returned, because LTO-IR
// cannot be compiled.
JIT_LINK_API int nvJitLinkVersion(unsigned* major, unsigned* minor) {
  if (!major || !minor) return null_input;
  if (const RealLibrary* real = real_library()) return real->version(major, minor);
  *major = version_without_library[0];
  *minor = version_without_library[1];
  return success;
}

// The names that programs compiled with nvJitLink.h call.
#define JIT_LINK_ALIAS(NAME) JIT_LINK_API int __##NAME##_13_0(...) __attribute__((alias(#NAME)));
JIT_LINK_ALIAS(nvJitLinkCreate)
JIT_LINK_ALIAS(nvJitLinkDestroy)
JIT_LINK_ALIAS(nvJitLinkAddData)
JIT_LINK_ALIAS(nvJitLinkAddFile)
JIT_LINK_ALIAS(nvJitLinkComplete)
JIT_LINK_ALIAS(nvJitLinkGetLinkedCubinSize)
JIT_LINK_ALIAS(nvJitLinkGetLinkedCubin)
JIT_LINK_ALIAS(nvJitLinkGetLinkedPtxSize)
JIT_LINK_ALIAS(nvJitLinkGetLinkedPtx)
JIT_LINK_ALIAS(nvJitLinkGetErrorLogSize)
JIT_LINK_ALIAS(nvJitLinkGetErrorLog)
JIT_LINK_ALIAS(nvJitLinkGetInfoLogSize)
JIT_LINK_ALIAS(nvJitLinkGetInfoLog)
#undef JIT_LINK_ALIAS

} // namespace ptxrewrite::jit_link
