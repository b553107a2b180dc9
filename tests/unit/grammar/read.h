// Reading PTX from strings in tests.
#pragma once

#include "grammar/reader.h"
#include "ir/core/print.h"
#include "support/diagnostic.h"

#include <memory>
#include <string>

struct ReadText {
  ptxrewrite::SourceFile source; // of the diagnostics
  ptxrewrite::Diagnostics diagnostics;
  std::unique_ptr<ptxrewrite::ir::Module> module;

  explicit ReadText(std::string text, uint32_t error_limit = 20) : source("test.ptx", text) {
    module = ptxrewrite::grammar::read_module(ptxrewrite::SourceFile("test.ptx", std::move(text)), diagnostics,
                                              {error_limit});
  }
  bool ok() const { return module != nullptr; }
  ptxrewrite::ir::Function& function(unsigned index = 0) { return *module->functions[index]; }
  // All diagnostics in the user's format.
  std::string messages() const {
    std::string text;
    for (const auto& diagnostic : diagnostics.list())
      text += ptxrewrite::render(diagnostic, source);
    return text;
  }
};

// A kernel around `body`, with registers %p1 %p2 %h1 %h2 %r1..%r4 %rd1 %rd2 %f1..%f4 %d1 %d2.
inline std::string kernel(const std::string& body, const std::string& before = "") {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 p, .param .u32 q)\n{\n"
         ".reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .f64 %d<3>;\n" +
         body + "\nret;\n}\n";
}
