// Alternative spellings of the same computation, by patterns on the text.
#include "tests/paper/versions.h"

#include <regex>

namespace ptxrewrite::tests {
namespace {

struct Rewrite {
  const char* name;
  const char* pattern;
  const char* replacement; // {n} is a unique number
};

constexpr Rewrite rewrites[] = {
    {"shift for a wide multiply", R"(mul\.wide\.s32\s+(%\w+), (%\w+), 4;)",
     "cvt.s64.s32 %extra_d{n}, $2; shl.b64 $1, %extra_d{n}, 2;"},
    {"product and sum apart", R"(fma\.rn\.f32\s+(%\w+), (%\w+), (%\w+), (%\w+);)",
     "mul.rn.f32 %extra_f{n}, $2, $3; add.rn.f32 $1, %extra_f{n}, $4;"},
    {"multiply-add in two", R"(mad\.lo\.s32\s+(%\w+), (%\w+), (%\w+), (%\w+);)",
     "mul.lo.s32 %extra_r{n}, $2, $3; add.s32 $1, %extra_r{n}, $4;"},
    {"compare and select for a minimum", R"((max|min)\.s32\s+(%\w+), (%\w+), (-?%?\w+);)",
     "setp.lt.s32 %extra_p{n}, $3, $4; selp.b32 $2, $3, $4, %extra_p{n};"},
    {"exact reciprocal", R"(div\.rn\.f32\s+(%\w+), (%\w+), (%\w+);)",
     "rcp.rn.f32 %extra_f{n}, $3; mul.f32 $1, %extra_f{n}, $2;"},
    {"fast division", R"(div\.rn\.f32\s+(%\w+), (%\w+), (%\w+);)", "div.approx.f32 $1, $2, $3;"},
    {"volatile loads", R"(ld\.shared\.f32)", "ld.volatile.shared.f32"},
    {"an addition to what is stored", R"(st\.global\.f32\s+\[(%\w+)(\+\d+)?\], (%\w+);)",
     "add.f32 %extra_f{n}, $3, $3; st.global.f32 [$1$2], %extra_f{n};"},
    {"conversion of indices", R"(cvt\.s64\.s32\s+(%\w+), (%\w+);)",
     "shr.s32 %extra_r{n}, $2, 31; mov.b64 $1, {$2, %extra_r{n}};"},
};

std::string apply(const Rewrite& rewrite, const std::string& text) {
  std::regex pattern(rewrite.pattern);
  std::string out;
  unsigned number = 0;
  auto begin = std::sregex_iterator(text.begin(), text.end(), pattern);
  size_t position = 0;
  for (auto match = begin; match != std::sregex_iterator(); ++match) {
    out += text.substr(position, static_cast<size_t>(match->position()) - position);
    std::string replaced = match->format(rewrite.replacement);
    for (size_t place; (place = replaced.find("{n}")) != std::string::npos;)
      replaced.replace(place, 3, std::to_string(number));
    ++number;
    out += replaced;
    position = static_cast<size_t>(match->position() + match->length());
  }
  if (number == 0) return {};
  out += text.substr(position);
  std::string count = "<" + std::to_string(number) + ">; ";
  std::string declarations = "\n.reg .b64 %extra_d" + count + ".reg .b32 %extra_r" + count + ".reg .f32 %extra_f" +
                             count + ".reg .pred %extra_p" + count + "\n";
  // After the brace that opens the body of each function.
  for (size_t body = out.find("\n{"); body != std::string::npos; body = out.find("\n{", body + 1))
    out.insert(body + 2, declarations);
  return out;
}

} // namespace

std::vector<Version> versions_of(const std::string& text) {
  std::vector<Version> versions;
  for (const Rewrite& rewrite : rewrites)
    if (std::string changed = apply(rewrite, text); !changed.empty()) versions.push_back({rewrite.name, changed});
  return versions;
}

std::string original_of(const std::string& kernel, const std::function<bool(const std::string&)>& is_original) {
  std::string name = kernel;
  for (size_t end; !is_original(name) && (end = name.rfind("__")) != std::string::npos;)
    name.resize(end);
  return name;
}

} // namespace ptxrewrite::tests
