#include "ir/machine/figures/pipe.h"

namespace ptxrewrite::ir {

std::string_view spelling(Pipe pipe) {
  switch (pipe) {
  case Pipe::issue:
    return "issue";
  case Pipe::integer:
    return "integer";
  case Pipe::fp32:
    return "fp32";
  case Pipe::fp64:
    return "fp64";
  case Pipe::special:
    return "special";
  case Pipe::memory:
    return "memory";
  case Pipe::matrix:
    return "matrix";
  case Pipe::control:
    return "control";
  case Pipe::uniform:
    return "uniform";
  }
  return {};
}

} // namespace ptxrewrite::ir
