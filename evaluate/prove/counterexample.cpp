#include "evaluate/prove/counterexample.h"

#include "ir/core/module.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;

constexpr unsigned most_launches = 160;
constexpr unsigned most_blocks_visited = 160; // per path
constexpr size_t most_terms = 400'000;        // per kernel

// Mixes the bits of a number (the finaliser of SplitMix64).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint32_t component(const launch::Dim3& dimensions, size_t index) {
  return index == 0 ? dimensions.x : index == 1 ? dimensions.y : dimensions.z;
}

std::string decimal(UInt128 value) {
  std::string text;
  do
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
  while ((value /= 10) != 0);
  return text;
}

uint64_t little_endian(const std::vector<std::byte>& bytes, size_t from) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8 && from + i < bytes.size(); ++i)
    value |= uint64_t(bytes[from + i]) << (8 * i);
  return value;
}

std::optional<size_t> number_behind(std::string_view text, size_t place) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + place, text.data() + text.size(), number);
  return error == std::errc() && end != text.data() + place ? std::optional(number) : std::nullopt;
}

bool reads(const ir::Function& function, InstructionId id) {
  const ir::Form& form = function.form_of(id);
  return !form.opaque && form.opcode == ir::Opcode::ld && !ir::is_param(form.space);
}

} // namespace

CounterexampleSearch::CounterexampleSearch(const Terms& terms, const Side& before, const Side& after,
                                           const LaunchSize& size, std::vector<launch::LaunchExpression> requirements,
                                           std::vector<Assumption> assumed)
    : terms_(terms), sides_{before, after}, size_(size), requirements_(std::move(requirements)),
      assumed_(std::move(assumed)), evaluation_{{terms, [this](AtomId id) { return leaf(id, 0); }},
                                                {terms, [this](AtomId id) { return leaf(id, 1); }}} {
  for (const Observation& seen : before.kernel.observations())
    observed_[before.function.instructions[seen.instruction].block].push_back(&seen);
  for (ir::VariableId id : before.function.variable_lists.view(before.function.signature.parameters)) {
    const ir::Variable& variable = before.function.variables[id];
    parameter_bytes_.push_back(variable.is_array ? 0 : ir::byte_width(variable.type));
  }
}

// --- launches ---

// Chooses addresses of widely separated buffers, sizes, and numbers at the limits of types.
uint64_t CounterexampleSearch::chosen_parameter(unsigned index, unsigned bytes) {
  const uint64_t kind = random_() % 16;
  if (bytes == 8 && kind < 8) return 0x7f00'0000'0000 + (uint64_t(index) << 34);
  if (kind < 12) return random_() % (kind % 2 == 0 ? 9 : 130);
  if (kind == 12) return 4 * (random_() % 64);
  constexpr uint64_t edges[]{0x7fff'ffff, 0x8000'0000, 0xffff'ffff, 0x1'0000'0000, ~uint64_t(0), uint64_t(1) << 63};
  if (kind == 13) return edges[random_() % std::size(edges)] - random_() % 2;
  if (kind == 14) return uint64_t(1) << (random_() % 31);
  return random_() >> (random_() % 64);
}

// Returns false if the launch is impossible, or if it does not run the variant.
bool CounterexampleSearch::choose_launch(const std::map<std::string, UInt128>& hint) {
  auto hinted = [&](const std::string& name, uint64_t otherwise) {
    const auto found = hint.find(name);
    return found == hint.end() ? otherwise : static_cast<uint64_t>(found->second);
  };
  constexpr uint32_t blocks[]{1, 2, 3, 8, 32, 33, 64, 128, 256, 1024}, grids[]{1, 2, 3, 7, 64, 1000, 65535};
  uint64_t threads = 1;
  uint32_t* const block_sizes[]{&facts_.block.x, &facts_.block.y, &facts_.block.z};
  uint32_t* const grid_sizes[]{&facts_.grid.x, &facts_.grid.y, &facts_.grid.z};
  for (size_t i = 0; i < 3; ++i) {
    const std::string axis(1, "xyz"[i]);
    const bool is_flat = i > 0 && random_() % 2 == 0;
    const uint64_t extent = hinted("%ntid." + axis, is_flat ? 1 : blocks[random_() % std::size(blocks)]);
    const uint64_t count = hinted("%nctaid." + axis, is_flat ? 1 : grids[random_() % std::size(grids)]);
    const uint64_t smallest = size_.is_exact ? size_.block[i] : 1;
    *block_sizes[i] = static_cast<uint32_t>(std::clamp<uint64_t>(extent, smallest, size_.block[i]));
    *grid_sizes[i] = static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, size_.grid[i]));
    threads *= *block_sizes[i];
    const uint64_t own = *block_sizes[i], all = *grid_sizes[i];
    thread_[i] = static_cast<uint32_t>(hinted("%tid." + axis, random_() % 3 == 0 ? own - 1 : random_() % own) % own);
    block_[i] = static_cast<uint32_t>(hinted("%ctaid." + axis, random_() % 3 == 0 ? all - 1 : random_() % all) % all);
  }
  if (threads > 1024) return false;
  facts_.parameters.clear();
  for (unsigned i = 0; i < parameter_bytes_.size(); ++i) {
    const unsigned bytes = parameter_bytes_[i];
    std::vector<std::byte> image(bytes != 0 ? bytes : 256);
    for (size_t start = 0; start < image.size(); start += 8) {
      const std::string name = "P" + std::to_string(i) + (start == 0 ? "" : "@" + std::to_string(start));
      const uint64_t value = hinted(name, chosen_parameter(i, bytes != 0 ? bytes : 8));
      for (size_t byte = start; byte < std::min(image.size(), start + 8); ++byte)
        image[byte] = static_cast<std::byte>(value >> (8 * (byte - start)));
    }
    facts_.parameters.push_back(std::move(image));
  }
  memory_seed_ = random_();
  memory_kind_ = static_cast<unsigned>(random_() % 3);
  return std::ranges::all_of(requirements_, [&](const launch::LaunchExpression& one) { return one.holds(facts_); });
}

std::string CounterexampleSearch::describe() const {
  std::string text = "block " + launch::to_string(facts_.block) + ", grid " + launch::to_string(facts_.grid);
  auto triple = [](const std::array<uint32_t, 3>& place) {
    return std::to_string(place[0]) + ',' + std::to_string(place[1]) + ',' + std::to_string(place[2]);
  };
  text += ", thread " + triple(thread_) + " of block " + triple(block_);
  for (size_t i = 0; i < facts_.parameters.size(); ++i)
    if (parameter_bytes_[i] != 0)
      text += ", P" + std::to_string(i) + " = " + std::to_string(little_endian(facts_.parameters[i], 0));
  for (const auto& [name, value] : values_)
    if (value && name.starts_with("trip")) text += ", " + name + " = " + decimal(*value);
  return text;
}

// --- values ---

std::optional<UInt128> CounterexampleSearch::leaf(AtomId id, unsigned side) {
  const Atom& row = terms_.atom(id);
  if (row.name.starts_with("path")) {
    const auto found = path_[side].find(row.name);
    return found == path_[side].end() ? std::nullopt : found->second;
  }
  // This load was replaced by another one: the leaf of that name is the other load's result.
  if (side == 1 && replaced_.contains(row.name)) return std::nullopt;
  if (const auto found = values_.find(row.name); found != values_.end()) return found->second;
  return computed_leaf(row);
}

// The value of parameters, indices and dimensions, and addresses of variables.
std::optional<UInt128> CounterexampleSearch::computed_leaf(const Atom& row) {
  const std::string& name = row.name;
  if (name.size() > 1 && name[0] == 'P' && std::isdigit(static_cast<unsigned char>(name[1]))) {
    const size_t index = *number_behind(name, 1), at = name.find('@');
    const size_t start = at == name.npos ? 0 : number_behind(name, at + 1).value_or(0);
    if (index >= facts_.parameters.size() || start + row.width / 8 > facts_.parameters[index].size())
      return std::nullopt;
    return little_endian(facts_.parameters[index], start);
  }
  if (name.starts_with('&') && row.width <= 64) {
    const uint64_t address = (mixed(number_behind(name, 1).value_or(0)) & 0xff) << 12;
    return address + 0x1000;
  }
  if (name.size() < 3 || name[name.size() - 2] != '.') return std::nullopt;
  const size_t axis = std::string_view("xyz").find(name.back());
  const std::string_view kind = std::string_view(name).substr(0, name.size() - 2);
  if (axis == std::string_view::npos) return std::nullopt;
  if (kind == "%tid") return thread_[axis];
  if (kind == "%ctaid") return block_[axis];
  if (kind == "%ntid") return component(facts_.block, axis);
  if (kind == "%nctaid") return component(facts_.grid, axis);
  return std::nullopt;
}

// Initial memory contents are a function of the address.
std::optional<uint8_t> CounterexampleSearch::byte_at(ir::StateSpace space, UInt128 address) {
  const auto number = static_cast<unsigned>(space);
  if (const auto found = written_.find({number, address}); found != written_.end()) return found->second;
  const uint64_t any = mixed(memory_seed_ ^ static_cast<uint64_t>(address) ^ (uint64_t(number) << 56));
  constexpr uint8_t edges[]{0, 1, 0x7f, 0x80, 0xff};
  if (memory_kind_ == 0) return static_cast<uint8_t>(address % 4 == 0 ? any % 12 : 0);
  if (memory_kind_ == 1) return edges[any % std::size(edges)];
  return static_cast<uint8_t>(any);
}

// Loads assign values to their leaves, stores to memory. After a store to an unknown address, memory is unknown.
void CounterexampleSearch::execute(const Observation& seen) {
  const ir::Function& function = sides_[0].function;
  const ir::Form& form = function.form_of(seen.instruction);
  const bool is_guarded = function.instructions[seen.instruction].guard.valid();
  std::optional<UInt128> guard = 1;
  if (is_guarded) guard = evaluation_[0].of(seen.terms[0]);
  const bool is_load = reads(function, seen.instruction);
  const bool is_store = !form.opaque && form.opcode == ir::Opcode::st;
  if (!is_load && !is_store) {
    memory_is_known_ &= !form.effects.writes_memory;
    return;
  }
  const size_t first = is_guarded ? 1 : 0;
  if (seen.terms.size() <= first) return;
  const std::optional<UInt128> address = evaluation_[0].of(seen.terms[first]);
  const unsigned bytes = std::max(1u, ir::byte_width(form.type()));
  if (is_store) {
    if (guard == UInt128(0)) return;
    if (!guard || !address) {
      memory_is_known_ = false;
      return;
    }
    for (size_t i = first + 1; i < seen.terms.size(); ++i) {
      const std::optional<UInt128> value = evaluation_[0].of(seen.terms[i]);
      for (unsigned byte = 0; byte < bytes; ++byte)
        written_[{static_cast<unsigned>(form.space), *address + (i - first - 1) * bytes + byte}] =
            value ? std::optional(static_cast<uint8_t>(*value >> (8 * byte))) : std::nullopt;
    }
    return;
  }
  const ir::ProvenanceId from = function.instructions[seen.instruction].provenance;
  for (unsigned part = 0; from && part < 8; ++part) {
    std::optional<UInt128> value;
    if (memory_is_known_ && address && guard == UInt128(1)) {
      value = 0;
      for (unsigned byte = 0; byte < bytes && value; ++byte) {
        const auto one = byte_at(form.space, *address + part * bytes + byte);
        value = one ? std::optional(*value | UInt128(*one) << (8 * byte)) : std::nullopt;
      }
      if (value && ir::is_signed(form.type())) value = static_cast<UInt128>(as_signed(*value, 8 * bytes));
    }
    const std::string name = "i" + std::to_string(from.index()) + "." + std::to_string(part);
    values_[name] = value;
    if (!pairs_.contains(seen.instruction)) replaced_.insert(name);
  }
}

// --- paths ---

// Updates path-dependent registers and trip numbers for the edge.
void CounterexampleSearch::follow(EdgeId edge) {
  const BlockId target = sides_[0].function.edges[edge].to;
  for (unsigned side : {0u, 1u}) {
    const ir::Function& function = sides_[side].function;
    std::map<std::string, std::optional<UInt128>> brought;
    const bool is_same = edge.index() < function.edges.size() && function.edges[edge].to == target &&
                         function.edges[edge].from == sides_[0].function.edges[edge].from;
    for (const PathUnknown& unknown : sides_[side].kernel.path_unknowns()) {
      if (unknown.block != target) continue;
      const ir::ValueId own = function.parameters(target)[unknown.parameter];
      const auto arguments = function.arguments(edge);
      const TermId term = is_same ? sides_[side].kernel.value(arguments[unknown.parameter]) : TermId();
      brought[path_name(target, own)] = term ? evaluation_[side].of(term) : std::nullopt;
    }
    for (auto& [name, value] : brought)
      path_[side].insert_or_assign(name, value);
  }
  for (const ir::Loop& loop : sides_[0].kernel.loops().loops()) {
    if (loop.header != target) continue;
    std::optional<UInt128>& trip = values_[trip_name(target)];
    const bool is_back = std::ranges::find(loop.back_edges, edge) != loop.back_edges.end();
    trip = is_back && trip ? *trip + 1 : UInt128(0);
  }
}

// Returns nothing if the thread ends in the block, or if its next block is unknown.
std::optional<EdgeId> CounterexampleSearch::next(BlockId block) {
  const ir::Function& function = sides_[0].function;
  const auto ways = function.successors(block);
  const InstructionId last = function.terminator(block);
  if (ways.empty()) return std::nullopt;
  if (!last || !function.instructions[last].guard) return ways.size() == 1 ? std::optional(ways[0]) : std::nullopt;
  const TermId term = sides_[0].kernel.value(function.instructions[last].guard);
  const std::optional<UInt128> guard = term ? evaluation_[0].of(term) : std::nullopt;
  if (!guard) return std::nullopt;
  const bool is_taken = (*guard != 0) != function.instructions[last].guard_negated;
  const ir::Form& form = function.form_of(last);
  if (form.effects.terminates && !is_taken && ways.size() == 1) return ways[0];
  if (form.opaque || form.opcode != ir::Opcode::bra || ways.size() != 2) return std::nullopt;
  return ways[is_taken ? 0 : 1];
}

bool CounterexampleSearch::assumptions_hold() {
  return std::ranges::all_of(assumed_, [&](const Assumption& fact) {
    const std::optional<UInt128> value = evaluation_[0].of(fact.value);
    if (!value) return false;
    const auto number = static_cast<ir::Int128>(*value);
    return number >= fact.range.low && number <= fact.range.high;
  });
}

std::optional<Counterexample> CounterexampleSearch::compare(const ObservedPair& pair) {
  const ir::Function& function = sides_[0].function;
  const bool is_guarded = function.instructions[pair.before->instruction].guard.valid();
  for (size_t i = 0; i < pair.before->terms.size(); ++i) {
    const std::optional<UInt128> before = evaluation_[0].of(pair.before->terms[i]);
    const std::optional<UInt128> after = evaluation_[1].of(pair.after->terms[i]);
    budget_ -= std::min<size_t>(budget_, 2);
    if (before && after && *before != *after && assumptions_hold())
      return Counterexample{pair.before->instruction, "operand " + std::to_string(i + 1) + " is " + decimal(*before) +
                                                          " in the original and " + decimal(*after) +
                                                          " in the result: " + describe()};
    if (i == 0 && is_guarded && before != UInt128(1)) return std::nullopt; // not executed, or unknown
  }
  return std::nullopt;
}

std::optional<Counterexample> CounterexampleSearch::visit(BlockId block) {
  evaluation_[0].forget();
  evaluation_[1].forget();
  for (const Observation* seen : observed_[block]) {
    if (const auto pair = pairs_.find(seen->instruction); pair != pairs_.end())
      if (auto found = compare(pair->second)) return found;
    execute(*seen);
  }
  return std::nullopt;
}

std::optional<Counterexample> CounterexampleSearch::walk() {
  written_.clear();
  values_.clear();
  path_[0].clear();
  path_[1].clear();
  memory_is_known_ = true;
  BlockId block = sides_[0].function.entry();
  for (unsigned i = 0; i < most_blocks_visited && budget_ > 0; ++i) {
    if (auto found = visit(block)) return found;
    const std::optional<EdgeId> way = next(block);
    if (!way) break;
    follow(*way);
    block = sides_[0].function.edges[*way].to;
  }
  return std::nullopt;
}

std::optional<Counterexample> CounterexampleSearch::find(const std::vector<ObservedPair>& pairs,
                                                         const std::vector<std::map<std::string, UInt128>>& hints) {
  pairs_.clear();
  for (const ObservedPair& pair : pairs)
    pairs_[pair.before->instruction] = pair;
  random_.seed(1);
  budget_ = most_terms;
  for (const auto& hint : hints)
    for (unsigned memory = 0; memory < 3; ++memory)
      if (choose_launch(hint))
        if (auto found = walk()) return found;
  for (unsigned i = 0; i < most_launches && budget_ > 0; ++i)
    if (choose_launch({}))
      if (auto found = walk()) return found;
  return std::nullopt;
}

} // namespace ptxrewrite::prove
