// Runs one pipeline over one kernel file; the result is parsed again from its text, as from a file.
#pragma once

#include "ir/core/module.h"
#include "transforms/manager/pipeline.h"

#include <memory>
#include <string>

namespace ptxrewrite::evaluate {

const char* form_word(transforms::OutputForm form);

struct Rewritten {
  std::unique_ptr<ir::Module> module; // nullptr: the passes changed nothing
  std::string text;
  std::vector<transforms::Remark> remarks; // of the passes, if these only annotate
};

// Fails for an invalid pipeline, if a pass fails, or if the result cannot be parsed.
Result<Rewritten> rewrite(const ir::Module& original, const std::string& passes, transforms::OutputForm form,
                          transforms::RunOptions options);

} // namespace ptxrewrite::evaluate
