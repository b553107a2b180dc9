// Reading PTX for a command: bytes, module, diagnostics shown.
#pragma once

#include "ir/core/module.h"
#include "support/result.h"
#include "support/text/console.h"

#include <memory>
#include <string>

namespace ptxrewrite::evaluate {

// Reads and parses a file ("-": standard input). What is wrong with it goes to standard error; nullptr then.
std::unique_ptr<ir::Module> read_input(const std::string& path, const Console& console);

// A PTX file's bytes as a module, with a name to show. Diagnostics are shown.
std::unique_ptr<ir::Module> read_module_text(SourceFile source, const Console& console);

// Shows one diagnostic, or an error, on standard error.
void show(const Diagnostic& diagnostic, const SourceFile& source, const Console& console);
void show(const Error& error, const SourceFile& source, const Console& console);
// The first of them; a broken file can have thousands.
void show_all(const Diagnostics& diagnostics, const SourceFile& source, const Console& console);
// For errors that are about no file's content.
void show(const Error& error);
void show(const Error& error, const Console& console);

// Checks that a glob selects at least one function with a body; shows an error that lists what there is otherwise.
bool check_selection(const ir::Module& module, const std::string& glob, const Console& console);

} // namespace ptxrewrite::evaluate
