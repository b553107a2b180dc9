// The meaning of names while a module is read: nested scopes of registers, variables, functions and labels.
//
// `.reg .b32 %r<4000000000>;` declares a range at no cost; a register gets its ValueId on first use. A numbered name is
// looked up as prefix + number, so that `%r17` need not be interned.
#pragma once

#include "ir/core/module.h"

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::grammar {

enum class NameKind : uint8_t {
  register_,       // index = ValueId, created on first use
  register_range,  // prefix<count>; index into the tables of numbered values
  local_variable,  // index = VariableId of the function
  module_variable, // index = VariableId of the module
  function,        // index = FunctionId
  block,           // index = BlockId
  label_table,     // index = LabelTableId
  prototype,       // index = PrototypeId
};

constexpr uint32_t none = UINT32_MAX;

struct Binding {
  NameKind kind = NameKind::register_;
  ir::ScalarType type = ir::ScalarType::none;
  uint8_t vector_width = 1;
  ir::RegisterClass register_class = ir::RegisterClass::general;
  uint32_t index = none;
  uint32_t count = 0;       // register_range
  uint32_t depth = 0;       // of its scope
  uint32_t shadowed = none; // the outer binding of the same name
  Symbol name;
  SourceRange range;
};

// `%r17` = prefix `%r` and number 17. Without a number the whole text is the prefix.
struct SplitName {
  std::string_view prefix;
  std::optional<uint32_t> number;
};
SplitName split_name(std::string_view text);

class Names {
public:
  explicit Names(ir::Module& module) : module_(module) {}

  // A name that could not be resolved at its use, usually a label.
  enum class Wants : uint8_t { anything, block, label_table, call_table };
  struct Pending {
    uint32_t operand = 0; // index in the function's operand pool
    Symbol name;
    uint32_t previous = none; // earlier pending use of the same name
    SourceRange range;
    Wants wants = Wants::anything;
    bool resolved = false;
  };

  void begin_function(ir::Function& function);
  // enter_stream() starts a nested function inside braces, which sees the variables and functions outside, but neither
  // registers nor labels. leave_stream() returns to the body and drops names that are still unresolved.
  void enter_stream(ir::Function& stream);
  void leave_stream(ir::Function& body, size_t first_pending);
  // Removes the names that the function declared; pending() stays until the next function.
  void end_function();
  void open_scope();
  // Calls `resolve(const Pending&, const Binding&)` for pending names that this scope declares.
  template <class Resolve> void close_scope(Resolve&& resolve);
  uint32_t depth() const { return static_cast<uint32_t>(scopes_.size()); }

  // Declares a name in the current scope. Returns the existing binding if the scope already declares it.
  const Binding* declare(Symbol name, std::string_view text, Binding binding);
  const Binding* declare_range(Symbol prefix, Binding binding);
  // Changes the entity that a name refers to (a function's definition after its prototype).
  void rebind(Symbol name, uint32_t index);

  // The innermost binding; nullptr if there is none.
  struct Found {
    const Binding* binding = nullptr;
    ir::ValueId value; // registers only
  };
  Found lookup(std::string_view text);
  const Binding* find_plain(std::string_view text) const;

  void add_pending(uint32_t operand, Symbol name, SourceRange range, Wants wants);
  void mark_resolved(size_t pending) { pending_[pending].resolved = true; }
  std::span<const Pending> pending() const { return pending_; }

  // Like module.intern, with a small cache.
  Symbol intern(std::string_view text);

private:
  struct SymbolState {
    uint32_t plain = none;   // innermost binding
    uint32_t range = none;   // innermost register range with this prefix
    uint32_t pending = none; // latest pending use
    bool numbered = false;   // some plain name consists of this prefix and a number
  };
  struct Scope {
    uint32_t first_binding = 0;
    uint32_t first_pending = 0;
  };
  // Values of a register range: `dense` while used numbers are dense, otherwise in `sparse_`.
  struct NumberedValues {
    std::vector<ir::ValueId> dense;
    uint32_t used = 0;
    uint32_t serial = 0; // identifies this range in `sparse_`
  };

  SymbolState& state(Symbol symbol) {
    if (symbol.index() >= states_.size()) states_.resize(std::max<size_t>(module_.strings.size(), symbol.index() + 1));
    return states_[symbol.index()];
  }
  const SymbolState* peek(Symbol symbol) const {
    return symbol && symbol.index() < states_.size() ? &states_[symbol.index()] : nullptr;
  }
  Symbol find(std::string_view text) const;
  bool is_hidden(const Binding& binding) const;
  void remove_bindings_from(uint32_t first);
  ir::ValueId numbered_value(Binding& binding, uint32_t number);
  ir::ValueId make_value(const Binding& binding, uint32_t number);

  ir::Module& module_;
  ir::Function* function_ = nullptr;
  uint32_t stream_depth_ = 0;       // registers and labels of outer scopes below this depth are hidden
  std::vector<SymbolState> states_; // by Symbol
  std::vector<Binding> bindings_;   // a stack
  std::vector<Scope> scopes_;
  std::vector<Pending> pending_;
  std::vector<NumberedValues> numbered_; // a stack, like the ranges in bindings_
  uint32_t next_serial_ = 0;
  std::unordered_map<uint64_t, ir::ValueId> sparse_;
  std::vector<uint32_t> module_registers_; // bindings of module-scope registers (old PTX)
  static constexpr size_t cache_size = 2048;
  mutable std::vector<Symbol> cache_ = std::vector<Symbol>(cache_size); // recently used texts, by hash
};

template <class Resolve> void Names::close_scope(Resolve&& resolve) {
  Scope scope = scopes_.back();
  for (uint32_t i = scope.first_binding; i < bindings_.size(); ++i) {
    const Binding& binding = bindings_[i];
    if (binding.kind == NameKind::register_ || binding.kind == NameKind::register_range) continue;
    uint32_t& latest = state(binding.name).pending;
    while (latest != none && latest >= scope.first_pending) {
      pending_[latest].resolved = true;
      resolve(std::as_const(pending_[latest]), binding);
      latest = pending_[latest].previous;
    }
  }
  remove_bindings_from(scope.first_binding);
  scopes_.pop_back();
}

} // namespace ptxrewrite::grammar
