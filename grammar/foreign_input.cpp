#include "grammar/foreign_input.h"

#include <initializer_list>

namespace ptxrewrite::grammar {

namespace {

// Behind blanks and comments, which PTX and C++ have alike.
std::string_view skip_comments(std::string_view text) {
  for (;;) {
    const size_t begin = text.find_first_not_of(" \t\r\n\f\v");
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin);
    size_t end = 0;
    if (text.starts_with("//"))
      end = text.find('\n');
    else if (text.starts_with("/*"))
      end = text.find("*/", 2);
    else
      return text;
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + (text.starts_with("/*") ? 2 : 0));
  }
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words)
    if (text.find(word) != std::string_view::npos) return true;
  return false;
}

bool is_cubin(std::string_view elf) {
  constexpr unsigned machine_cuda = 190;
  return elf.size() >= 20 && static_cast<unsigned char>(elf[18]) == machine_cuda && elf[19] == 0;
}

} // namespace

std::string_view what_is_not_ptx(std::string_view text) {
  if (text.starts_with("\x7f"
                       "ELF"))
    return is_cubin(text)
               ? "this is a cubin, a GPU's machine code, not PTX: 'ptxrewrite opt --extract FILE' takes the PTX "
                 "that it carries if it was assembled with -lineinfo"
               : "this is a program or library (ELF), not PTX: 'ptxrewrite opt --extract FILE' takes the PTX in it";
  if (text.starts_with("\x50\xed\x55\xba"))
    return "this is a fat binary, not PTX: 'ptxrewrite opt --extract FILE' takes the PTX in it";
  if (text.starts_with("!<arch>\n"))
    return "this is a library of object files, not PTX: 'ptxrewrite opt --extract FILE' takes the PTX in it";
  if (text.starts_with("BC\xc0\xde")) return "this is LLVM bitcode, not PTX: 'llc -march=nvptx64 FILE' makes PTX of it";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "this is text in UTF-16, and PTX is ASCII: 'iconv -f UTF-16 -t ASCII FILE' converts it";
  // PTX begins with a directive.
  const std::string_view code = skip_comments(text.substr(0, 1 << 20));
  if (code.empty() || code.front() == '.') return {};
  if (contains_any(code, {"\ntarget triple", "\ntarget datalayout"}) || code.starts_with("; ModuleID"))
    return "this is LLVM IR, not PTX: 'llc -march=nvptx64 FILE' makes PTX of it";
  if (contains_any(code,
                   {"#include", "__global__", "__device__", "namespace ", "template", "int main(", "extern \"C\""}))
    return "this is CUDA or C++ source, not PTX: 'nvcc -ptx FILE -o -' compiles it to PTX";
  return {};
}

} // namespace ptxrewrite::grammar
