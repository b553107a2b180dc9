#include "evaluate/common/machine_input.h"

#include "evaluate/common/module_input.h"
#include "ir/machine/files/machine_file.h"
#include "support/file_io.h"

#include <map>
#include <mutex>

namespace ptxrewrite::evaluate {

namespace {

const ir::Machine* machine_of_file(const std::string& path, const Console& console) {
  static std::map<std::string, std::unique_ptr<ir::MachineFile>> known_files;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (const auto known = known_files.find(path); known != known_files.end()) return &known->second->machine;
  Result<std::string> text = read_file(path);
  if (!text) {
    show(text.error(), console);
    return nullptr;
  }
  const SourceFile source(path, *std::move(text));
  Diagnostics diagnostics;
  std::unique_ptr<ir::MachineFile> file = ir::read_machine_file(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    show(diagnostic, source, console);
  if (!file) return nullptr;
  if (file->energy) ir::add_energy_set(*file->energy);
  return &known_files.emplace(path, std::move(file)).first->second->machine;
}

} // namespace

Result<const ir::Machine*> machine_named(const std::string& name, const Console& console) {
  const bool is_path = ir::is_machine_path(name);
  if (const uint32_t capability = ir::compute_capability_of(name); capability && !is_path)
    return &ir::machine_for(capability);
  if (const ir::Machine* machine = ir::find_machine(name)) return machine;
  if (!is_path) return Error{ir::unknown_machine(name), {}};
  return machine_of_file(name, console);
}

} // namespace ptxrewrite::evaluate
