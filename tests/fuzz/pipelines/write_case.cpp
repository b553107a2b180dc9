#include "tests/fuzz/pipelines/write_case.h"

#include "launch/tensor_map_text.h"
#include "support/file_io.h"

#include <fmt/format.h>

#include <filesystem>

namespace ptxrewrite::fuzz::pipelines {
namespace {

std::string buffer_name(const std::string& name, size_t buffer) {
  return fmt::format("{}.{}.bin", name, buffer);
}

std::string argument_text(const Parameter& parameter) {
  switch (parameter.kind) {
  case Parameter::Kind::address:
    return fmt::format("{{ buffer = \"b{}\" }}", parameter.buffer);
  case Parameter::Kind::number:
    return fmt::format("{{ u32 = {} }}", parameter.number);
  case Parameter::Kind::map:
    break;
  }
  return *launch::tensor_map_text(parameter.map, fmt::format("\"b{}\"", parameter.buffer), 0);
}

std::string launch_file(const Case& launched, const std::string& name) {
  std::string text = fmt::format("ptx = \"{}.ptx\"\n\n[[launch]]\nkernel = \"pipeline\"\ngrid = {}\nblock = {}\n", name,
                                 launched.blocks, launched.threads);
  if (launched.shared_bytes != 0) text += fmt::format("shared = {}\n", launched.shared_bytes);
  text += "args = [\n";
  for (const Parameter& parameter : launched.parameters)
    text += "  " + argument_text(parameter) + ",\n";
  text += "]\n";
  for (size_t i = 0; i < launched.buffers.size(); ++i)
    text += fmt::format("\n[buffer.b{}]\ntype = \"u32\"\ncount = {}\nfile = \"{}\"\n", i, launched.buffers[i].size(),
                        buffer_name(name, i));
  return text + fmt::format("output = true\nexpected = \"{}.expected.bin\"\n", name);
}

Status write_words(const std::string& path, const std::vector<uint32_t>& words) {
  return write_file(path, {reinterpret_cast<const char*>(words.data()), words.size() * 4});
}

} // namespace

Status write_case(const Case& launched, const std::string& name, const std::string& folder) {
  std::error_code failed; // writing reports it
  std::filesystem::create_directories(folder, failed);
  const std::string start = folder + "/";
  if (Status status = write_file(start + name + ".ptx", launched.text); !status) return status;
  for (size_t i = 0; i < launched.buffers.size(); ++i)
    if (Status status = write_words(start + buffer_name(name, i), launched.buffers[i]); !status) return status;
  if (Status status = write_words(start + name + ".expected.bin", launched.expected); !status) return status;
  return write_file(start + name + ".toml", launch_file(launched, name));
}

} // namespace ptxrewrite::fuzz::pipelines
