#include "tests/rules/family_rules.h"

namespace ptxrewrite::tests {

namespace {

using Rules = std::vector<FamilyRule>;

const std::string load_word = "ld.global.u32 %r20, [%rd6];\n", load_wide = "ld.global.u64 %rd20, [%rd6];\n";
const std::string store_word = "st.global.u32 [%rd7], %r21;\n", store_wide = "st.global.u64 [%rd7], %rd21;\n";

// A fixed number of copies of a text with the numbers put in for # (0, 1, ...), @ (0, 4, ...) and $ (10, 11, ...).
std::string copies(const std::string& text, unsigned count, unsigned bytes = 4) {
  std::string all;
  for (unsigned i = 0; i < count; ++i)
    for (char c : text)
      all += c == '#'   ? std::to_string(i)
             : c == '@' ? std::to_string(bytes * i)
             : c == '$' ? std::to_string(10 + i)
                        : std::string(1, c);
  return all;
}

void add_memory(Rules& rules) {
  const std::string apart =
      "a buffer moved over the other byte by byte: the predicate holds where it must and only there";
  const std::string stays = "loads are left alone where they may read what is written, by this kernel or by others";
  const std::string joined = "accesses that are not adjacent, or that something stands between, are not joined";
  auto add = [&](const char* name, const std::string& body, const char* marker, std::array<int, 3> saves,
                 const std::string& proof, const std::string& refused, const std::string& edges,
                 const char* target = "sm_80", const char* version = "8.0") {
    rules.push_back({"memory", name, body, marker, saves, proof, edges, refused, target, version, "", ""});
  };
  const std::string launches = "fuzz/launchtime",
                    bytes = "eight or sixteen bytes are loaded as words, under a condition on the pointer";
  add("read-only load",
      "ld.global.u32 %r20, [%rd6];\nst.global.u32 [%rd7], %r20;\nld.global.u32 %r21, [%rd6];\n"
      "st.global.u32 [%rd7+4], %r21;\n",
      "ld.global.nc.", {1, 1, 1}, apart, stays, launches);
  add("load leaves its loop",
      "mov.u32 %r22, 0;\nLOOP:\nld.global.u32 %r20, [%rd1];\nst.global.u32 [%rd7], %r20;\nadd.s64 %rd7, %rd7, 4;\n"
      "add.s32 %r22, %r22, 1;\nsetp.lt.s32 %p1, %r22, %r1;\n@%p1 bra LOOP;\n",
      "ld.global.nc.", {8, 8, 8}, apart, "a read-only load of the same address in every trip leaves its loop",
      launches);
  add("repeated load",
      "ld.global.u32 %r20, [%rd6];\nst.global.u32 [%rd7], %r20;\nbar.sync 0;\nld.global.u32 %r21, [%rd6];\n" +
          store_word,
      "mov.b32", {1, 1, 1}, apart, "a read-only load of an address that was loaded before becomes a move", launches);
  const std::string
      paths = "a read-only load of one address on several paths is executed in front of them, if the launch takes one",
      chains = "addresses that differ by a launch constant are computed from one another where no index wraps";
  add("loads on several paths",
      "st.global.u32 [%rd7], %r6;\nsetp.lt.s32 %p1, %r1, 8;\n@%p1 bra SMALL;\nld.global.u32 %r20, [%rd1];\n"
      "add.s32 %r21, %r20, %r6;\nst.global.u32 [%rd7+4], %r21;\nbra END;\nSMALL:\nld.global.u32 %r20, [%rd1];\n"
      "mul.lo.s32 %r21, %r20, %r6;\nst.global.u32 [%rd7+8], %r21;\nEND:\n",
      "mov.b32", {2, 2, 2}, paths, paths, launches);
  add("chained addresses",
      "st.global.u32 [%rd7], %r6;\nmul.wide.s32 %rd19, %r2, 4;\nmul.wide.s32 %rd20, %r6, 4;\nadd.s64 %rd20, %rd1, "
      "%rd20;\n"
      "ld.global.u32 %r20, [%rd20];\nst.global.u32 [%rd7+4], %r20;\n" +
          copies("add.s32 %r6, %r6, %r2;\nmul.wide.s32 %rd21, %r6, 4;\nadd.s64 %rd20, %rd1, %rd21;\n"
                 "ld.global.u32 %r20, [%rd20];\nst.global.u32 [%rd7+8], %r20;\n",
                 3) +
          "add.s64 %rd7, %rd7, %rd19;\nst.global.u32 [%rd7+4], %r20;\n",
      "ld.global.nc.", {8, 8, 8}, chains, chains, chains);
  add("two loads", copies("ld.global.u32 %r2#, [%rd6+@];\n", 2) + "add.s32 %r21, %r20, %r21;\n" + store_word, ".v2.",
      {1, 1, 1}, by_prover, joined, launches);
  add("four loads",
      copies("ld.global.u32 %r2#, [%rd6+@];\n", 4) +
          "add.s32 %r21, %r20, %r21;\nadd.s32 %r22, %r22, %r23;\nmul.lo.s32 %r21, %r21, %r22;\n" + store_word,
      ".v4.", {3, 3, 3}, by_prover, joined, launches);
  add("two stores", copies("add.s32 %r2#, %r6, 5#;\n", 2) + copies("st.global.u32 [%rd7+@], %r2#;\n", 2), ".v2.",
      {1, 1, 1}, by_prover, joined, launches);
  add("four stores", copies("add.s32 %r2#, %r6, 5#;\n", 4) + copies("st.global.u32 [%rd7+@], %r2#;\n", 4), ".v4.",
      {3, 3, 3}, by_prover, joined, launches);
  add("eight words", copies("ld.global.u32 %r2#, [%rd6+@];\n", 8) + copies("st.global.u32 [%rd7+@], %r2#;\n", 8),
      ".v8.", {0, 0, 12}, by_prover, joined, "eight words are one vector where the target has it", "sm_100", "8.8");
  add("sixteen bytes",
      copies("ld.global.u8 %h$, [%rd6+#];\ncvt.u32.u16 %r$, %h$;\nadd.s32 %r6, %r6, %r$;\n", 16) +
          "st.global.u32 [%rd7], %r6;\n",
      ".v4.", {10, 10, 10}, bytes, bytes, launches);
  rules.back().also = ",composite(force)"; // sums of bytes
  add("four bytes stored",
      copies("shr.u32 %r2#, %r6, @;\ncvt.u16.u32 %h2#, %r2#;\nst.global.u8 [%rd7+#], %h2#;\n", 4, 8), "st.global.b32",
      {3, 3, 3}, "bytes that are stored side by side go as words, through the shifts that made them",
      "bytes that are stored side by side go as words, through the shifts that made them", launches);
}

void add_narrow(Rules& rules) {
  const std::string ranges = "division of 64 bits: both below 2^32, the divisor not 0";
  const std::string data = "data from memory stay as they are";
  auto add = [&](const std::string& name, const std::string& body, const char* marker, std::array<int, 3> saves,
                 const std::string& edges, const std::string& refused = "") {
    rules.push_back({"narrow", name, body, marker, saves, by_prover, edges, refused.empty() ? data : refused, "sm_80",
                     "8.0", "", ""});
  };
  for (const char* type : {"u64", "s64"}) {
    const std::string t = type;
    add("div." + t, "div." + t + " %rd21, %rd5, %rd3;\n" + store_wide, "div.u32", {45, 45, 45}, ranges);
    add("rem." + t, "rem." + t + " %rd21, %rd5, %rd3;\n" + store_wide, "rem.u32", {45, 45, 45}, ranges);
    add("setp." + t, "setp.lt." + t + " %p1, %rd5, %rd3;\nselp.u32 %r21, 1, 2, %p1;\n" + store_word,
        t == "u64" ? "setp.lt.u32" : "setp.lt.s32", {1, 1, 1}, "comparisons of 64 bits");
  }
  const std::string index = "two-dimensional index: sums and products in front of the address are of 32 bits";
  add("mul.lo.s64", "mul.lo.s64 %rd21, %rd5, %rd3;\n" + store_wide, "mul.wide.s32", {3, 3, 3}, index);
  add("mad.lo.s64", "mad.lo.s64 %rd21, %rd5, %rd3, %rd4;\n" + store_wide, "mad.wide", {2, 2, 2}, index);
  add("shl.b64", "add.s64 %rd22, %rd5, %rd3;\nshl.b64 %rd21, %rd22, 2;\n" + store_wide, "mul.wide.s32", {3, 3, 3},
      index);
  add("truncation",
      "mov.u64 %rd20, %rd5;\nmov.u32 %r21, 0;\nLOOP:\ncvt.u32.u64 %r20, %rd20;\nxor.b32 %r21, %r21, %r20;\n"
      "add.s64 %rd20, %rd20, %rd4;\nsetp.lt.u64 %p1, %rd20, %rd3;\n@%p1 bra LOOP;\n" +
          store_word,
      "setp.lt.u32", {5, 5, 5}, "loop counters",
      "the kernel's own truncation of a loop counter does not keep its 64 bits");
  const std::string division = "signed division of numbers that are not negative";
  add("div.s32", "div.s32 %r21, %r6, %r2;\n" + store_word, "div.u32", {4, 4, 4}, division);
  add("rem.s32", "rem.s32 %r21, %r6, %r2;\n" + store_word, "rem.u32", {4, 4, 4}, division);
  add("sign",
      "shr.s32 %r20, %r6, 31;\nshr.u32 %r20, %r20, 29;\nadd.s32 %r20, %r6, %r20;\nshr.s32 %r21, %r20, 3;\n" +
          store_word,
      "", {2, 2, 2}, "signs of numbers that are not negative", "signs of numbers that are not negative");
  add("range test",
      load_word +
          "setp.ge.s32 %p1, %r20, 0;\nsetp.lt.s32 %p2, %r20, %r1;\nand.pred %p3, %p1, %p2;\nselp.u32 %r21, 1, 2, "
          "%p3;\n" +
          store_word,
      "setp.lt.u32", {1, 1, 1}, "two comparisons for a range are one", "two comparisons for a range are one");
  add("width test",
      "or.b64 %rd22, %rd5, %rd3;\nand.b64 %rd22, %rd22, -4294967296;\nsetp.ne.s64 %p1, %rd22, 0;\n@%p1 bra LONG;\n"
      "cvt.u32.u64 %r20, %rd3;\ndiv.u32 %r21, %r6, %r20;\ncvt.u64.u32 %rd21, %r21;\nbra JOIN;\nLONG:\n"
      "div.u64 %rd21, %rd5, %rd3;\nJOIN:\n" +
          store_wide,
      "", {70, 70, 70}, "the compiler's test of high halves is decided",
      "the compiler's test of high halves is decided");
  rules.back().proof = "the compiler's test of high halves is decided";
}

void add_divisor(Rules& rules) {
  const std::string all_divisors = "magic numbers are exact for all divisors of 12 bits";
  auto add = [&](const char* name, const std::string& body, const char* marker, std::array<int, 3> saves,
                 const char* edges, const std::string& proof = by_prover) {
    rules.push_back({"divisor", name, body, marker, saves, proof, edges, "what is left alone", "sm_80", "8.0", "", ""});
  };
  const char* data = "dividends of any value: data from memory";
  const char* wide = "64 bits: data from memory, and indices in the 32-bit form";
  add("natural32", "div.s32 %r21, %r6, %r2;\n" + store_word, "shr.u64", {10, 10, 10},
      "an index that is not negative: one product for quotient and remainder");
  add("unsigned32", load_word + "div.u32 %r21, %r20, %r2;\n" + store_word, "shr.u64", {8, 8, 8}, data);
  add("signed32", load_word + "div.s32 %r21, %r20, %r2;\n" + store_word, "mad.hi.s32", {8, 8, 8}, data);
  add("remainder", "rem.s32 %r21, %r6, %r2;\n" + store_word, "shr.u64", {8, 8, 8},
      "an index that is not negative: one product for quotient and remainder");
  add("natural64", load_wide + "shr.u64 %rd20, %rd20, 1;\ndiv.u64 %rd21, %rd20, %rd3;\n" + store_wide, "mul.hi.u64",
      {50, 50, 50}, wide);
  add("unsigned64", load_wide + "div.u64 %rd21, %rd20, %rd3;\n" + store_wide, "mul.hi.u64", {50, 50, 50}, wide,
      all_divisors);
  add("signed64", load_wide + "div.s64 %rd21, %rd20, %rd3;\n" + store_wide, "mul.hi.s64", {50, 50, 50}, wide,
      all_divisors);
  rules.push_back({"divisor",
                   "float by literal",
                   "ld.global.f32 %f1, [%rd6];\ndiv.rn.f32 %f2, %f1, 0f40400000;\nst.global.f32 [%rd7], %f2;\n",
                   "fma.rn.f32",
                   {100, 100, 100},
                   "exact_divisors --all",
                   "Bits of floats of all exponents",
                   "what is left alone"});
}

std::string tree(const std::string& mode, const std::string& step) {
  std::string text = load_word;
  unsigned lane = 16;
  for (unsigned i = 0; i < 5; ++i, lane /= 2)
    text += "shfl.sync." + mode + ".b32 %r30|%p1, %r20, " + std::to_string(lane) + ", 31, -1;\n" + step +
            " %r20, %r20, %r30;\n";
  return text;
}

void add_warp(Rules& rules) {
  const std::string whole = "warp: what is no sum over all 32 lanes once stays";
  const std::string order = "warp: whatever the order of the offsets, each lane is in the total once";
  auto add = [&](const std::string& name, const std::string& body, const std::string& marker, std::array<int, 3> saves,
                 const std::string& proof, const std::string& refused) {
    rules.push_back({"warp", name, body, marker, saves, proof, "fuzz/launchtime", refused, "sm_80", "8.0", "", ""});
  };
  const std::string store = "st.global.u32 [%rd7], %r20;\n";
  for (const char* step :
       {"add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32", "xor.b32"})
    add(std::string("redux ") + step, tree("bfly", step) + store, "redux.sync.", {7, 7, 7}, order, whole);
  for (const char* step : {"min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32"}) {
    std::string body = "ld.global.f32 %f1, [%rd6];\n";
    unsigned lane = 16;
    for (unsigned i = 0; i < 5; ++i, lane /= 2)
      body += "mov.b32 %r20, %f1;\nshfl.sync.bfly.b32 %r30|%p1, %r20, " + std::to_string(lane) +
              ", 31, -1;\nmov.b32 %f2, %r30;\n" + step + " %f1, %f1, %f2;\n";
    add(std::string("redux ") + step, body + "st.global.f32 [%rd7], %f1;\n", "redux.sync.", {0, 0, 7}, order,
        "warp: minima and maxima of floats are redux where the target has it");
    rules.back().edges = "warp_floats.toml";
    rules.back().target = "sm_100a";
    rules.back().version = "8.6";
  }
  add("in lane 0",
      tree("down", "add.s32") + "and.b32 %r40, %r5, 31;\nsetp.ne.s32 %p2, %r40, 0;\n@%p2 bra END;\n" + store + "END:\n",
      "redux.sync.", {7, 7, 7}, order, "warp: shfl.down leaves the total in lane 0, who alone may read it");
  const std::string flag = "ld.global.u32 %r20, [%rd6];\nsetp.gt.u32 %p5, %r20, %r1;\nselp.u32 %r20, 1, 0, %p5;\n";
  const std::string votes = "warp: reductions of 0s and 1s are votes";
  for (const auto& [step, marker] :
       {std::pair("add.s32", "popc.b32"), std::pair("or.b32", "vote.sync.any"), std::pair("and.b32", "vote.sync.all")})
    add(std::string("vote ") + step, flag + tree("bfly", step).substr(load_word.size()) + store, marker, {7, 7, 7},
        order, votes);
  add("loop",
      load_word +
          "mov.u32 %r31, 16;\nLOOP:\nshfl.sync.bfly.b32 %r30|%p1, %r20, %r31, 31, -1;\nadd.s32 %r20, %r20, %r30;\n"
          "shr.u32 %r31, %r31, 1;\nsetp.ne.u32 %p2, %r31, 0;\n@%p2 bra LOOP;\n" +
          store,
      "redux.sync.", {4, 4, 4}, order,
      "warp: a loop that shuffles in five trips is a tree; one that does more or less is none");
  add("broadcast", tree("bfly", "add.s32") + "shfl.sync.idx.b32 %r20|%p1, %r20, 0, 31, -1;\n" + store, "redux.sync.",
      {8, 8, 8}, order, "warp: a broadcast of lane 0's total is the total");
  const std::string barrier = "warp: a barrier of a block that is one warp";
  add("barrier", "st.shared.u32 [tile], %r6;\nbar.sync 0;\nld.shared.u32 %r20, [tile];\n" + store, "bar.warp.sync",
      {0, 0, 0}, barrier, barrier); // shorter in time only
  rules.back().directive = ".maxntid 32, 1, 1\n";
  const std::string masks = "warp: masks of lanes, in any of their shapes";
  for (const auto& [name, body] :
       {std::pair("lt", "shl.b32 %r21, 1, %r20;\nadd.s32 %r21, %r21, -1;\n"),
        std::pair("eq", "shl.b32 %r21, 1, %r20;\n"),
        std::pair("le", "shl.b32 %r21, 2, %r20;\nadd.s32 %r21, %r21, -1;\n"),
        std::pair("ge", "shl.b32 %r21, -1, %r20;\n"), std::pair("gt", "shl.b32 %r21, -2, %r20;\n")})
    add(std::string("lanemask_") + name, std::string("and.b32 %r20, %r5, 31;\n") + body + store_word,
        std::string("%lanemask_") + name, {1, 1, 1}, masks, masks);
}

void add_packed(Rules& rules) {
  auto add = [&](const std::string& name, const std::string& body, const std::string& marker, std::array<int, 3> saves,
                 const std::string& proof, const std::string& edges, const std::string& refused, const char* target,
                 const char* version = "8.6") {
    rules.push_back({"packed", name, body, marker, saves, proof, edges, refused, target, version, "", ""});
  };
  const std::string quads =
      "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd6];\nld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd6+16];\n";
  for (const char* operation : {"add.f32", "sub.f32", "mul.f32", "fma.rn.f32"}) {
    const bool adds = std::string(operation) == "fma.rn.f32";
    std::string body = quads;
    for (unsigned i = 1; i <= 4; ++i)
      body += std::string(operation) + " %f" + std::to_string(10 + i) + ", %f" + std::to_string(i) + ", %f" +
              std::to_string(4 + i) + (adds ? ", %f" + std::to_string(4 + i) : "") + ";\n";
    body += "st.global.v4.f32 [%rd7], {%f11, %f12, %f13, %f14};\n";
    add(std::string("pairs of ") + operation, body, "x2", {0, 0, 2},
        "packed: neighbours of vector loads are added, multiplied and both in pairs", "fuzz/launchtime",
        "packed: no pair of operations of two kinds, of one that needs the other, or under a guard", "sm_100");
  }
  for (const char* operation : {"add", "sub", "mul", "min", "max"})
    add(std::string("half ") + operation,
        "ld.global.u16 %h1, [%rd6];\nld.global.u16 %h2, [%rd6+2];\ncvt.f32.f16 %f1, %h1;\ncvt.f32.f16 %f2, %h2;\n" +
            std::string(operation) + ".f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\nst.global.u16 [%rd7], %h3;\n",
        std::string(operation) + (std::string(operation).starts_with("m") && operation[1] != 'u' ? ".f16" : ".rn.f16"),
        {1, 1, 1}, "packed: two roundings of a sum are one, for all pairs of halves", "fuzz/launchtime",
        "packed: what is rounded otherwise, or more than twice, stays", "sm_80");
  for (const auto& [operation, extension, marker] :
       {std::array{"add.s32", "s32.s16", "add.u16x2"}, std::array{"min.s32", "s32.s16", "min.s16x2"},
        std::array{"max.s32", "s32.s16", "max.s16x2"}, std::array{"min.u32", "u32.u16", "min.u16x2"},
        std::array{"max.u32", "u32.u16", "max.u16x2"}}) {
    const std::string e = extension, o = operation;
    add(std::string("pairs of ") + marker,
        "ld.global.v2.u16 {%h1, %h2}, [%rd6];\nld.global.v2.u16 {%h3, %h4}, [%rd6+4];\ncvt." + e + " %r20, %h1;\ncvt." +
            e + " %r21, %h3;\n" + o + " %r22, %r20, %r21;\ncvt." + e + " %r23, %h2;\ncvt." + e + " %r24, %h4;\n" + o +
            " %r25, %r23, %r24;\ncvt.u16.u32 %h9, %r22;\ncvt.u16.u32 %h10, %r25;\nst.global.v2.u16 [%rd7], {%h9, "
            "%h10};\n",
        marker, {0, 4, 4}, by_prover, "packed: two 16-bit integers are one word, where the target has the operation",
        "packed: 16-bit integers are left alone one step outside of the patterns", "sm_90", "8.0");
  }
}

} // namespace

std::vector<FamilyRule> family_rules() {
  Rules rules;
  add_memory(rules);
  add_narrow(rules);
  add_divisor(rules);
  add_warp(rules);
  add_packed(rules);
  return rules;
}

std::string family_kernel(const FamilyRule& rule, const std::string& target) {
  const bool is_blackwell = target.starts_with("sm_10");
  return ".version " + (is_blackwell && rule.version < "8.6" ? "8.6" : rule.version) + "\n.target " + target +
         "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 w, "
         ".param .u64 wide, .param .u64 pitch)\n" +
         rule.directive +
         "{\n.reg .pred %p<9>;\n.reg .b16 %h<40>;\n.reg .b32 %r<60>;\n.reg .f32 %f<40>;\n.reg .b64 %rd<40>;\n"
         ".shared .align 4 .b8 tile[4];\n"
         "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [w];\n"
         "ld.param.u64 %rd3, [wide];\nld.param.u64 %rd4, [pitch];\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
         "mov.u32 %r5, %tid.x;\nmad.lo.s32 %r6, %r3, %r4, %r5;\nmul.wide.u32 %rd5, %r3, %r4;\ncvt.u64.u32 %rd8, %r5;\n"
         "add.s64 %rd5, %rd5, %rd8;\nmul.wide.u32 %rd9, %r6, 64;\nadd.s64 %rd6, %rd1, %rd9;\n"
         "add.s64 %rd7, %rd2, %rd9;\n" +
         rule.body + "ret;\n}\n";
}

} // namespace ptxrewrite::tests
