#include "grammar/foreign_input.h"

#include <initializer_list>

namespace ptxrewrite::grammar {

namespace {

// Skips blanks and comments, which PTX and C++ have in common.
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

// Does a line begin with it?
bool has_line(std::string_view text, std::string_view begin) {
  for (size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1))
    if (at == 0 || text[at - 1] == '\n') return true;
  return false;
}

bool is_cubin(std::string_view elf) {
  constexpr unsigned machine_cuda = 190;
  return elf.size() >= 20 && static_cast<unsigned char>(elf[18]) == machine_cuda && elf[19] == 0;
}

} // namespace

bool begins_as_ptx(std::string_view text) {
  return skip_comments(text.substr(0, 1 << 20)).starts_with(".version");
}

bool is_launch_file(std::string_view text) {
  return has_line(text, "[[launch]]") || has_line(text, "ptx = ") || has_line(text, "ptx=");
}

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
  if (text.starts_with("\x1f\x8b"))
    return "this is a gzip file, not PTX: 'gunzip -c FILE | ptxrewrite opt -' reads what is in it";
  // PTX begins with a directive.
  const std::string_view code = skip_comments(text.substr(0, 1 << 20));
  if (code.starts_with(".headerflags") || (!code.starts_with('.') && contains_any(code, {"/*0000*/"})))
    return "this is a listing of machine code (SASS), not PTX: PTX is what 'cuobjdump -ptx PROGRAM' shows, or "
           "'ptxrewrite "
           "opt --extract PROGRAM' takes";
  if (code.empty() || code.front() == '.') return {};
  if (code.starts_with("Fatbin "))
    return "this is what cuobjdump prints: its PTX begins at .version; 'ptxrewrite opt --extract PROGRAM' takes it out "
           "of "
           "the program";
  if (code.starts_with('{'))
    return "this is JSON, not PTX: a side file (X.launch.json) lies beside its module X.ptx and is read with it";
  if (is_launch_file(code))
    return "this is a launch file, not PTX: 'ptxrewrite run FILE' launches what it says; other commands take the PTX "
           "that "
           "its key ptx names";
  if (contains_any(code, {"\ntarget triple", "\ntarget datalayout"}) || code.starts_with("; ModuleID"))
    return "this is LLVM IR, not PTX: 'llc -march=nvptx64 FILE' makes PTX of it";
  if (contains_any(code,
                   {"#include", "__global__", "__device__", "namespace ", "template", "int main(", "extern \"C\""}))
    return "this is CUDA or C++ source, not PTX: 'nvcc -ptx FILE -o -' compiles it to PTX";
  return {};
}

} // namespace ptxrewrite::grammar
