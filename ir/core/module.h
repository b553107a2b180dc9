// One PTX file: header, then items in the order of the text.
#pragma once

#include "ir/core/function.h"
#include "support/source.h"

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::ir {

enum class ItemKind : uint8_t {
  function, // id = FunctionId; definition or prototype
  variable, // id = VariableId of Module::variables
  verbatim, // .file, .section, .alias, .pragma, @@DWARF, ...: text as in the source (`text`)
};

struct Item {
  ItemKind kind = ItemKind::verbatim;
  uint32_t id = 0;
  std::string_view text; // verbatim items: points into the source or the string pool
  SourceRange range;
};

class Module {
public:
  Module() = default;
  explicit Module(const SourceFile& file) : source(file) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  SourceFile source;
  StringPool strings;

  // --- header ---
  uint16_t version_major = 0;
  uint16_t version_minor = 0;
  std::vector<Symbol> targets; // sm_80, debug, texmode_unified ...
  uint16_t address_size = 0;   // 32 or 64; 0 = not stated
  bool hardware_form = false;  // first line `//@ ptxrewrite hardware 1`

  // --- items ---
  std::vector<Item> items;
  Table<VariableId, Variable> variables;
  std::vector<std::unique_ptr<Function>> functions; // indexed by FunctionId
  SpanPool<uint64_t> dimensions;
  SpanPool<Operand> initialisers;

  Function& function(FunctionId id) { return *functions[id.index()]; }
  const Function& function(FunctionId id) const { return *functions[id.index()]; }
  FunctionId add_function() {
    functions.push_back(std::make_unique<Function>(*this));
    return FunctionId(static_cast<uint32_t>(functions.size() - 1));
  }
  std::string_view text(Symbol symbol) const { return strings.text(symbol); }
  Symbol intern(std::string_view text_to_intern) { return strings.intern(text_to_intern); }
};

} // namespace ptxrewrite::ir
