// R2D2 on generated straight-line index kernels: hardware and legal form against the original, thread by thread.
//
// Launches are drawn small and large, so that index arithmetic wraps in some. Where the rewrite left conditions to the
// launch and one is false, the kernels may differ, and in some they do: otherwise the conditions would test nothing.
#include "tests/unit/transforms/r2d2_fixture.h"

#include <random>

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::OutputForm;

namespace {

// One kernel: a pool of 32-bit values that grows by random arithmetic, then accesses at random sums of them.
class Generator {
public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string kernel() {
    line("ld.param.u64 %rd0, [p0]");
    line("ld.param.u64 %rd1, [p1]");
    next_wide_ = 2;
    for (const char* source : {"[n]", "[m]"}) define("ld.param.u32 ", source, uniform_);
    for (const char* source : {"%ntid.x", "%ntid.y", "%nctaid.x"}) define("mov.u32 ", source, uniform_);
    for (const char* source : {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"})
      define("mov.u32 ", source, any_);
    for (int i = below(10) + 4; i > 0; --i) arithmetic();
    for (int i = below(5) + 1; i > 0; --i) access();
    line("ret");
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n, "
           ".param .u32 m)\n{\n.reg .b32 %r<200>;\n.reg .b64 %rd<200>;\n.shared .align 4 .b8 tile[4096];\n" +
           body_ + "}\n";
  }

  ir::Launch launch() {
    ir::Launch result;
    result.block = {1 + uint32_t(below(5)), 1 + uint32_t(below(3)), 1 + uint32_t(below(2))};
    result.grid = {1 + uint32_t(below(3)), 1 + uint32_t(below(2)), 1 + uint32_t(below(2))};
    result.add_parameter(0x7f0000000000 + uint64_t(below(1000)) * 64, 8);
    result.add_parameter(0x7f1000000000, 8);
    for (int i = 0; i < 2; ++i) {
      switch (below(4)) {
      case 0: result.add_parameter(random_(), 4); break;
      case 1: result.add_parameter(0x7fffffffu - uint32_t(below(40)), 4); break;
      default: result.add_parameter(uint32_t(below(60) - 10), 4); break;
      }
    }
    return result;
  }

private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  void line(const std::string& text) { body_ += text + ";\n"; }
  void define(const std::string& operation, const std::string& operands, std::vector<std::string>& pool) {
    std::string name = "%r" + std::to_string(next_++);
    line(operation + name + ", " + operands);
    pool.push_back(name);
  }
  const std::string& pick(const std::vector<std::string>& pool) { return pool[static_cast<size_t>(below(int(pool.size())))]; }
  const std::string& value() { return below(4) == 0 ? pick(uniform_) : pick(any_); }
  std::string literal() { return std::to_string(below(40) - 8); }

  void arithmetic() {
    std::vector<std::string>& pool = any_;
    switch (below(10)) {
    case 0: return define("add.s32 ", value() + ", " + value(), pool);
    case 1: return define("sub.s32 ", value() + ", " + value(), pool);
    case 2: return define("add.s32 ", value() + ", " + literal(), pool);
    case 3: return define("mad.lo.s32 ", value() + ", " + pick(uniform_) + ", " + value(), pool);
    case 4: return define("mul.lo.s32 ", value() + ", " + pick(uniform_), pool);
    case 5: return define("shl.b32 ", value() + ", " + std::to_string(below(5)), pool);
    case 6: return define("neg.s32 ", value(), pool);
    case 7: return define("not.b32 ", value(), pool);
    case 8: return define("mad.lo.s32 ", pick(uniform_) + ", " + pick(uniform_) + ", " + literal(), uniform_);
    default: return define(below(2) ? "and.b32 " : "shr.s32 ", value() + ", " + std::to_string(1 + below(7)), pool);
    }
  }

  void access() {
    std::string index = value(), data = value();
    if (below(4) == 0) {
      define("mov.u32 ", "tile", uniform_);
      std::string base = uniform_.back();
      define("shl.b32 ", index + ", 2", any_);
      define("add.s32 ", base + ", " + any_.back(), any_);
      line("st.shared.u32 [" + any_.back() + "+" + std::to_string(4 * below(4)) + "], " + data);
      return;
    }
    std::string wide = "%rd" + std::to_string(next_wide_++), address = "%rd" + std::to_string(next_wide_++);
    switch (below(4)) {
    case 0: line("mul.wide.u32 " + wide + ", " + index + ", 4"); break;
    case 1: {
      std::string extended = "%rd" + std::to_string(next_wide_++);
      line("cvt.s64.s32 " + extended + ", " + index);
      line("shl.b64 " + wide + ", " + extended + ", 3");
      break;
    }
    default: line("mul.wide.s32 " + wide + ", " + index + ", " + (below(2) ? "4" : "12")); break;
    }
    line("add.s64 " + address + ", " + wide + ", %rd" + std::to_string(below(2)));
    if (below(3) == 0) define("ld.global.u32 ", "[" + address + "]", any_);
    else line("st.global.u32 [" + address + (below(2) ? "+8" : "") + "], " + data);
  }

  std::mt19937_64 random_;
  std::string body_;
  std::vector<std::string> uniform_, any_;
  int next_ = 0, next_wide_ = 0;
};

} // namespace

TEST_CASE("Generated index kernels: the rewritten kernel accesses the same addresses wherever its conditions hold") {
  size_t rewritten = 0, allowed = 0, refused = 0, refused_and_different = 0, legal = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Generator generator(seed);
    std::string text = generator.kernel();
    Rewrite hardware(text, "k", OutputForm::hardware);
    Rewrite common(text, "k", OutputForm::legal);
    rewritten += hardware.changed();
    legal += common.changed();
    ir::LinearForms forms(*hardware.before);
    for (int i = 0; i < 4; ++i) {
      ir::Launch launch = generator.launch();
      CHECK(common.same_traces(launch)); // the legal form has no conditions
      bool same = hardware.same_traces(launch);
      if (hardware.launch_allowed(forms, launch)) {
        CHECK_MESSAGE(same, text << Rewrite::printed(*hardware.after));
        ++allowed;
      } else {
        ++refused;
        refused_and_different += !same;
      }
    }
  }
  MESSAGE(rewritten << " of 300 kernels in hardware form, " << legal << " in legal form; launches " << allowed
                    << " allowed, " << refused << " refused, of which " << refused_and_different << " differ");
  CHECK(rewritten > 150);
  CHECK(allowed > 300);
  CHECK(refused_and_different > 20);
}
