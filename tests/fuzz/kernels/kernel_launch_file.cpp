#include "tests/fuzz/kernels/kernel_launch_file.h"

#include "support/file_io.h"
#include "tests/fuzz/kernels/kernel_print.h"

#include <filesystem>

namespace ptxrewrite::fuzz {

namespace {

std::string triple(const std::array<uint32_t, 3>& size) {
  return "[" + std::to_string(size[0]) + ", " + std::to_string(size[1]) + ", " + std::to_string(size[2]) + "]";
}

std::string argument_text(const Kernel& kernel, const Shape& shape, const Argument& argument) {
  switch (argument.kind) {
  case ArgumentKind::buffer: {
    const std::string offset = argument.offset == 0 ? "" : ", offset = " + std::to_string(argument.offset);
    return "{ buffer = \"" + kernel.buffers[argument.buffer].name + "\"" + offset + " }";
  }
  case ArgumentKind::total_threads:
    return "{ u32 = " + std::to_string(shape.threads()) + " }";
  case ArgumentKind::row_threads:
    return "{ u32 = " + std::to_string(shape.grid[0] * shape.block[0]) + " }";
  case ArgumentKind::bytes:
    break;
  }
  std::string text = "{ bytes = [";
  const std::vector<uint8_t>& bytes = argument.bytes_in(shape);
  for (size_t i = 0; i < bytes.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(bytes[i]);
  return text + "] }";
}

} // namespace

std::string buffer_file(const Kernel& kernel, size_t buffer) {
  return kernel.name + "." + kernel.buffers[buffer].name + ".bin";
}

std::string launch_file(const Kernel& kernel, const Shape& shape) {
  std::string text = "ptx = \"" + kernel.name + ".ptx\"\n[[launch]]\nkernel = \"" + kernel.name + "\"\n";
  text += "grid = " + triple(shape.grid) + "\nblock = " + triple(shape.block) + "\n";
  if (kernel.dynamic_shared_size() != 0) text += "shared = " + std::to_string(kernel.dynamic_shared_size()) + "\n";
  text += "args = [\n";
  for (const Argument& argument : kernel.arguments)
    text += "  " + argument_text(kernel, shape, argument) + ",\n";
  text += "]\n";
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    text += "[buffer." + kernel.buffers[i].name +
            "]\ntype = \"u8\"\ncount = " + std::to_string(kernel.buffer_size(i, shape)) + "\nfile = \"" +
            buffer_file(kernel, i) + "\"\noutput = true\n";
  return text;
}

Status write_case(const Kernel& kernel, const Shape& shape, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string start = folder + "/";
  if (Status status = write_file(start + kernel.name + ".ptx", print_module(kernel)); !status) return status;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const std::vector<uint8_t> contents = kernel.buffer_contents(i, shape);
    const std::string bytes(contents.begin(), contents.end());
    if (Status status = write_file(start + buffer_file(kernel, i), bytes); !status) return status;
  }
  return write_file(start + kernel.name + ".toml", launch_file(kernel, shape));
}

} // namespace ptxrewrite::fuzz
