// Proofs of the rewrites of PTX text, for tests.
#pragma once

#include "evaluate/prove/prover.h"
#include "grammar/reader.h"

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

// Proves that one text has the same effects as another one; instructions correspond by their number in the text.
inline KernelProof prove_texts(const std::string& original, const std::string& rewritten,
                               const std::vector<transforms::Obligation>& ledger = {}) {
  Diagnostics diagnostics;
  auto before = grammar::read_module(SourceFile("before.ptx", original), diagnostics);
  auto after = grammar::read_module(SourceFile("after.ptx", rewritten), diagnostics);
  REQUIRE_MESSAGE(before, original);
  REQUIRE_MESSAGE(after, rewritten);
  return prove_pair(*before->functions[0], *after->functions[0], ledger, 20'000'000);
}

} // namespace ptxrewrite::prove
