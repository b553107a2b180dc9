// Proofs of the rewrites of PTX text, for tests.
#pragma once

#include "evaluate/prove/prover.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ptxrewrite::prove {

inline std::vector<KernelProof> prove_text(const std::string& text, const std::string& passes,
                                           const ProofSettings& settings = {}) {
  auto pipeline = transforms::parse_pipeline(passes);
  REQUIRE(pipeline);
  auto proofs = prove_module(SourceFile("test.ptx", text), *pipeline, settings);
  REQUIRE_MESSAGE(proofs, text);
  return *proofs;
}

} // namespace ptxrewrite::prove
