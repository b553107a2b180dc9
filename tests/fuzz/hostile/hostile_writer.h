// Writes the text of a hostile kernel. Registers are named by their type as in tests/isa/statement.h: %p .pred, %c .b8,
// %h .b16, %r .b32, %l .b64, %f .f32, %d .f64, %q .b128. %l0 and %l1 point to buffers, %l2 to 16 bytes in the second
// one that belong to this thread alone, %r0 is %tid.x, %r1 the kernel's number of elements, %r2 %ctaid.x; features of
// defined kernels do not write to them.
#pragma once

#include "tests/fuzz/hostile/hostile_kernel.h"
#include "tests/fuzz/random.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

class HostileWriter {
public:
  HostileWriter(Random& source, const HostileMaterial& from, bool defined)
      : random(source), material(from), is_defined(defined) {}

  Random& random;
  const HostileMaterial& material;
  const bool is_defined;    // restricted to features permitted by is_defined
  std::string module;       // declarations before the kernel
  std::string declarations; // at the start of the body
  std::string body;

  template <class... Arguments> void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    body += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  void raw(const std::string& text) { body += "  " + text + "\n"; }
  void place(const std::string& label) { body += label + ":\n"; }

  std::string source(char kind) { return fmt::format("%{}{}", kind, random.below(8)); }
  std::string target(char kind) {
    return fmt::format("%{}{}", kind, is_defined ? 3 + random.below(5) : random.below(8));
  }
  std::string guard() {
    if (!random.one_in(3)) return "";
    return fmt::format("@{}%p{} ", random.one_in(2) ? "!" : "", random.below(8));
  }
  std::string label() { return fmt::format("L{}", labels_++); }
  std::string name(std::string_view prefix) { return fmt::format("{}_{}", prefix, names_++); }
  // An edge value: 0, 1, -1, powers of two and their neighbours.
  uint64_t edge();
  // Near the ends of a window of generic addresses, 0 or 2^64.
  uint64_t wild_address();
  // "[%l5+16]" that this thread may access for 16 bytes.
  std::string own_cell() { return fmt::format("[%l2+{}]", 4 * random.below(1)); }
  // A statement with its registers replaced by those of other instructions of the kernel.
  std::string fold_registers(std::string_view statement);

private:
  unsigned labels_ = 0, names_ = 0;
};

struct HostileFeature {
  const char* name;
  void (*write)(HostileWriter&);
  bool may_be_defined = false; // satisfies HostileKernel::is_defined if the writer does
};
std::span<const HostileFeature> value_features();
std::span<const HostileFeature> memory_features();
std::span<const HostileFeature> declaration_features();
std::span<const HostileFeature> control_features();
std::span<const HostileFeature> cooperation_features();
std::span<const HostileFeature> system_features();

// Mutations that mostly preserve validity: another register, an edge number, a repeated line, a removed line, two
// exchanged lines.
std::string mutate_alike(std::string_view text, Random& random);

} // namespace ptxrewrite::fuzz
