// One kernel file and one pipeline: what its passes make of it, read back from the text that a file would hold.
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
  std::vector<transforms::Remark> remarks; // of the passes, where they only annotate
};

// Errors: a pipeline that is none, passes that fail, a result that cannot be read.
Result<Rewritten> rewrite(const ir::Module& original, const std::string& passes, transforms::OutputForm form,
                          transforms::RunOptions options);

} // namespace ptxrewrite::evaluate
