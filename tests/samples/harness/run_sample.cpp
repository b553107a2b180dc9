#include "tests/samples/harness/run_sample.h"

#include "cuda/session.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"
#include "launch/signature.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <stdexcept>

namespace ptxrewrite::tests {

namespace {

template <class T> T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().message);
  return std::move(result).value();
}

[[noreturn]] void refuse(const Diagnostics& diagnostics, const SourceFile& source) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.list())
    text += render(diagnostic, source);
  throw std::runtime_error(text);
}

Bytes contents_of(const launch::Buffer& buffer) {
  Bytes bytes(buffer.bytes());
  if (Status status = buffer.initialise(bytes); !status)
    throw std::runtime_error(buffer.name + ": " + status.error().message);
  return bytes;
}

[[noreturn]] void refuse(const launch::Launch& launch, const emulator::Failure& failure, const SourceFile& ptx) {
  throw std::runtime_error(launch.kernel + (launch.trip.empty() ? "" : ", " + launch.trip) + ":\n" +
                           render(failure.to_diagnostic(), ptx));
}

} // namespace

launch::LaunchPlan sample_plan(const std::string& name, const std::string& size) {
  const std::string path = source_path("samples/" + name + "/" + name + ".toml");
  const SourceFile source(path, need(read_file(path), path));
  Diagnostics diagnostics;
  const auto file = launch::read_launch_file(source, diagnostics);
  auto plan = file ? launch::make_plan(*file, {.size = size}, diagnostics) : std::nullopt;
  if (!plan) refuse(diagnostics, source);
  return *std::move(plan);
}

std::unique_ptr<ir::Module> sample_module(const launch::LaunchPlan& plan) {
  const SourceFile source(plan.ptx, need(read_file(plan.ptx), plan.ptx));
  Diagnostics diagnostics;
  auto module = grammar::read_module(source, diagnostics);
  if (!module) refuse(diagnostics, source);
  return module;
}

void check_launches(const launch::LaunchPlan& plan, const ir::Module& module) {
  Diagnostics diagnostics;
  if (!launch::check_arguments(module, plan, diagnostics)) refuse(diagnostics, plan.source);
}

std::vector<Bytes> initial_buffers(const launch::LaunchPlan& plan) {
  std::vector<Bytes> buffers;
  for (const launch::Buffer& buffer : plan.buffers)
    buffers.push_back(contents_of(buffer));
  return buffers;
}

std::map<std::string, Bytes> initial_variables(const launch::LaunchPlan& plan) {
  std::map<std::string, Bytes> variables;
  launch::DeviceAddresses addresses; // unused by references
  addresses.buffers.resize(plan.buffers.size());
  addresses.textures.resize(plan.textures.size());
  for (const launch::ModuleVariable& variable : plan.variables) {
    Bytes& bytes = variables[variable.data.name];
    if (variable.value) {
      bytes.resize(launch::size_of(*variable.value, addresses.address_bytes).bytes);
      launch::pack(*variable.value, addresses, bytes);
    } else {
      bytes = contents_of(variable.data);
    }
  }
  return variables;
}

EmulatedRun emulate(const launch::LaunchPlan& plan, const ir::Module& module) {
  const auto device = cuda::make_emulator_device({.check = true});
  cuda::SessionResult session = need(cuda::run_plan(plan, module, *device, {.fetch_all = true}), plan.ptx);
  EmulatedRun result;
  for (size_t k = 0; k < session.runs.size(); ++k) {
    const cuda::KernelRun& run = session.runs[k];
    if (run.failure) refuse(plan.launches[k], *run.failure, module.source);
    if (!run.findings.empty()) refuse(plan.launches[k], run.findings.front().where, module.source);
    result.thread_instructions += run.counters.thread_instructions;
  }
  result.buffers = std::move(session.buffers);
  return result;
}

} // namespace ptxrewrite::tests
