// Two operations at once, chunk by chunk: the second one takes the first one's result from its register, and that is
// stored only if it is needed later.
#include "emulator/generated/direct_emitter.h"

#include "emulator/core/decode.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace ptxrewrite::emulator::generated {

using namespace x86;

namespace {
constexpr unsigned vector_bytes = 32, vector_bits = 256;
constexpr Register bases[] = {r8, r9, r10, r11};
constexpr Vector sources[] = {y0, y1, y2, y3};

bool overlap(uint32_t at, uint32_t bytes, uint32_t other, uint32_t other_bytes) {
  return at < other + other_bytes && other < at + bytes;
}
} // namespace

// Returns nothing if the operation cannot be part of a pair.
std::optional<DirectEmitter::PairPart> DirectEmitter::part_of_pair(uint32_t index) const {
  const MicroOp& op = function_.op(index);
  const OpInfo info = function_.info(index);
  if (op.guard || info.kind != OpKind::row || (info.recipe->traits & takes_extra) != 0) return std::nullopt;
  const LaneWidths& widths = info.recipe->widths;
  const DirectRow* row = DirectTable::get().find(op.handler);
  if (!row || row->is_checked || widths.destination_count != 1 || !op.destination[0] || overlaps(op, widths))
    return std::nullopt;
  for (unsigned i = 0; i < widths.source_count; ++i)
    if (widths.source_bits[i] == 1) return std::nullopt;
  return PairPart{&op, row, &widths};
}

// Does the second one read the first one's result, and nothing that shares bytes with it in another way? Nor may its
// own result share bytes with what the first one reads of later chunks.
bool DirectEmitter::is_pair(const PairPart& first, const PairPart& second) const {
  const unsigned bits = first.widths->destination_bits[0], bits_after = second.widths->destination_bits[0];
  if (bits != first.row->bits || first.row->bits != second.row->bits) return false;
  if ((bits_after != bits && bits_after != 1) || (first.row->prepare && second.row->prepare)) return false;
  const LaneRef result = first.op->destination[0], result_after = second.op->destination[0];
  bool reads = false;
  for (unsigned i = 0; i < second.widths->source_count; ++i) {
    const LaneRef source = second.op->source[i];
    const unsigned source_bits = second.widths->source_bits[i];
    if (source == result && source_bits == bits)
      reads = true;
    else if (source.base() == LaneBase::registers &&
             overlap(source.offset(), lane_array_size(source_bits), result.offset(), lane_array_size(bits)))
      return false;
  }
  const uint32_t begin = result_after.offset(), bytes = lane_array_size(bits_after);
  if (result_after != result && overlap(begin, bytes, result.offset(), lane_array_size(bits))) return false;
  unsigned others = 0; // sources that are no registers
  for (const PairPart* part : {&first, &second})
    for (unsigned i = 0; i < part->widths->source_count; ++i) {
      const LaneRef source = part->op->source[i];
      const unsigned source_bits = part->widths->source_bits[i];
      if (source.base() != LaneBase::registers)
        ++others;
      else if (part == &first && !(source == result_after && source_bits == bits_after) &&
               overlap(source.offset(), lane_array_size(source_bits), begin, bytes))
        return false;
    }
  return reads && others <= std::size(bases);
}

void DirectEmitter::load_pair_source(const PairPart& part, unsigned i, Register base, unsigned chunk) {
  const unsigned bits = part.widths->source_bits[i], whole = part.row->bits;
  const LaneRef lanes = part.op->source[i];
  const Place place{lanes.base() == LaneBase::registers ? rbx : base, static_cast<int32_t>(lanes.offset())};
  const Place here = place + size_t(chunk) * vector_bytes * bits / whole;
  if (bits * 4 == whole)
    code_.load_quarter(sources[i], here);
  else
    code_.load(sources[i], here, bits == whole ? Width::whole : Width::half);
}

bool DirectEmitter::emit_pair(uint32_t index) {
  const std::optional<PairPart> first = part_of_pair(index);
  const std::optional<PairPart> second = first ? part_of_pair(index + 1) : std::nullopt;
  if (!second || !is_pair(*first, *second)) return false;
  const LaneRef result = first->op->destination[0], result_after = second->op->destination[0];
  const std::vector<uint32_t>& live = function_.live_at(index + 2);
  const bool is_stored = result != result_after && (!function_.is_register(result.offset()) ||
                                                    std::find(live.begin(), live.end(), result.offset()) != live.end());
  uppers_used_ = true;
  Register base_of[2][4] = {};
  unsigned next_base = 0;
  for (unsigned p = 0; p < 2; ++p) {
    const PairPart& part = p == 0 ? *first : *second;
    for (unsigned i = 0; i < part.widths->source_count; ++i) {
      const LaneRef source = part.op->source[i];
      if (source.base() == LaneBase::registers) continue;
      base_of[p][i] = bases[next_base++];
      code_.load(base_of[p][i],
                 Place{r13, static_cast<int32_t>(offsetof(Warp, base) + source.base_index() * sizeof(std::byte*))});
    }
  }
  RowCode first_code{code_, first->op->extra}, second_code{code_, second->op->extra};
  if (first->row->prepare) first->row->prepare(first_code);
  if (second->row->prepare) second->row->prepare(second_code);
  const unsigned bits = first->row->bits;
  const bool is_predicate = second->widths->destination_bits[0] == 1;
  for (unsigned chunk = 0; chunk < warp_size * bits / vector_bits; ++chunk) {
    for (unsigned i = 0; i < first->widths->source_count; ++i)
      load_pair_source(*first, i, base_of[0][i], chunk);
    first->row->build(first_code);
    if (is_stored) store_chunk(destination_place(result), bits, chunk, Lanes::all);
    for (unsigned i = second->widths->source_count; i-- > 0;) // y0 last
      if (second->op->source[i] != result)
        load_pair_source(*second, i, base_of[1][i], chunk);
      else if (i != 0)
        code_.vector(vpor, sources[i], y0, y0);
    second->row->build(second_code);
    if (is_predicate)
      collect_signs(bits, chunk);
    else
      store_chunk(destination_place(result_after), bits, chunk, Lanes::all);
  }
  if (is_predicate) store_predicate(destination_place(result_after), Lanes::all);
  note_results(index, function_.info(index), Lanes::all);
  note_results(index + 1, function_.info(index + 1), Lanes::all);
  return true;
}

} // namespace ptxrewrite::emulator::generated
