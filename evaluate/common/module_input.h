// Reads PTX for a command and shows diagnostics.
#pragma once

#include "ir/core/module.h"
#include "support/result.h"
#include "support/text/console.h"

#include <memory>
#include <string>

namespace ptxrewrite::evaluate {

// Reads and parses a file ("-": standard input). Shows diagnostics on standard error; returns nullptr on errors.
std::unique_ptr<ir::Module> read_input(const std::string& path, const Console& console);

// Parses the text of a PTX file, with a name for display. Shows diagnostics.
std::unique_ptr<ir::Module> read_module_text(const SourceFile& source, const Console& console);

// Shows one diagnostic, or an error, on standard error.
void show(const Diagnostic& diagnostic, const SourceFile& source, const Console& console);
void show(const Error& error, const SourceFile& source, const Console& console);
// Shows only the first ones, because a broken file can have thousands.
void show_all(const Diagnostics& diagnostics, const SourceFile& source, const Console& console);
// For errors that do not refer to the content of a file.
void show(const Error& error);
void show(const Error& error, const Console& console);

// Checks that a glob selects at least one function with a body; otherwise shows an error that lists the functions.
bool check_selection(const ir::Module& module, const std::string& glob, const Console& console);

} // namespace ptxrewrite::evaluate
