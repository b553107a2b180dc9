#include "grammar/names.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::grammar {

SplitName split_name(std::string_view text) {
  size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
    --digits;
  if (digits == text.size() || digits == 0) return {text, std::nullopt};
  uint64_t number = 0;
  for (char c : text.substr(digits)) {
    number = number * 10 + static_cast<uint64_t>(c - '0');
    if (number >= ir::Value::no_number) return {text, std::nullopt};
  }
  return {text.substr(0, digits), static_cast<uint32_t>(number)};
}

namespace {
// Register and label names differ mostly in their first or last characters.
size_t quick_hash(std::string_view text) {
  uint64_t head = 0, tail = 0;
  size_t count = std::min<size_t>(text.size(), 8);
  std::memcpy(&head, text.data(), count);
  std::memcpy(&tail, text.data() + text.size() - count, count);
  uint64_t mixed = (head * 0x9e3779b97f4a7c15ull ^ tail * 0xc2b2ae3d27d4eb4full) + text.size() * 0x165667b19e3779f9ull;
  return static_cast<size_t>(mixed ^ mixed >> 32);
}
} // namespace

Symbol Names::find(std::string_view text) const {
  Symbol& cached = cache_[quick_hash(text) % cache_size];
  if (cached && module_.strings.text(cached) == text) return cached;
  Symbol found = module_.strings.find(text);
  if (found) cached = found;
  return found;
}

Symbol Names::intern(std::string_view text) {
  Symbol& cached = cache_[quick_hash(text) % cache_size];
  if (!cached || module_.strings.text(cached) != text) cached = module_.strings.intern(text);
  return cached;
}

void Names::begin_function(ir::Function& function) {
  function_ = &function;
  pending_.clear();
  open_scope();
}

void Names::enter_stream(ir::Function& stream) {
  function_ = &stream;
  open_scope();
  stream_depth_ = depth();
}

void Names::leave_stream(ir::Function& body, size_t first_pending) {
  while (pending_.size() > first_pending) {
    state(pending_.back().name).pending = pending_.back().previous;
    pending_.pop_back();
  }
  function_ = &body;
  stream_depth_ = 0;
}

bool Names::is_hidden(const Binding& binding) const {
  if (binding.depth >= stream_depth_) return false;
  switch (binding.kind) {
  case NameKind::local_variable:
  case NameKind::module_variable:
  case NameKind::function:
    return false;
  default:
    return true;
  }
}

void Names::end_function() {
  stream_depth_ = 0;
  for (const Pending& pending : pending_)
    state(pending.name).pending = none;
  while (!scopes_.empty()) {
    remove_bindings_from(scopes_.back().first_binding);
    scopes_.pop_back();
  }
  for (uint32_t binding : module_registers_) {
    if (bindings_[binding].kind == NameKind::register_range)
      numbered_[bindings_[binding].index] = {{}, 0, next_serial_++};
    else
      bindings_[binding].index = none;
  }
  sparse_.clear();
  function_ = nullptr;
}

void Names::open_scope() {
  scopes_.push_back({static_cast<uint32_t>(bindings_.size()), static_cast<uint32_t>(pending_.size())});
}

void Names::remove_bindings_from(uint32_t first) {
  while (bindings_.size() > first) {
    const Binding& binding = bindings_.back();
    SymbolState& symbol = state(binding.name);
    if (binding.kind == NameKind::register_range) {
      symbol.range = binding.shadowed;
      numbered_.pop_back(); // ranges form a stack, too
    } else {
      symbol.plain = binding.shadowed;
    }
    bindings_.pop_back();
  }
}

const Binding* Names::declare(Symbol name, std::string_view text, Binding binding) {
  binding.name = name;
  binding.depth = depth();
  SplitName split = split_name(text);
  if (split.number) {
    Symbol prefix = intern(split.prefix);
    SymbolState& prefix_state = state(prefix);
    prefix_state.numbered = true;
    if (prefix_state.range != none) {
      const Binding& range = bindings_[prefix_state.range];
      if (range.depth == binding.depth && *split.number < range.count &&
          text.size() == split.prefix.size() + std::to_string(*split.number).size())
        return &range;
    }
  }
  SymbolState& symbol = state(name);
  if (symbol.plain != none && bindings_[symbol.plain].depth == binding.depth) return &bindings_[symbol.plain];
  binding.shadowed = symbol.plain;
  symbol.plain = static_cast<uint32_t>(bindings_.size());
  bindings_.push_back(binding);
  if (binding.depth == 0 && binding.kind == NameKind::register_) module_registers_.push_back(symbol.plain);
  return nullptr;
}

const Binding* Names::declare_range(Symbol prefix, Binding binding) {
  binding.name = prefix;
  binding.depth = depth();
  SymbolState& symbol = state(prefix);
  if (symbol.range != none) {
    const Binding& other = bindings_[symbol.range];
    if (other.depth == binding.depth && other.count > 0 && binding.count > 0) return &other;
  }
  if (symbol.numbered) {
    // Some plain name consists of this prefix and a number; check whether it is in this scope.
    uint32_t first = scopes_.empty() ? 0 : scopes_.back().first_binding;
    for (uint32_t i = first; i < bindings_.size(); ++i) {
      const Binding& other = bindings_[i];
      if (other.kind == NameKind::register_range) continue;
      SplitName split = split_name(module_.text(other.name));
      if (split.number && *split.number < binding.count && split.prefix == module_.text(prefix)) return &other;
    }
  }
  binding.index = static_cast<uint32_t>(numbered_.size());
  numbered_.push_back({{}, 0, next_serial_++});
  binding.shadowed = symbol.range;
  symbol.range = static_cast<uint32_t>(bindings_.size());
  bindings_.push_back(binding);
  if (binding.depth == 0) module_registers_.push_back(symbol.range);
  return nullptr;
}

void Names::rebind(Symbol name, uint32_t index) {
  bindings_[state(name).plain].index = index;
}

const Binding* Names::find_plain(std::string_view text) const {
  const SymbolState* symbol = peek(find(text));
  return symbol && symbol->plain != none ? &bindings_[symbol->plain] : nullptr;
}

Names::Found Names::lookup(std::string_view text) {
  SplitName split = split_name(text);
  uint32_t range = none;
  uint32_t plain = none;
  if (split.number) {
    if (const SymbolState* prefix = peek(find(split.prefix))) {
      range = prefix->range;
      // An inner range may be too short for this number; try the outer ones.
      while (range != none && *split.number >= bindings_[range].count)
        range = bindings_[range].shadowed;
      if (prefix->numbered)
        if (const SymbolState* whole = peek(find(text))) plain = whole->plain;
    }
  } else if (const SymbolState* whole = peek(find(text))) {
    plain = whole->plain;
  }
  if (range != none && is_hidden(bindings_[range])) range = none;
  if (plain != none && is_hidden(bindings_[plain])) plain = none;
  if (range != none && (plain == none || bindings_[range].depth > bindings_[plain].depth)) {
    if (!function_) return {&bindings_[range], {}};
    ir::ValueId value = numbered_value(bindings_[range], *split.number);
    return {&bindings_[range], value};
  }
  if (plain == none) return {};
  Binding& binding = bindings_[plain];
  if (binding.kind != NameKind::register_) return {&binding, {}};
  if (binding.index == none && function_) binding.index = make_value(binding, ir::Value::no_number).index();
  return {&binding, ir::ValueId(binding.index)};
}

ir::ValueId Names::make_value(const Binding& binding, uint32_t number) {
  ir::Value value;
  value.type = binding.type;
  value.vector_width = binding.vector_width;
  value.register_class = binding.register_class;
  value.name = binding.name;
  value.number = number;
  return function_->values.add(value);
}

ir::ValueId Names::numbered_value(Binding& binding, uint32_t number) {
  NumberedValues& values = numbered_[binding.index];
  if (number < values.dense.size() && values.dense[number]) return values.dense[number];
  const uint64_t key = uint64_t{values.serial} << 32 | number;
  const bool fits = number < values.dense.size() || number < 64 + 4 * values.used;
  if (!sparse_.empty())
    if (auto found = sparse_.find(key); found != sparse_.end()) return found->second;
  ir::ValueId value = make_value(binding, number);
  ++values.used;
  if (fits) {
    if (number >= values.dense.size()) values.dense.resize(std::max<size_t>(number + 1, values.dense.size() * 3 / 2));
    values.dense[number] = value;
  } else {
    sparse_.emplace(key, value);
  }
  return value;
}

void Names::add_pending(uint32_t operand, Symbol name, SourceRange range, Wants wants) {
  SymbolState& symbol = state(name);
  uint32_t index = static_cast<uint32_t>(pending_.size());
  pending_.push_back({operand, name, symbol.pending, range, wants, false});
  symbol.pending = index;
}

} // namespace ptxrewrite::grammar
