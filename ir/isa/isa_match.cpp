// Matches modifier words to the slots of the table's rows.
//
// ptxas reads modifiers as a set, with exceptions (facts: permutations of every form were tried): `!` slots come first,
// in order; several types, state spaces, layouts, formats or eviction priorities keep their order.
#include "ir/isa/isa_match.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::ir::table {

namespace {

// Assigns words to slots by backtracking; rows have at most fifteen slots and few alternatives overlap.
class SlotMatcher {
public:
  SlotMatcher(const Row& row, std::span<const Modifier> words) : row_(row), words_(words) {
    binding_.resize(row.slots.size(), Modifier::none);
    last_.fill(-1);
  }

  bool match() { return fill(0); }
  Binding take_binding() { return std::move(binding_); }

private:
  bool fill(size_t slot_index) {
    if (slot_index == row_.slots.size()) return used_ == all();
    const Slot& slot = row_.slots[slot_index];
    for (const auto& alternative : slot.alternatives) {
      if (place(slot, slot_index, alternative, 0)) return true;
    }
    binding_[slot_index] = Modifier::none;
    return slot.optional && fill(slot_index + 1);
  }

  // Assigns the words of `alternative` from `position` on, then fills the remaining slots.
  bool place(const Slot& slot, size_t slot_index, const Words& alternative, size_t position) {
    if (position == alternative.size()) {
      binding_[slot_index] = alternative.front();
      return fill(slot_index + 1);
    }
    Modifier wanted = alternative[position];
    auto order = static_cast<size_t>(ordering(wanted));
    if (slot.adjacent) {
      if (head_ >= words_.size() || words_[head_] != wanted) return false;
      return take(head_, order, slot, slot_index, alternative, position, true);
    }
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != wanted || (used_ & (1u << i)) != 0) continue;
      if (order != 0 && static_cast<int>(i) < last_[order]) continue;
      if (take(i, order, slot, slot_index, alternative, position, false)) return true;
    }
    return false;
  }

  bool take(size_t word, size_t order, const Slot& slot, size_t slot_index, const Words& alternative, size_t position,
            bool advance_head) {
    int previous = last_[order];
    used_ |= 1u << word;
    last_[order] = static_cast<int>(word);
    head_ += advance_head;
    if (place(slot, slot_index, alternative, position + 1)) return true;
    head_ -= advance_head;
    last_[order] = previous;
    used_ &= ~(1u << word);
    return false;
  }

  uint32_t all() const { return words_.size() >= 32 ? UINT32_MAX : (1u << words_.size()) - 1; }

  const Row& row_;
  std::span<const Modifier> words_;
  Binding binding_;
  uint32_t used_ = 0;
  size_t head_ = 0;
  std::array<int, ordering_count> last_;
};

using RowFilter = std::function<bool(const Row&)>;

void match_aspect(const OpcodeRows& opcode, Aspect aspect, std::span<const Modifier> words, const RowFilter& wanted,
                  std::vector<Match>& result) {
  for (const Row& row : opcode.rows) {
    if (row.aspect != aspect || words.size() > row.max_words || (wanted && !wanted(row))) continue;
    if (!std::ranges::all_of(words, [&](Modifier word) { return row.words[static_cast<size_t>(word)]; })) continue;
    SlotMatcher matcher(row, words);
    if (matcher.match()) result.push_back({&row, matcher.take_binding()});
  }
}

bool is_l2_eviction(Modifier word) {
  return ordering(word) == Ordering::evictions;
}

// True for accesses of 256 bits per lane: only they may have an L2 eviction priority, which no `cache:` row lists.
bool is_wide_access(std::span<const Modifier> words) {
  bool v8 = false, v4 = false, wide_type = false;
  for (Modifier word : words) {
    v8 |= word == Modifier::v8;
    v4 |= word == Modifier::v4;
    wide_type |= is_type(word) && bit_width(ScalarType(word)) == 64;
  }
  return v8 || (v4 && wide_type);
}

// The composition rule of `ld` and `st`: the words have to match an `access:` row, a `cache:` row and, if they include
// an L2 eviction priority, an `eviction:` row, where each row sees only the words of its aspect.
void match_composed(const OpcodeRows& opcode, std::span<const Modifier> words, const RowFilter& wanted,
                    std::vector<Match>& result) {
  const ModifierSet& access_words = opcode.aspect_words[static_cast<size_t>(Aspect::access)];
  const ModifierSet& cache_words = opcode.aspect_words[static_cast<size_t>(Aspect::cache)];
  const ModifierSet& eviction_words = opcode.aspect_words[static_cast<size_t>(Aspect::eviction)];
  bool wide = is_wide_access(words);
  bool eviction = false;
  std::vector<Modifier> access, cache, rest;
  for (Modifier word : words) {
    auto index = static_cast<size_t>(word);
    if (access_words[index]) access.push_back(word);
    if (cache_words[index] && !(wide && is_l2_eviction(word))) cache.push_back(word);
    if (eviction_words[index]) rest.push_back(word);
    if (!access_words[index] && !cache_words[index] && !eviction_words[index]) return;
    eviction |= is_l2_eviction(word);
  }
  std::vector<Match> other;
  match_aspect(opcode, Aspect::cache, cache, wanted, other);
  if (other.empty()) return;
  if (eviction) {
    other.clear();
    match_aspect(opcode, Aspect::eviction, rest, wanted, other);
    if (other.empty()) return;
  }
  match_aspect(opcode, Aspect::access, access, wanted, result);
}

std::string joined(std::string_view opcode_name, std::span<const Modifier> words) {
  std::string text(opcode_name);
  for (Modifier word : words)
    text.append(".").append(spelling(word));
  return text;
}

std::string quoted(std::string_view text) {
  std::string result;
  return result.append("'").append(text).append("'");
}

} // namespace

namespace {

std::vector<Match> match_filtered(const OpcodeRows& opcode, std::span<const Modifier> words, const RowFilter& wanted) {
  std::vector<Match> result;
  if (words.size() > max_words) return result;
  match_aspect(opcode, Aspect::whole, words, wanted, result);
  if (opcode.has_aspects) match_composed(opcode, words, wanted, result);
  return result;
}

} // namespace

std::vector<Match> match_rows(const OpcodeRows& opcode, std::span<const Modifier> words) {
  return match_filtered(opcode, words, nullptr);
}

bool match_only(const OpcodeRows& opcode, std::span<const Modifier> words,
                const std::function<bool(const Row&)>& wanted) {
  return !match_filtered(opcode, words, wanted).empty();
}

std::string explain_mismatch(const OpcodeRows& opcode, std::string_view opcode_name, std::span<const Modifier> words) {
  auto illegal = [](Modifier word, std::string_view where) {
    return (is_type(word) ? "illegal type " : "illegal modifier ") + quoted(joined("", {&word, 1})) + " for " +
           quoted(where);
  };
  // Look for a word that the opcode never accepts.
  for (Modifier word : words)
    if (!opcode.words[static_cast<size_t>(word)]) return illegal(word, opcode_name);
  // Look for a word without which the rest is legal; modifiers are tried before types.
  for (bool types : {false, true}) {
    for (size_t i = words.size(); i-- > 0;) {
      if (is_type(words[i]) != types) continue;
      std::vector<Modifier> fewer(words.begin(), words.end());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (!match_rows(opcode, fewer).empty()) return illegal(words[i], joined(opcode_name, fewer));
    }
  }
  // Look for a missing word.
  for (const Row& row : opcode.rows) {
    for (const Slot& slot : row.slots) {
      if (slot.optional) continue;
      std::vector<Modifier> more(words.begin(), words.end());
      const auto& wanted = slot.alternatives.front();
      more.insert(slot.adjacent ? more.begin() : more.end(), wanted.begin(), wanted.end());
      if (row.aspect == Aspect::whole && more.size() <= row.max_words && SlotMatcher(row, more).match())
        return quoted(joined(opcode_name, words)) + " lacks a modifier, for example " + quoted(joined("", wanted));
    }
  }
  // Look for a type that has to be another one.
  for (size_t i = words.size(); i-- > 0;) {
    if (!is_type(words[i])) continue;
    std::vector<Modifier> other(words.begin(), words.end());
    for (unsigned type = 1; type < scalar_type_count; ++type) {
      other[i] = Modifier(type);
      if (!opcode.words[type] || match_rows(opcode, other).empty()) continue;
      std::vector<Modifier> fewer(words.begin(), words.end());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      return illegal(words[i], joined(opcode_name, fewer));
    }
  }
  return "illegal combination of modifiers " + quoted(joined(opcode_name, words));
}

} // namespace ptxrewrite::ir::table
