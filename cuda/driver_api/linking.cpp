// cuLink*: links the PTX inputs into one module and returns it as a cubin with the PTX embedded.
#include "cuda/context/image.h"
#include "cuda/driver_api/entry.h"
#include "cuda/driver_api/jit_logs.h"
#include "cuda/fatbin/elf_image.h"
#include "cuda/fatbin/link_ptx.h"

#include <memory>

namespace ptxrewrite::cuda::driver {
namespace {

// CUjitInputType.
enum class InputType : int { cubin = 0, ptx = 1, fat_binary = 2, object = 3, library = 4 };

struct Link {
  JitLogs logs;
  std::string said; // messages of all calls
  std::vector<std::string> texts;
  std::string image;
};

Code refuse(Link& link, Code code, const std::string& text) {
  link.said += text + '\n';
  link.logs.write(code, link.said);
  log(LogLevel::error, "{}", text);
  return code;
}

Code add(Context& context, Link& link, int type, std::span<const std::byte> bytes, const char* name) {
  switch (static_cast<InputType>(type)) {
  case InputType::cubin:
  case InputType::ptx:
  case InputType::fat_binary: {
    ImageText text = ptx_of_image(bytes, context.settings().machine->compute_capability);
    if (text.code != Code::success)
      return refuse(link, text.code, fmt::format("{}: {}", name ? name : "input of the linker", text.problem));
    link.texts.push_back(std::move(text.ptx));
    return Code::success;
  }
  case InputType::object:
  case InputType::library:
    break;
  }
  return refuse(link, Code::not_supported,
                fmt::format("{}: objects, libraries and LTO-IR hold no PTX to be emulated: link PTX",
                            name ? name : "input of the linker"));
}

} // namespace

DRIVER_API int cuLinkCreate_v2(unsigned count, const int* options, void** values, Link** made) {
  return entry("cuLinkCreate", [&](Context&) {
    if (!made) return Code::invalid_value;
    *made = new Link;
    (*made)->logs = JitLogs(count, options, values);
    return Code::success;
  });
}

DRIVER_API int cuLinkAddData_v2(Link* link, int type, const void* data, size_t bytes, const char* name, unsigned,
                                const int*, void**) {
  return entry("cuLinkAddData", [&](Context& context) {
    if (!link) return Code::invalid_handle;
    if (!data || bytes == 0) return Code::invalid_value;
    return add(context, *link, type, {static_cast<const std::byte*>(data), bytes}, name);
  });
}

DRIVER_API int cuLinkAddFile_v2(Link* link, int type, const char* path, unsigned, const int*, void**) {
  return entry("cuLinkAddFile", [&](Context& context) {
    if (!link) return Code::invalid_handle;
    if (!path) return Code::invalid_value;
    Result<std::string> bytes = read_image(path);
    if (!bytes) return refuse(*link, Code::file_not_found, bytes.error().message);
    return add(context, *link, type, std::as_bytes(std::span(*bytes)), path);
  });
}

DRIVER_API int cuLinkComplete(Link* link, void** image, size_t* bytes) {
  return entry("cuLinkComplete", [&](Context& context) {
    if (!link) return Code::invalid_handle;
    if (!image || link->texts.empty()) return Code::invalid_value;
    const std::string text = link_ptx(link->texts);
    // Errors in the text are reported here, as the driver does, and not only when the image is loaded.
    if (std::string wrong = what_is_wrong_with(text, "linked module"); !wrong.empty())
      return refuse(*link, Code::invalid_ptx, wrong);
    link->image = write_elf_image(text, context.settings().machine->compute_capability);
    *image = link->image.data();
    if (bytes) *bytes = link->image.size();
    link->logs.write(Code::success, link->said);
    return Code::success;
  });
}

DRIVER_API int cuLinkDestroy(Link* link) {
  return entry("cuLinkDestroy", [&](Context&) {
    if (!link) return Code::invalid_handle;
    delete link;
    return Code::success;
  });
}

DRIVER_ALIAS(cuLinkCreate, cuLinkCreate_v2)
DRIVER_ALIAS(cuLinkAddData, cuLinkAddData_v2)
DRIVER_ALIAS(cuLinkAddFile, cuLinkAddFile_v2)

} // namespace ptxrewrite::cuda::driver
