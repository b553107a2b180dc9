// Random small functions for tests of analyses and SSA: bare control-flow graphs, and PTX text with loops, irreducible
// cycles, guards on all kinds of instructions, brx.idx, pairs, vectors and registers without a write on some paths.
#pragma once

#include "ir/core/module.h"

#include <random>
#include <string>

namespace ptxrewrite::tests {

using Random = std::mt19937;

inline unsigned below(Random& random, unsigned limit) {
  return static_cast<unsigned>(random() % limit);
}

// `blocks` empty blocks with random edges; block 0 is the entry. No instructions.
inline void make_random_graph(ir::Function& function, Random& random, unsigned blocks) {
  function.has_body = true;
  for (unsigned i = 0; i < blocks; ++i)
    function.place_block(function.add_block());
  for (unsigned i = 0; i < blocks; ++i) {
    std::vector<ir::EdgeId> edges;
    for (unsigned k = below(random, 3); k-- > 0;)
      edges.push_back(function.add_edge(ir::BlockId(i), ir::BlockId(below(random, blocks))));
    if (i + 1 < blocks && below(random, 4) != 0) edges.push_back(function.add_edge(ir::BlockId(i), ir::BlockId(i + 1)));
    function.set_successors(ir::BlockId(i), edges, false);
  }
}

// A kernel as text. Every block starts with a store, so that a run leaves a trace.
class RandomKernel {
public:
  explicit RandomKernel(unsigned seed) : random_(seed) {}

  std::string text() {
    blocks_ = 2 + below(random_, 8);
    bool initialised = below(random_, 2) == 0;
    std::string body;
    for (unsigned i = 0; i < registers && initialised; ++i)
      body += "mov.u32 %r" + std::to_string(i) + ", " + number() + ";\n";
    for (unsigned i = 0; i < predicates && initialised; ++i)
      body += "setp.lt.u32 %p" + std::to_string(i) + ", " + number() + ", " + r() + ";\n";
    if (below(random_, 3) == 0) body += "mov.u32 %r0, %tid.x;\n";
    for (unsigned block = 0; block < blocks_; ++block)
      body += block_text(block);
    return ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 g;\n.visible .entry k()\n{\n"
           ".reg .b32 %r<6>; .reg .pred %p<3>; .reg .b64 %rd<2>; .reg .b32 %t;\n" +
           tables_ + body + "ret;\n}\n";
  }

private:
  static constexpr unsigned registers = 6, predicates = 3;

  std::string number() { return std::to_string(below(random_, 8)); }
  std::string r() { return "%r" + std::to_string(below(random_, registers)); }
  std::string p() { return "%p" + std::to_string(below(random_, predicates)); }
  std::string source() { return below(random_, 4) == 0 ? number() : r(); }
  std::string label() { return "L" + std::to_string(below(random_, blocks_)); }
  std::string guard(unsigned one_in) {
    if (below(random_, one_in) != 0) return "";
    return (below(random_, 2) ? "@" : "@!") + p() + " ";
  }

  std::string instruction() {
    std::string g = guard(3);
    switch (below(random_, 9)) {
    case 0:
      return g + "add.u32 " + r() + ", " + r() + ", " + source() + ";\n";
    case 1:
      return g + "xor.b32 " + r() + ", " + r() + ", " + source() + ";\n";
    case 2:
    case 3:
    case 4:
      return g + "mov.b32 " + r() + ", " + r() + ";\n"; // much to coalesce
    case 5:
      return g + "setp.lt.u32 " + p() + ", " + r() + ", " + source() + ";\n";
    case 6: {
      std::string first = p(), second = p();
      while (second == first)
        second = p();
      return g + "setp.lt.u32 " + first + "|" + second + ", " + r() + ", " + source() + ";\n";
    }
    case 7:
      return g + "selp.b32 " + r() + ", " + r() + ", " + source() + ", " + p() + ";\n";
    default: {
      std::string first = r(), second = r();
      while (second == first)
        second = r();
      return "mov.b64 %rd0, {" + r() + ", " + r() + "};\n" + g + "mov.b64 {" + first + ", " + second + "}, %rd0;\n";
    }
    }
  }

  std::string block_text(unsigned block) {
    std::string text = "L" + std::to_string(block) + ":\nst.global.u32 [g], " + r() + ";\n";
    for (unsigned i = below(random_, 6); i-- > 0;)
      text += instruction();
    switch (below(random_, 7)) {
    case 0:
      text += "bra " + label() + ";\n";
      break;
    case 1:
    case 2:
    case 3:
      text += (below(random_, 2) ? "@" : "@!") + p() + " bra " + label() + ";\n";
      break;
    case 4:
      text += guard(1) + "ret;\n";
      break;
    case 5: {
      // Tables may be shared.
      if (table_count_ == 0 || below(random_, 2) == 0)
        tables_ += "T" + std::to_string(table_count_++) + ": .branchtargets " + label() + ", " + label() + ", " +
                   label() + ", " + label() + ";\n";
      std::string table = "T" + std::to_string(below(random_, table_count_));
      text += "and.b32 %t, " + r() + ", 3;\n" + guard(3) + "brx.idx %t, " + table + ";\n";
      break;
    }
    default:
      break;
    }
    return text;
  }

  Random random_;
  unsigned blocks_ = 0, table_count_ = 0;
  std::string tables_;
};

} // namespace ptxrewrite::tests
