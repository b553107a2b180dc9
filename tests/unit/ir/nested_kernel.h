// Random kernels of loops and branches inside each other, for analyses that skip whole loops in large functions.
#pragma once

#include "tests/unit/ir/random_functions.h"

#include <string>

namespace ptxrewrite::tests {

// Loops and branches inside each other, with some more than 64 blocks, below which loops are not skipped. Conditions
// depend on %tid.x, on %ctaid.x, or on what the loops computed from them.
class NestedKernel {
public:
  explicit NestedKernel(unsigned seed) : random_(seed) {}

  std::string text() {
    for (int i = 0; i < 4 || labels_ < 40; ++i)
      body(0);
    std::string start;
    for (int i = 0; i < registers; ++i)
      start += "mov.u32 %r" + std::to_string(i) + ", " + (below(random_, 4) == 0 ? "%tid.x" : "%ctaid.x") + ";\n";
    return ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 g;\n.visible .entry k()\n{\n"
           ".reg .b32 %r<6>; .reg .pred %p<2>;\n" +
           start + text_ + "st.global.u32 [g], %r0;\nret;\n}\n";
  }

private:
  static constexpr int registers = 6, deepest = 7;
  static constexpr unsigned most_labels = 80;

  std::string r() { return "%r" + std::to_string(below(random_, registers)); }
  void leave_if(const std::string& label) {
    text_ += "setp.lt.u32 %p0, " + r() + ", " + std::to_string(below(random_, 90)) + ";\n@%p0 bra " + label + ";\n";
  }
  void body(int depth) {
    for (unsigned i = 0; i < 1 + below(random_, 3); ++i) {
      text_ += "add.u32 " + r() + ", " + r() + ", " + std::to_string(below(random_, 9)) + ";\n";
      text_ += "mov.u32 " + r() + ", " + std::to_string(below(random_, 9)) + ";\n";
      if (depth >= deepest || labels_ >= most_labels) continue;
      below(random_, 5) < 3 ? loop(depth) : branch(depth);
    }
  }
  void loop(int depth) {
    const std::string name = std::to_string(labels_++);
    if (below(random_, 4) == 0) leave_if("X" + name);
    text_ += "L" + name + ":\n";
    body(depth + 1);
    if (below(random_, 3) == 0) leave_if("X" + name);
    if (below(random_, 4) == 0) { // code that leaves the loop, between its blocks
      leave_if("K" + name);
      text_ += "add.u32 " + r() + ", " + r() + ", 1;\nbra X" + name + ";\nK" + name + ":\n";
    }
    leave_if("L" + name);
    text_ += "X" + name + ":\n";
  }
  void branch(int depth) {
    const std::string name = std::to_string(labels_++);
    leave_if("E" + name);
    body(depth + 1);
    text_ += "bra F" + name + ";\nE" + name + ":\n";
    if (below(random_, 2) == 0) body(depth + 1);
    text_ += "F" + name + ":\n";
  }

  Random random_;
  unsigned labels_ = 0;
  std::string text_;
};

} // namespace ptxrewrite::tests
