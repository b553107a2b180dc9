#include "emulator/generated/rows.h"

#include "emulator/core/resize.h"

#include <algorithm>

namespace ptxrewrite::emulator::generated {

namespace {

LaneWidths widths_of(const Operation& operation) {
  LaneWidths widths;
  widths.source_count = operation.sources;
  widths.destination_count = operation.destinations;
  for (unsigned i = 0; i < operation.sources; ++i)
    widths.source_bits[i] = operation.source_types[i].bits;
  for (unsigned i = 0; i < operation.destinations; ++i)
    widths.destination_bits[i] = operation.destination_types[i].bits;
  return widths;
}

LaneWidths one_to_one(unsigned from, unsigned to) {
  return {1, 1, {static_cast<uint8_t>(from)}, {static_cast<uint8_t>(to)}};
}

} // namespace

RowTable::RowTable() {
  for (const Operation& operation : OperationTable::get().rows()) {
    if (operation.special) continue;
    recipes_[operation.handler].widths = widths_of(operation);
    by_pattern_[operation.pattern].push_back(operation.handler);
  }
  add_integer_rows(*this);
  add_bit_rows(*this);
  add_comparison_rows(*this);
  add_float_rows(*this);
  add_conversion_rows(*this);
  add_copies(*this);
}

// Two operations may have one pattern. They differ in the number of results: the build function says how many it gives;
// or of sources: then the row says so (of_two).
void RowTable::add(std::string_view pattern, Build build, unsigned traits) {
  const auto found = by_pattern_.find(pattern);
  if (found == by_pattern_.end()) {
    unknown_.push_back(pattern);
    return;
  }
  const bool varies = std::ranges::any_of(found->second, [&](Handler handler) {
    return recipes_[handler].widths.source_count != recipes_[found->second.front()].widths.source_count;
  });
  if (varies && !(traits & of_two)) {
    unknown_.push_back(pattern);
    return;
  }
  for (Handler handler : found->second) {
    Recipe& recipe = recipes_[handler];
    if (traits & of_two && recipe.widths.source_count != 2) continue;
    recipe.build = build;
    recipe.traits = static_cast<uint8_t>(traits);
    ++built_;
  }
}

void RowTable::handler(Handler handler, LaneWidths widths, Build build, unsigned traits) {
  recipes_[handler] = {build, static_cast<uint8_t>(traits), widths};
}

const Recipe* RowTable::find(Handler handler) const {
  const auto found = recipes_.find(handler);
  return found == recipes_.end() ? nullptr : &found->second;
}

const RowTable& RowTable::get() {
  static const RowTable table;
  return table;
}

namespace {

template <unsigned bits, bool is_signed> Results resized(Ir& ir, const Operands& x) {
  return is_signed ? ir.sext(x.a, bits) : ir.zext(x.a, bits);
}
template <unsigned bits> Results truncated(Ir& ir, const Operands& x) {
  return ir.trunc(x.a, bits);
}
Results same(Ir&, const Operands& x) {
  return x.a;
}

template <unsigned from, unsigned to> void add_resize(RowTable& table) {
  if constexpr (from < to) {
    table.handler(resize_handler(from, to, false), one_to_one(from, to), &resized<to, false>);
    table.handler(resize_handler(from, to, true), one_to_one(from, to), &resized<to, true>);
  } else if constexpr (from > to) {
    table.handler(resize_handler(from, to, false), one_to_one(from, to), &truncated<to>);
    table.handler(resize_handler(from, to, true), one_to_one(from, to), &truncated<to>);
  }
}
template <unsigned from> void add_resizes(RowTable& table) {
  add_resize<from, 8>(table);
  add_resize<from, 16>(table);
  add_resize<from, 32>(table);
  add_resize<from, 64>(table);
}

} // namespace

void add_copies(RowTable& table) {
  add_resizes<8>(table);
  add_resizes<16>(table);
  add_resizes<32>(table);
  add_resizes<64>(table);
  for (unsigned bits : {1, 8, 16, 32, 64})
    table.handler(copy_handler(bits), one_to_one(bits, bits), &same, is_copy);
  table.handler(invert_predicate_handler(), one_to_one(1, 1),
                [](Ir& ir, const Operands& x) -> Results { return ir.bit_not(x.a); });
}

} // namespace ptxrewrite::emulator::generated
