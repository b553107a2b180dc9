// Defines a transform (pass), its options and its context, and the registry of all passes.
#pragma once

#include "ir/core/module.h"
#include "support/result.h"
#include "transforms/manager/analyses.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms {

class Assemblies;

// Whether a pass did anything. "unchanged" must mean that the printed function is the same to the byte; the pass
// manager checks it.
enum class [[nodiscard]] Change : bool{unchanged, changed};

enum class OutputForm : uint8_t { legal, annotated, hardware };

// One entry of the assumption ledger: a condition that a rewrite needs, and how it is established.
enum class Discharge : uint8_t { proved, launch_checked, in_kernel, assumed };
struct Obligation {
  std::string function;
  std::string statement; // readable: "0 <= 4*P1 + 4*tid.x < 2^31"
  std::string raised_by; // pass and reason
  Discharge discharge = Discharge::proved;
  std::string reason; // how it was proved, or the launch predicate, or the --assume word
  SourceRange range;  // of the instruction that raised it
  std::string exact;  // the statement as ir/analysis/linear/exact_range.h writes it, for proofs; empty if there is none
};

// Options of one pass in a pipeline: `r2d2(limit=8,persistent)`. A bare name and the values 1, true, on and yes are a
// set flag. Reading an option that is absent or not a number returns the fallback.
class PassOptions {
public:
  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  bool flag(std::string_view name) const;
  std::string_view text(std::string_view name, std::string_view fallback) const;
  int64_t number(std::string_view name, int64_t fallback) const;
  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }

private:
  std::map<std::string, std::string, std::less<>> values_;
};

// A message of a pass to the user about one function: choices, refusals, and the reasons. Converts from a plain string.
struct Remark {
  std::string text;
  SourceRange range; // of the instruction that the remark is about, if any
  std::string pass;  // both are filled in by the pass manager
  std::string function;

  Remark(std::string what, SourceRange where = {}) : text(std::move(what)), range(where) {}
  Remark(const char* what) : text(what) {}
};

// The inputs and outputs of a pass, besides the function.
struct PassContext {
  OutputForm form = OutputForm::legal;
  PassOptions options;
  std::vector<std::string> assumptions;      // --assume words
  bool may_run_ptxas = false;                // to measure the cost of rewritten functions
  Assemblies* assemblies = nullptr;          // runs ptxas on behalf of the pass; nullptr: each candidate is assembled
                                             // at once
  std::map<std::string, int64_t> statistics; // "r2d2.linear-registers" and the like, summed over functions
  std::vector<Obligation> ledger;
  std::vector<Remark> remarks; // for --explain
  // New functions for the module, complete and in SSA form. The pass manager converts them out of SSA form and inserts
  // them before the function that the pass ran on. A pass never adds functions to the module itself.
  std::vector<std::unique_ptr<ir::Function>> additions;
  AnalysisCache analyses; // of the function that the pass runs on; the pass manager empties it between functions

  bool assumes(std::string_view word) const;
  // Does any instruction or initialiser of the module name this function (a call, its address for a launch from device
  // code)? The first call searches the module; later calls, also those of contexts made by beside(), use its result.
  bool is_referenced(const ir::Function& function);

  // A context with the same settings for another function of the module, such as a kept original; without results.
  PassContext beside();

private:
  struct References {
    const ir::Module* module = nullptr; // that was searched
    std::set<const ir::Function*> functions;
  };
  std::shared_ptr<References> references_ = std::make_shared<References>();
};

// A flag may be given without a value; a number is a decimal integer, checked when the pipeline is parsed.
enum class PassOptionKind : uint8_t { text, flag, number };

struct PassOptionDescription {
  std::string_view name;
  std::string_view doc;
  PassOptionKind kind = PassOptionKind::text;
};

// A position in the source text and the text to insert there; see transforms/manager/text_insertion.h.
struct TextInsertion {
  uint32_t offset = 0;
  std::string text;
};

struct PassDescription {
  std::string_view name;
  std::string_view doc; // one line
  Change (*run)(ir::Function&, PassContext&) = nullptr;
  std::vector<PassOptionDescription> options = {};
  // For passes whose annotated form only adds hints: returns the same hints for a function as read, as insertions into
  // its source, so that the rest of the text stays as it is. Does not modify the function.
  std::vector<TextInsertion> (*annotate)(const ir::Function&, PassContext&) = nullptr;
};

// All registered passes, sorted by name. Registering another pass, as a loaded pass library does, invalidates pointers
// into the list. A second pass with a registered name is refused: the first one stays.
const std::vector<PassDescription>& all_passes();
const PassDescription* find_pass(std::string_view name);

// What a pass library and the program that loads it agree about: the version, the order of opcodes and other words, and
// the sizes of what passes reach. Two compilations with the same figures may exchange passes.
//
// The figures are template arguments of what passes register with, and so part of the name that a library asks the
// dynamic linker for: a library of another interface is refused before any of its code runs.
inline constexpr unsigned interface_major = 0; // of the project's version, checked by CMake
inline constexpr unsigned interface_minor = 1;

consteval uint64_t interface_fingerprint() {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  const auto add = [&](uint64_t number) { hash = (hash ^ number) * 0x100000001b3; };
  const auto add_text = [&](const char* text) {
    for (; *text; ++text)
      add(static_cast<unsigned char>(*text));
    add(0);
  };
#define OPCODE(name, ...) add_text(#name);
#define EXTENSION(name, ...) add_text(#name);
#define FORM(...)
#define EXTENSION_FORM(...)
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef EXTENSION
#undef FORM
#undef EXTENSION_FORM
#define SCALAR_TYPE(name, bits, kind) add_text(#name);
#include "ir/isa/types.def"
#undef SCALAR_TYPE
#define MODIFIER(name, spelling, ordering) add_text(#name);
#include "ir/isa/modifiers.def"
#undef MODIFIER
#define OPERATION(name, result) add_text(#name);
#include "ir/isa/operations.def"
#undef OPERATION
  for (const size_t size :
       {sizeof(ir::Module), sizeof(ir::Function), sizeof(ir::Instruction), sizeof(ir::Operand), sizeof(ir::Form),
        sizeof(AnalysisCache), sizeof(PassContext), sizeof(PassOptions), sizeof(Obligation), sizeof(Remark),
        sizeof(TextInsertion), sizeof(PassDescription), sizeof(std::string), sizeof(std::vector<int>)})
    add(size);
  return hash;
}

// Defined for the program's own figures alone (pass.cpp).
template <unsigned major, unsigned minor, uint64_t fingerprint> struct RegisterPassOf {
  explicit RegisterPassOf(PassDescription description);
};
using RegisterPass = RegisterPassOf<interface_major, interface_minor, interface_fingerprint()>;

} // namespace ptxrewrite::transforms
