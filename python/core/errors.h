// Converts errors and diagnostics of the libraries to Python exceptions with file, line, column and message.
#pragma once

#include "support/result.h"
#include "support/text/console.h"

#include <exception>
#include <string>
#include <vector>

namespace pybind11 {
class module_;
class object;
} // namespace pybind11

namespace ptxrewrite::python {

enum class Trouble : uint8_t { input, fault };

// Converted to ptxrewrite.PtxError, or to ptxrewrite.KernelFault for a fault.
class Failure : public std::exception {
public:
  Failure(Trouble trouble, std::vector<CollectedDiagnostic> diagnostics);
  const char* what() const noexcept override { return text_.c_str(); }
  Trouble trouble() const { return trouble_; }
  const std::vector<CollectedDiagnostic>& diagnostics() const { return diagnostics_; }

private:
  Trouble trouble_;
  std::vector<CollectedDiagnostic> diagnostics_;
  std::string text_; // one per line: "file:line:column: error: message"
};

// Collects the diagnostics that engines would show to the user.
class Collected {
public:
  Collected() { console_.collected = &list_; }
  Collected(const Collected&) = delete;
  Collected& operator=(const Collected&) = delete;
  const Console& console() const { return console_; }
  const std::vector<CollectedDiagnostic>& list() const { return list_; }
  [[noreturn]] void raise(Trouble trouble = Trouble::input) const { throw Failure(trouble, list_); }

private:
  Console console_;
  std::vector<CollectedDiagnostic> list_;
};

[[noreturn]] void raise(const Error& error, const SourceFile& source);
[[noreturn]] void raise(const std::string& message);
[[noreturn]] void raise_fault(const Diagnostic& diagnostic, const SourceFile& source);

// A tuple of ptxrewrite.Diagnostic.
pybind11::object to_python(const std::vector<CollectedDiagnostic>& diagnostics);
void bind_errors(pybind11::module_& core);

} // namespace ptxrewrite::python
