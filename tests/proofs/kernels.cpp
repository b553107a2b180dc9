// See kernels.h.
#include "tests/proofs/kernels.h"

#include <algorithm>
#include <regex>

namespace ptxrewrite::proofs {

namespace {

class Generator {
public:
  explicit Generator(std::mt19937_64& random) : random_(random) {}

  Lines kernel() {
    frame();
    for (unsigned i = 3 + below(3); i > 0; --i)
      statement(0);
    if (below(2)) branch(0);
    if (below(2)) loop();
    if (below(2)) floats();
    for (unsigned i = 1 + below(3); i > 0; --i)
      statement(0);
    if (below(3) == 0) branch(0);
    if (below(3) == 0)
      line("setp." + compare() + ".u32 %p3, " + any() + ", " + small() + ";"),
          line("@%p3 st.global.u32 [%rd4+8], " + any() + ";");
    line("st.global.u32 [%rd4], %r4;");
    line("st.global.u32 [%rd4+4], " + any() + ";");
    line("ret;");
    return std::move(lines_);
  }

private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  void line(std::string text) { lines_.push_back(std::move(text)); }
  std::string any() { return "%r" + std::to_string(1 + below(6)); }
  std::string target() { return "%r" + std::to_string(3 + below(4)); }
  std::string small() {
    constexpr uint32_t numbers[]{0, 1, 2, 3, 7, 8, 15, 16, 31, 100, 127, 128, 200, 254, 255, 256};
    return std::to_string(numbers[below(std::size(numbers))]);
  }
  std::string compare() {
    constexpr const char* words[]{"lt", "le", "gt", "ge", "eq", "ne"};
    return words[below(6)];
  }
  std::string sign() { return below(2) ? "u32" : "s32"; }

  void frame() {
    for (const char* text :
         {"ld.param.u64 %rd1, [in];", "ld.param.u64 %rd2, [out];", "ld.param.u32 %r3, [n];", "mov.u32 %r7, %tid.x;",
          "mov.u32 %r8, %ctaid.x;", "cvt.u64.u32 %rd3, %r7;", "add.s64 %rd3, %rd1, %rd3;"})
      line(text);
    line(below(4) == 0 ? "ld.global.s8 %r1, [%rd3];" : "ld.global.u8 %r1, [%rd3];");
    for (const char* text :
         {"cvt.u64.u32 %rd3, %r8;", "add.s64 %rd3, %rd1, %rd3;", "ld.global.u8 %r2, [%rd3+256];",
          "mad.lo.s32 %r9, %r8, 256, %r7;", "mul.wide.u32 %rd4, %r9, 128;", "add.s64 %rd4, %rd2, %rd4;",
          "mov.u32 %r4, %r1;", "mov.u32 %r5, %r2;", "add.s32 %r6, %r1, %r2;"})
      line(text);
  }

  void statement(unsigned bits) {
    const std::string to = target(), x = any(), y = any();
    switch (below(14)) {
    case 0:
      return line("add.s32 " + to + ", " + x + ", " + (below(2) ? y : small()) + ";");
    case 1:
      return line("sub.s32 " + to + ", " + x + ", " + y + ";");
    case 2:
      return line("mul.lo.s32 " + to + ", " + x + ", " + (below(3) ? small() : y) + ";");
    case 3:
    case 4: // masks that may have no effect if the number is known to be small
      return line("and.b32 " + to + ", " + x + ", " + std::to_string((1u << (bits != 0 ? bits : 1 + below(12))) - 1) +
                  ";");
    case 5:
      return line((below(2) ? "xor.b32 " : "or.b32 ") + to + ", " + x + ", " + (below(2) ? y : small()) + ";");
    case 6:
      return line("shl.b32 " + to + ", " + x + ", " + std::to_string(below(9)) + ";");
    case 7:
    case 8:
      return line("shr." + sign() + " " + to + ", " + x + ", " + std::to_string(below(9)) + ";");
    case 9:
      return line((below(2) ? "min." : "max.") + sign() + " " + to + ", " + x + ", " +
                  (bits != 0 ? std::to_string((1u << bits) - below(2)) : small()) + ";");
    case 10:
      line("setp." + compare() + "." + sign() + " %p1, " + x + ", " + small() + ";");
      return line("selp.b32 " + to + ", " + x + ", " + y + ", %p1;");
    case 11:
      line("setp." + compare() + "." + sign() + " %p1, " + x + ", " + y + ";");
      return line((below(2) ? "@%p1 add.s32 " : "@!%p1 add.s32 ") + to + ", " + to + ", " + y + ";");
    case 12:
      line((below(2) ? "cvt.u16.u32 %h1, " : "cvt.u8.u32 %h1, ") + x + ";");
      return line((below(2) ? "cvt.u32.u16 " : "cvt.s32.s16 ") + to + ", %h1;");
    default:
      return line((below(2) ? "div.u32 " : "rem.u32 ") + to + ", " + x + ", " + std::to_string(1 + below(20)) + ";");
    }
  }

  // Inside the branch, numbers that its condition bounds are masked and compared.
  void branch(unsigned depth) {
    const std::string label = "L" + std::to_string(labels_++);
    const unsigned bits = 2 + below(6);
    const std::string x = any(), bound = std::to_string((1u << bits) - below(2));
    line("setp." +
         std::string(below(2)   ? "ge.u32"
                     : below(2) ? "gt.u32"
                                : "ge.s32") +
         " %p2, " + x + ", " + bound + ";");
    line("@%p2 bra " + label + ";");
    line("and.b32 %r5, " + x + ", " + std::to_string((1u << bits) - 1) + ";");
    line("min." + sign() + " %r6, " + x + ", " + bound + ";");
    line("setp.le.s32 %p1, " + x + ", " + bound + ";");
    line("selp.b32 %r4, %r6, %r5, %p1;");
    for (unsigned i = below(3); i > 0; --i)
      statement(bits);
    if (depth == 0 && below(3) == 0) branch(1);
    if (below(2)) {
      // Uses its own addresses, so that the stored values stay visible.
      const unsigned place = 32 + 8 * stores_++;
      line("st.global.u32 [%rd4+" + std::to_string(place) + "], " + any() + ";");
      line("st.global.u32 [%rd4+" + std::to_string(place + 4) + "], %r5;");
    }
    line(label + ":");
  }

  // A loop with a literal trip count, or one from the low bits of a byte.
  void loop() {
    const std::string label = "L" + std::to_string(labels_++);
    const bool is_literal = below(2);
    const std::string last = std::to_string(2 + below(6));
    if (!is_literal) line("and.b32 %r10, " + any() + ", 7;");
    line("mov.u32 %r11, 0;");
    line(label + ":");
    line("min.u32 %r12, %r11, " + std::to_string(6 + below(3)) + ";");
    line("and.b32 %r13, %r11, " + std::string(below(2) ? "7" : "15") + ";");
    line("add.s32 %r4, %r4, %r12;");
    line("add.s32 %r5, %r13, " + any() + ";");
    if (below(2)) statement(3);
    line("add.s32 %r11, %r11, 1;");
    line("setp.lt." + sign() + " %p4, %r11, " + (is_literal ? last : "%r10") + ";");
    line("@%p4 bra " + label + ";");
    line("and.b32 %r6, %r11, " + std::string(below(2) ? "7" : "15") + ";");
    line("st.global.u32 [%rd4+20], %r11;");
  }

  void floats() {
    line("cvt.rn.f32.s32 %f1, " + any() + ";");
    line("cvt.rn.f32.u32 %f2, " + any() + ";");
    line(below(2) ? "add.rn.f32 %f3, %f1, %f2;" : "mul.rn.f32 %f3, %f1, 0f3DCCCCCD;");
    line(below(2) ? "fma.rn.f32 %f3, %f1, %f2, %f3;" : "sub.rn.f32 %f3, %f3, %f2;");
    line("st.global.f32 [%rd4+24], %f3;");
    line("st.global.f32 [%rd4+28], %f2;");
  }

  std::mt19937_64& random_;
  Lines lines_;
  unsigned labels_ = 0, stores_ = 0;
};

// Replaces the first match of `pattern` by `by`; returns nullopt without a match.
std::optional<std::string> replaced(const std::string& line, const char* pattern, const char* by) {
  std::string result = std::regex_replace(line, std::regex(pattern), by, std::regex_constants::format_first_only);
  return result == line ? std::nullopt : std::optional(std::move(result));
}

std::optional<std::string> other_constant(const std::string& line) {
  std::smatch found;
  if (line.starts_with("setp") || !std::regex_search(line, found, std::regex(", ([0-9]+);"))) return std::nullopt;
  return line.substr(0, static_cast<size_t>(found.position(1))) + std::to_string(std::stoul(found[1]) + 1) + ";";
}
std::optional<std::string> other_bound(const std::string& line) {
  std::smatch found;
  if (!line.starts_with("setp") || !std::regex_search(line, found, std::regex(", ([0-9]+);"))) return std::nullopt;
  return line.substr(0, static_cast<size_t>(found.position(1))) + std::to_string(std::stoul(found[1]) + 1) + ";";
}
std::optional<std::string> swapped_operands(const std::string& line) {
  if (line.starts_with("mad") || line.starts_with("fma")) return std::nullopt;
  return replaced(line, "(%[rf][0-9]+), (%[rf][0-9]+)(;|, %p)", "$2, $1$3");
}
std::optional<std::string> other_compare(const std::string& line) {
  for (auto [from, to] : {std::pair{"setp.lt", "setp.le"},
                          {"setp.le", "setp.lt"},
                          {"setp.gt", "setp.ge"},
                          {"setp.ge", "setp.gt"},
                          {"setp.eq", "setp.ne"},
                          {"setp.ne", "setp.eq"}})
    if (line.starts_with(from)) return to + line.substr(7);
  return std::nullopt;
}
std::optional<std::string> dropped_predicate(const std::string& line) {
  if (line.find("bra") != line.npos) return std::nullopt;
  return replaced(line, "^@!?%p[0-9] ", "");
}
std::optional<std::string> negated_predicate(const std::string& line) {
  return line.starts_with("@!") ? replaced(line, "^@!", "@") : replaced(line, "^@", "@!");
}
std::optional<std::string> wrong_shift(const std::string& line) {
  return line.starts_with("shl") ? replaced(line, "shl.b32", "shr.u32") : replaced(line, "shr.[us]32", "shl.b32");
}
std::optional<std::string> wrong_sign(const std::string& line) {
  if (line.find("mov") == 0 || line.find("ld.param") == 0 || line.find("add") != line.npos || line.find("sub") == 0 ||
      line.find("mul.lo") == 0 || line.find("mad") == 0 || line.find("cvt.u64") == 0 || line.find("div") == 0 ||
      line.find("rem") == 0 || line.starts_with("st") || line.starts_with("@"))
    return std::nullopt;
  if (line == "cvt.u32.u16 %r4, %h1;") return "cvt.s32.s16 %r4, %h1;";
  if (auto bytes = replaced(line, "\\.u8 %r", ".s8 %r")) return bytes;
  if (auto bytes = replaced(line, "\\.s8 %r", ".u8 %r")) return bytes;
  if (auto one = replaced(line, "\\.s32 ", ".u32 ")) return line.starts_with("cvt.s32") ? std::nullopt : one;
  return line.starts_with("cvt.u32") ? std::nullopt : replaced(line, "\\.u32 ", ".s32 ");
}
std::optional<std::string> wrong_width(const std::string& line) {
  if (auto one = replaced(line, "cvt.u8.u32", "cvt.u16.u32")) return one;
  if (auto one = replaced(line, "cvt.u16.u32", "cvt.u8.u32")) return one;
  return replaced(line, "mul.lo.s32 (%r[0-9]+), (%r[0-9]+), ([0-9]+);", "mul24.lo.s32 $1, $2, $3;");
}
// Moves a store to an address that no other store uses.
std::optional<std::string> wrong_address(const std::string& line) {
  if (auto one = replaced(line, "\\[%rd4\\]", "[%rd4+64]")) return one;
  std::smatch found;
  if (std::regex_search(line, found, std::regex("%rd4\\+([0-9]+)")))
    return line.substr(0, static_cast<size_t>(found.position(1))) + std::to_string(std::stoul(found[1]) + 64) +
           found.suffix().str();
  return replaced(line, "\\+256\\]", "+255]");
}
std::optional<std::string> removed_mask(const std::string& line) {
  return replaced(line, "and.b32 (%r[0-9]+), (%r[0-9]+), [0-9]+;", "mov.u32 $1, $2;");
}
std::optional<std::string> removed_limit(const std::string& line) {
  return replaced(line, "m[inax]{2}.[us]32 (%r[0-9]+), (%r[0-9]+), [0-9]+;", "mov.u32 $1, $2;");
}
std::optional<std::string> other_operation(const std::string& line) {
  for (auto [from, to] : {std::pair{"add.s32", "sub.s32"},
                          {"sub.s32", "add.s32"},
                          {"xor.b32", "or.b32"},
                          {"or.b32", "xor.b32"},
                          {"min.", "max."},
                          {"max.", "min."},
                          {"div.u32", "rem.u32"}})
    if (line.starts_with(from)) return to + line.substr(std::string(from).size());
  return std::nullopt;
}
std::optional<std::string> other_float_operation(const std::string& line) {
  if (auto one = replaced(line, "add.rn.f32", "sub.rn.f32")) return one;
  if (auto one = replaced(line, "sub.rn.f32", "add.rn.f32")) return one;
  return replaced(line, "mul.rn.f32", "div.rn.f32");
}
std::optional<std::string> other_rounding(const std::string& line) {
  return replaced(line, "\\.rn\\.f32", ".rz.f32");
}
// Equivalent everywhere: a change that a pass may make.
std::optional<std::string> same_by_other_words(const std::string& line) {
  if (auto one = replaced(line, "shl.b32 (%r[0-9]+), (%r[0-9]+), 3;", "mul.lo.s32 $1, $2, 8;")) return one;
  if (auto one = replaced(line, "setp.lt.([us]32) (%p[0-9]), (%r[0-9]+), (%r[0-9]+);", "setp.gt.$1 $2, $4, $3;"))
    return one;
  if (auto one = replaced(line, "setp.gt.([us]32) (%p[0-9]), (%r[0-9]+), ([1-9][0-9]*);", "setp.le.$1 $2, $4, $3;"))
    return std::nullopt;
  if (auto one = replaced(line, "and.b32 (%r[0-9]+), (%r[0-9]+), 255;", "bfe.u32 $1, $2, 0, 8;")) return one;
  if (auto one = replaced(line, "and.b32 (%r[0-9]+), (%r[0-9]+), 15;", "rem.u32 $1, $2, 16;")) return one;
  if (auto one = replaced(line, "and.b32 (%r[0-9]+), (%r[0-9]+), 7;", "bfe.u32 $1, $2, 0, 3;")) return one;
  if (auto one = replaced(line, "mul.lo.s32 (%r[0-9]+), (%r[0-9]+), 3;", "mad.lo.s32 $1, $2, 2, $2;")) return one;
  return replaced(line, "div.u32 (%r[0-9]+), (%r[0-9]+), 8;", "shr.u32 $1, $2, 3;");
}

} // namespace

Lines random_kernel(std::mt19937_64& random) {
  return Generator(random).kernel();
}

std::string text_of(const Lines& lines) {
  std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<5>;
	.reg .b16 %h<2>;
	.reg .b32 %r<14>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<5>;
)";
  for (const std::string& line : lines)
    text += line + "\n";
  return text + "}\n";
}

const std::vector<MutationKind>& mutation_kinds() {
  static const std::vector<MutationKind> kinds{{"wrong constant", other_constant},
                                               {"bound or trips off by one", other_bound},
                                               {"swapped operands", swapped_operands},
                                               {"wrong compare", other_compare},
                                               {"dropped predicate", dropped_predicate},
                                               {"negated predicate", negated_predicate},
                                               {"wrong shift", wrong_shift},
                                               {"wrong sign", wrong_sign},
                                               {"wrong width", wrong_width},
                                               {"store over a store", nullptr},
                                               {"wrong address", wrong_address},
                                               {"removed mask", removed_mask},
                                               {"removed limit", removed_limit},
                                               {"another operation", other_operation},
                                               {"another float operation", other_float_operation},
                                               {"another rounding", other_rounding},
                                               {"right: other words", same_by_other_words}};
  return kinds;
}

std::optional<Mutant> mutate(const Lines& lines, const MutationKind& kind, std::mt19937_64& random) {
  std::vector<Mutant> made;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (kind.change == nullptr) {
      if (!lines[i].starts_with("st.") || !lines[i + 1].starts_with("st.")) continue;
      // To one address, where the second value remains; or to two.
      Mutant mutant{lines, i};
      std::swap(mutant.lines[i], mutant.lines[i + 1]);
      made.push_back(std::move(mutant));
    } else if (std::optional<std::string> changed = kind.change(lines[i])) {
      made.push_back({lines, {}});
      made.back().lines[i] = *std::move(changed);
    }
  }
  if (made.empty()) return std::nullopt;
  return std::move(made[random() % made.size()]);
}

} // namespace ptxrewrite::proofs
