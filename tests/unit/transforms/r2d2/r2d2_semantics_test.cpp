// R2D2 on generated index kernels and on the samples: hardware and legal form against the original, thread by thread.
//
// Launches are random, small and large, so that index arithmetic wraps in some. If a launch condition of the rewrite is
// false, the kernels may differ, and in some launches they do: otherwise the conditions would test nothing.
#include "tests/unit/paths.h"
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"

#include <random>

namespace ptxrewrite::tests::r2d2_semantics_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::OutputForm;

namespace {

// One kernel: a pool of 32-bit values that grows by random arithmetic, then accesses at random sums of them.
class Generator {
public:
  // With control flow: branches that diverge or not, loops, guarded and repeated writes to one register.
  Generator(uint64_t seed, bool control_flow) : random_(seed), control_flow_(control_flow) {}

  std::string kernel() {
    line("ld.param.u64 %rd0, [p0]");
    line("ld.param.u64 %rd1, [p1]");
    next_wide_ = 2;
    for (const char* source : {"[n]", "[m]"})
      define("ld.param.u32 ", source, uniform_);
    for (const char* source : {"%ntid.x", "%ntid.y", "%nctaid.x"})
      define("mov.u32 ", source, uniform_);
    for (const char* source : {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"})
      define("mov.u32 ", source, any_);
    for (int i = below(10) + 4; i > 0; --i)
      arithmetic();
    for (int i = below(5) + 1; i > 0; --i) {
      if (control_flow_) region(2);
      access();
    }
    line("ret");
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param "
           ".u32 n, "
           ".param .u32 m)\n{\n.reg .b32 %r<400>;\n.reg .b64 %rd<200>;\n.reg .pred %p<100>;\n.shared .align 4 .b8 "
           "tile[4096];\n" +
           body_ + "}\n";
  }

  ir::LaunchValues launch() {
    ir::LaunchValues result;
    result.block = {1 + uint32_t(below(5)), 1 + uint32_t(below(3)), 1 + uint32_t(below(2))};
    result.grid = {1 + uint32_t(below(3)), 1 + uint32_t(below(2)), 1 + uint32_t(below(2))};
    result.add_parameter(0x7f0000000000 + uint64_t(below(1000)) * 64, 8);
    result.add_parameter(0x7f1000000000, 8);
    for (int i = 0; i < 2; ++i) {
      switch (below(4)) {
      case 0:
        result.add_parameter(random_(), 4);
        break;
      case 1:
        result.add_parameter(0x7fffffffu - uint32_t(below(40)), 4);
        break;
      default:
        result.add_parameter(uint32_t(below(60) - 10), 4);
        break;
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
  const std::string& pick(const std::vector<std::string>& pool) {
    return pool[static_cast<size_t>(below(int(pool.size())))];
  }
  const std::string& value() { return below(4) == 0 ? pick(uniform_) : pick(any_); }
  std::string literal() { return std::to_string(below(40) - 8); }

  void arithmetic() {
    std::vector<std::string>& pool = any_;
    switch (below(10)) {
    case 0:
      return define("add.s32 ", value() + ", " + value(), pool);
    case 1:
      return define("sub.s32 ", value() + ", " + value(), pool);
    case 2:
      return define("add.s32 ", value() + ", " + literal(), pool);
    case 3:
      return define("mad.lo.s32 ", value() + ", " + pick(uniform_) + ", " + value(), pool);
    case 4:
      return define("mul.lo.s32 ", value() + ", " + pick(uniform_), pool);
    case 5:
      return define("shl.b32 ", value() + ", " + std::to_string(below(5)), pool);
    case 6:
      return define("neg.s32 ", value(), pool);
    case 7:
      return define("not.b32 ", value(), pool);
    case 8:
      return define("mad.lo.s32 ", pick(uniform_) + ", " + pick(uniform_) + ", " + literal(), uniform_);
    default:
      return define(below(2) ? "and.b32 " : "shr.s32 ", value() + ", " + std::to_string(1 + below(7)), pool);
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
    case 0:
      line("mul.wide.u32 " + wide + ", " + index + ", 4");
      break;
    case 1: {
      std::string extended = "%rd" + std::to_string(next_wide_++);
      line("cvt.s64.s32 " + extended + ", " + index);
      line("shl.b64 " + wide + ", " + extended + ", 3");
      break;
    }
    default:
      line("mul.wide.s32 " + wide + ", " + index + ", " + (below(2) ? "4" : "12"));
      break;
    }
    line("add.s64 " + address + ", " + wide + ", %rd" + std::to_string(below(2)));
    if (below(3) == 0)
      define("ld.global.u32 ", "[" + address + "]", any_);
    else
      line("st.global.u32 [" + address + (below(2) ? "+8" : "") + "], " + data);
  }

  std::string condition() {
    std::string name = "%p" + std::to_string(next_predicate_++);
    line("setp." + std::string(below(2) ? "lt" : "ne") + ".s32 " + name + ", " + value() + ", " +
         (below(2) ? value() : literal()));
    return name;
  }

  // A piece with control flow; values defined in it are not used after it, overwritten ones are.
  void region(int depth) {
    std::vector<std::string> uniform = uniform_, any = any_;
    switch (below(depth > 0 ? 5 : 2)) {
    case 0:
      break;
    case 1: {
      std::string predicate = condition(), target = any_[static_cast<size_t>(6 + below(int(any_.size()) - 6))];
      line("@" + std::string(below(2) ? "!" : "") + predicate + " add.s32 " + target + ", " + value() + ", " + value());
      break;
    }
    case 2:
    case 3: {
      std::string label = "L" + std::to_string(next_label_++), predicate = condition();
      line("@" + predicate + " bra " + label);
      body(depth);
      body_ += label + ":\n";
      break;
    }
    default: {
      std::string label = "L" + std::to_string(next_label_++), counter = "%r" + std::to_string(next_++);
      std::string moving = "%r" + std::to_string(next_++), step = below(2) ? pick(uniform_) : literal();
      line("mov.u32 " + counter + ", 0");
      line("mov.u32 " + moving + ", " + value());
      body_ += label + ":\n";
      any_.push_back(moving);
      body(depth);
      line("add.s32 " + moving + ", " + moving + ", " + step);
      line("add.s32 " + counter + ", " + counter + ", 1");
      std::string predicate = "%p" + std::to_string(next_predicate_++);
      line("setp.lt.s32 " + predicate + ", " + counter + ", " + std::to_string(1 + below(3)));
      line("@" + predicate + " bra " + label);
      break;
    }
    }
    uniform_ = std::move(uniform);
    any_ = std::move(any);
  }
  void body(int depth) {
    for (int i = below(3); i > 0; --i)
      arithmetic();
    access();
    if (below(2)) region(depth - 1);
  }

  std::mt19937_64 random_;
  bool control_flow_;
  int next_predicate_ = 0, next_label_ = 0;
  std::string body_;
  std::vector<std::string> uniform_, any_;
  int next_ = 0, next_wide_ = 0;
};

} // namespace

namespace {

struct Tally {
  size_t rewritten = 0, legal = 0, allowed = 0, refused = 0, refused_and_different = 0;
};

// Every legal rewrite that needs no launcher, profitable or not.
transforms::PassOptions legal_in_place() {
  transforms::PassOptions options;
  options.set("candidates", "1+2");
  options.set("force", "1");
  options.set("discharge", "proved");
  return options;
}

Tally compare_generated(uint64_t first_seed, uint64_t last_seed, bool control_flow) {
  Tally tally;
  for (uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    CAPTURE(seed);
    Generator generator(seed, control_flow);
    std::string text = generator.kernel();
    Rewrite hardware(text, "k", OutputForm::hardware);
    Rewrite common(text, "k", OutputForm::legal, {}, legal_in_place());
    tally.rewritten += hardware.changed();
    tally.legal += common.changed();
    ir::LinearForms forms(*hardware.before);
    for (int i = 0; i < 4; ++i) {
      ir::LaunchValues launch = generator.launch();
      CHECK_MESSAGE(common.same_traces(launch), text << Rewrite::printed(*common.after)); // no conditions here
      bool same = hardware.same_traces(launch);
      if (hardware.launch_allowed(forms, launch)) {
        CHECK_MESSAGE(same, text << Rewrite::printed(*hardware.after));
        ++tally.allowed;
      } else {
        ++tally.refused;
        tally.refused_and_different += !same;
      }
    }
  }
  MESSAGE(tally.rewritten << " of " << last_seed - first_seed + 1 << " kernels in hardware form, " << tally.legal
                          << " in legal form; launches " << tally.allowed << " allowed, " << tally.refused
                          << " refused, of which " << tally.refused_and_different << " differ");
  return tally;
}

} // namespace

TEST_CASE("Generated straight-line kernels access the same addresses wherever their conditions hold") {
  Tally tally = compare_generated(1, 300, false);
  CHECK(tally.rewritten > 150);
  CHECK(tally.allowed > 300);
  CHECK(tally.refused_and_different > 20);
}

TEST_CASE("Generated kernels with branches, loops and repeated writes do so too") {
  Tally tally = compare_generated(1001, 1250, true);
  CHECK(tally.rewritten > 100);
  CHECK(tally.allowed > 250);
}

// Samples whose loops end for all argument values; the others need their launch files.
TEST_CASE("Samples' kernels do the same in both forms, also when read back from the printed text") {
  size_t kernels = 0;
  for (const char* sample :
       {"backprop", "dac_example", "hotspot", "matmul", "pathfinder", "vecadd", "warp_reduction"}) {
    std::string text = file_text(source_path("samples/" + std::string(sample) + "/" + sample + ".ptx"));
    std::unique_ptr<ir::Module> module = read_text(text);
    for (const auto& function : module->functions) {
      if (!function->is_entry || !function->has_body) continue;
      std::string name(module->text(function->name));
      CAPTURE(name);
      ++kernels;
      Rewrite hardware(text, name, OutputForm::hardware);
      Rewrite legal(text, name, OutputForm::legal, {}, legal_in_place());
      ir::LinearForms forms(*hardware.before);
      std::vector<ir::LaunchValues> launches;
      std::vector<std::vector<ThreadTrace>> expected;
      for (uint32_t number : {1u, 3u, 40u}) {
        ir::LaunchValues launch;
        launch.block = {16, number == 40 ? 16u : 4u, 1};
        launch.grid = {2, number == 1 ? 1u : 2u, 1};
        uint64_t pointer = 0x7f0000000000;
        for (ir::VariableId parameter : function->variable_lists.view(function->signature.parameters)) {
          unsigned bytes = ir::byte_width(function->variables[parameter].type);
          launch.add_parameter(bytes == 8 ? pointer += 0x100000 : number, bytes);
        }
        REQUIRE(hardware.launch_allowed(forms, launch));
        expected.push_back(KernelEvaluator(*hardware.before, launch).run());
        CHECK(KernelEvaluator(*hardware.after, launch).run() == expected.back());
        CHECK(legal.same_traces(launch));
        launches.push_back(std::move(launch));
      }
      std::string rewritten_name(hardware.rewritten->text(hardware.after->name));
      std::unique_ptr<ir::Module> again = read_text(hardware.file());
      for (size_t i = 0; i < launches.size(); ++i)
        CHECK(KernelEvaluator(kernel(*again, rewritten_name), launches[i]).run() == expected[i]);
    }
  }
  CHECK(kernels >= 8);
}

} // namespace ptxrewrite::tests::r2d2_semantics_test
