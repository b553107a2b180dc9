// A program that launches kernels of a rewritten module on a GPU: reads PTX and side file; the loader chooses the
// kernel before each launch. The data goes through the kernel `add` twice; every element must then equal its index plus
// 14.
#include "cuda/driver/loader.h"
#include "grammar/reader.h"
#include "support/file_io.h"

#include <iostream>

using namespace ptxrewrite;

static int fail(const Error& error, int code = 1) {
  return std::cerr << error.message << '\n', code;
}

int main(int, char** arguments) {
  const std::string path = arguments[1], side_path = launch::side_file_path(path); // add.ptx, add.launch.json
  Diagnostics diagnostics;
  Result<std::string> text = read_file(path), side_text = read_file(side_path);
  if (!text || !side_text) return fail(text ? side_text.error() : text.error());
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile(path, *text), diagnostics);
  std::optional<launch::SideFile> side_file = launch::read_side_file(SourceFile(side_path, *side_text), diagnostics);
  if (!module || !side_file) return fail({diagnostics.list().front().message, {}});

  Result<std::unique_ptr<driver::Gpu>> gpu = driver::Gpu::open();
  if (!gpu) return fail(gpu.error(), 77); // there is no GPU
  Result<driver::Loader> loader = driver::Loader::load(**gpu, *module, &*side_file);
  if (!loader) return fail(loader.error());
  const uint32_t count = 12799, amount = 7;
  std::vector<uint32_t> values(count);
  for (uint32_t i = 0; i < count; ++i)
    values[i] = i;
  Result<driver::DevicePointer> data = (*gpu)->allocate(count * 4, "data");
  if (!data) return fail(data.error());
  if (Status status = (*gpu)->write(*data, std::as_bytes(std::span(values))); !status) return fail(status.error());

  for (uint32_t block : {64, 128}) {
    auto launched = loader->launch("add", {(count + block - 1) / block}, {block}, {&*data, &amount, &count});
    if (!launched) return fail(launched.error());
    std::cout << "block of " << block << ": " << launched->entry << ", " << launched->grid.x << " blocks\n";
    for (const std::string& reason : launched->reasons)
      std::cout << "  " << reason << '\n';
  }
  if (Status status = (*gpu)->read(*data, std::as_writable_bytes(std::span(values))); !status) // waits for the kernels
    return fail(status.error());
  (void)(*gpu)->release(*data);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i)
    wrong += values[i] != i + 2 * amount;
  std::cout << wrong << " of " << count << " elements are wrong\n";
  return wrong != 0;
}
