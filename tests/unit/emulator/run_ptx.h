// Runs PTX text on the emulator, with buffers and scalars as arguments.
//
//   auto run = run_ptx(kernel("k", ".param .u64 out", R"(...)"), {.kernel = "k", .block = {32}},
//   {zeros<uint32_t>(32)}); CHECK(run.buffer<uint32_t>(0)[5] == 25);
#pragma once

#include "emulator/core/emulator.h"
#include "grammar/reader.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ptxrewrite::emulator {

struct Buffer {
  std::vector<std::byte> bytes;
};
template <class T> Buffer buffer_of(const std::vector<T>& values) {
  Buffer buffer{std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
  return buffer;
}
template <class T> Buffer zeros(size_t count) {
  return {std::vector<std::byte>(count * sizeof(T))};
}

// Scalars are passed in the width of their type, buffers as generic addresses.
using Argument = std::variant<Buffer, uint8_t, uint16_t, uint32_t, int32_t, uint64_t, int64_t, float, double>;

struct PtxRun {
  std::shared_ptr<ir::Module> module; // the counters point into it
  LaunchResult result;
  std::string error;                           // of the launch or the reader, if they refused
  std::vector<std::vector<std::byte>> buffers; // contents of the buffer arguments after the run, in order
  std::vector<uint64_t> addresses;             // of the buffers

  template <class T> std::vector<T> buffer(size_t index) const {
    std::vector<T> values(buffers.at(index).size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), buffers[index].data(), values.size() * sizeof(T));
    return values;
  }
  // The failure's message; empty if there is none.
  std::string failure() const { return result.failure ? result.failure->message : std::string(); }
  bool ok() const { return error.empty() && !result.failure; }
  // The counters of the first instruction whose source text contains `text`.
  InstructionCounters counters(std::string_view text) const {
    for (const FunctionCounters& function : result.counters.functions)
      for (ir::BlockId block : function.source->layout)
        for (ir::InstructionId id : function.source->instructions_in(block)) {
          const SourceRange range = function.source->instructions[id].range;
          if (function.source->instructions[id].kind == ir::InstructionKind::real &&
              module->source.text().substr(range.begin, range.end - range.begin).find(text) != std::string_view::npos)
            return function.instructions[id.index()];
        }
    FAIL("no such instruction: ", text);
    return {};
  }
};

// A module with one kernel. `more` is placed before it: device functions, variables.
inline std::string kernel(std::string_view name, std::string_view parameters, std::string_view body,
                          std::string_view more = {}) {
  std::string text = ".version 8.7\n.target sm_90\n.address_size 64\n";
  text += more;
  text += "\n.visible .entry ";
  text += name;
  text += "(";
  text += parameters;
  text += ")\n{\n";
  text += body;
  text += "\n}\n";
  return text;
}

inline PtxRun run_ptx(std::string text, LaunchRequest request, const std::vector<Argument>& arguments = {}) {
  PtxRun run;
  Diagnostics diagnostics;
  run.module = grammar::read_module(SourceFile("test.ptx", std::move(text)), diagnostics);
  if (!run.module) {
    for (const Diagnostic& diagnostic : diagnostics.list())
      run.error += diagnostic.message + "\n";
    return run;
  }
  DeviceMemory memory;
  Result<std::unique_ptr<Program>> program = Program::load(*run.module, memory);
  if (!program) {
    run.error = program.error().message;
    return run;
  }
  auto pass = [&](const void* value, size_t bytes) {
    std::vector<std::byte>& parameters = request.parameters;
    parameters.resize((parameters.size() + bytes - 1) / bytes * bytes + bytes);
    std::memcpy(parameters.data() + parameters.size() - bytes, value, bytes);
  };
  for (const Argument& argument : arguments)
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Buffer>) {
            Result<uint64_t> address =
                memory.allocate(value.bytes.size(), "buffer" + std::to_string(run.addresses.size()));
            REQUIRE(address);
            REQUIRE(memory.write(*address, value.bytes));
            run.addresses.push_back(*address);
            run.buffers.emplace_back(value.bytes.size());
            pass(&*address, sizeof(uint64_t));
          } else {
            pass(&value, sizeof value);
          }
        },
        argument);
  Result<LaunchResult> result = (*program)->launch(request);
  if (!result) {
    run.error = result.error().message;
    return run;
  }
  run.result = std::move(*result);
  for (size_t i = 0; i < run.buffers.size(); ++i)
    REQUIRE(memory.read(run.addresses[i], run.buffers[i]));
  return run;
}

} // namespace ptxrewrite::emulator
