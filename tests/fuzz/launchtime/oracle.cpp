#include "tests/fuzz/launchtime/oracle.h"

#include "tests/fuzz/kernels/kernel_operations.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::fuzz::launchtime {

namespace {

using Mask = std::vector<uint8_t>; // one element per thread of the block

// The accesses of a byte, to find unordered ones.
struct ByteHistory {
  static constexpr uint32_t nobody = UINT32_MAX, several = UINT32_MAX - 1;
  struct Access {
    uint32_t thread = nobody, block = nobody, phase = 0; // the latest phase
    void add(uint32_t new_thread, uint32_t new_block, uint32_t new_phase) {
      thread = thread == nobody || thread == new_thread ? new_thread : several;
      block = block == nobody || block == new_block ? new_block : several;
      phase = std::max(phase, new_phase);
    }
    // Whether the access is ordered before those of this thread in this phase.
    bool precedes(uint32_t now_thread, uint32_t now_block, uint32_t now_phase) const {
      return thread == nobody || thread == now_thread || (block == now_block && phase < now_phase);
    }
  };
  Access writes, reads;
};

constexpr unsigned most_trips = 1000; // of a loop; sites have a few trips

uint64_t mask_of(char kind) {
  switch (kind) {
  case 'p':
    return 1;
  case 'h':
    return 0xffff;
  case 'd':
    return UINT64_MAX;
  default:
    return 0xffffffff;
  }
}

char source_kind(char letter) {
  const unsigned bits = width_of(kind_of_letter(letter));
  return bits == 1 ? 'p' : bits == 16 ? 'h' : bits == 64 ? 'd' : 'r';
}

bool is_division(const std::string& text) {
  return (text.starts_with("div.") || text.starts_with("rem.")) && (text[4] == 's' || text[4] == 'u');
}

class Machine {
public:
  Machine(const Kernel& kernel, const Launch& launch, uint64_t arena_address)
      : kernel_(kernel), launch_(launch), arena_address_(arena_address), history_(kernel.arena_bytes) {
    outcome_.arena = kernel.arena();
    Trace& trace = outcome_.trace;
    trace.nodes.resize(kernel.node_count);
    trace.pointers.resize(kernel.parameters.size());
    for (PointerTrace& pointer : trace.pointers) {
      pointer.loads.resize(kernel.arena_bytes);
      pointer.stores.resize(kernel.arena_bytes);
    }
    trace.loads.resize(kernel.arena_bytes);
    trace.stores.resize(kernel.arena_bytes);
  }

  Outcome run() {
    const std::vector<uint64_t> values = kernel_.values(launch_, arena_address_);
    for (block_ = 0; block_ < launch_.grid; ++block_) {
      phase_ = 0;
      shared_.assign(kernel_.shared_bytes, 0);
      for (size_t kind = 0; kind < kernel_.registers.size(); ++kind)
        registers_[kind].assign(size_t(kernel_.registers[kind]) * launch_.block, 0);
      for (size_t i = 0; i < values.size(); ++i)
        for (uint32_t thread = 0; thread < launch_.block; ++thread)
          set(kernel_.parameters[i].reg, thread, values[i]);
      run(kernel_.body, Mask(launch_.block, 1));
    }
    return std::move(outcome_);
  }

private:
  uint64_t& place(Register reg, uint32_t thread) {
    return registers_[kind_index(reg.kind)][size_t(reg.number) * launch_.block + thread];
  }
  void set(Register reg, uint32_t thread, uint64_t value) { place(reg, thread) = value & mask_of(reg.kind); }
  uint64_t get(const Operand& operand, uint32_t thread, char kind) {
    return operand.is_register ? place(operand.reg, thread) : operand.bits & mask_of(kind);
  }

  void run(const std::vector<Node>& nodes, const Mask& mask) {
    for (const Node& node : nodes)
      run(node, mask);
  }

  void run(const Node& node, const Mask& mask) {
    switch (node.kind) {
    case Node::Kind::shuffle:
      return shuffle(node, mask);
    case Node::Kind::vote:
      return vote(node, mask);
    case Node::Kind::barrier:
      ++phase_;
      return;
    case Node::Kind::branch:
      return run(node.body, narrowed(node, mask));
    case Node::Kind::loop:
      return loop(node, mask);
    default:
      break;
    }
    for (uint32_t thread = 0; thread < launch_.block; ++thread)
      if (mask[thread]) run(node, thread);
  }

  void loop(const Node& node, Mask mask) {
    for (unsigned trips = 0; std::ranges::find(mask, 1) != mask.end(); mask = narrowed(node, mask)) {
      outcome_.trace.is_endless |= ++trips > most_trips;
      if (outcome_.trace.is_endless) return;
      run(node.body, mask);
    }
  }

  Mask narrowed(const Node& node, Mask mask) {
    for (uint32_t thread = 0; thread < launch_.block; ++thread)
      if (mask[thread]) mask[thread] = (get(node.sources[0], thread, 'p') != 0) != node.is_negated;
    return mask;
  }

  void run(const Node& node, uint32_t thread) {
    ++outcome_.trace.nodes[node.id].executions;
    if (node.kind == Node::Kind::special) return set(node.results[0], thread, special(node.text, thread));
    if (node.kind == Node::Kind::operation) return operate(node, thread);
    const uint64_t address = get(node.sources[0], thread, 'd') + static_cast<uint64_t>(node.offset);
    const unsigned bytes = bytes_of(node.type);
    const bool is_load = node.kind == Node::Kind::load;
    for (size_t i = 0; i < (is_load ? node.results.size() : node.sources.size() - 1); ++i) {
      uint8_t* at = node.is_shared ? &shared_.at((address & 0xffffffff) + i * bytes)
                                   : touch(node, address + i * bytes, bytes, thread);
      if (at == nullptr) continue;
      uint64_t value = 0;
      if (is_load) {
        std::memcpy(&value, at, bytes);
        if (node.type[0] == 's' && bytes < 8 && value >> (8 * bytes - 1)) value |= UINT64_MAX << (8 * bytes);
        set(node.results[i], thread, value);
      } else {
        if (node.kind == Node::Kind::add) std::memcpy(&value, at, bytes);
        value += get(node.sources[i + 1], thread, 'd');
        std::memcpy(at, &value, bytes);
      }
    }
  }

  uint8_t* touch(const Node& node, uint64_t address, unsigned bytes, uint32_t thread) {
    Trace& trace = outcome_.trace;
    trace.nodes[node.id].address_bits |= address;
    const uint64_t first = address - arena_address_;
    if (first > kernel_.arena_bytes || first + bytes > kernel_.arena_bytes || address % bytes != 0) {
      trace.leaves_arena = true;
      return nullptr;
    }
    const bool is_store = node.kind != Node::Kind::load;
    if (node.pointer >= 0) {
      PointerTrace& pointer = trace.pointers[static_cast<size_t>(node.pointer)];
      (is_store ? pointer.stores : pointer.loads).add(first, bytes);
    }
    (is_store ? trace.stores : trace.loads).add(first, bytes);
    const uint32_t global = block_ * launch_.block + thread;
    for (uint64_t i = first; i < first + bytes; ++i) {
      ByteHistory& byte = history_[i];
      const bool ordered =
          byte.writes.precedes(global, block_, phase_) && (!is_store || byte.reads.precedes(global, block_, phase_));
      trace.races |= !ordered;
      (is_store ? byte.writes : byte.reads).add(global, block_, phase_);
    }
    return &outcome_.arena[first];
  }

  uint64_t special(const std::string& name, uint32_t thread) const {
    if (name == "%tid.x") return thread;
    if (name == "%ntid.x") return launch_.block;
    if (name == "%ctaid.x") return block_;
    if (name == "%nctaid.x") return launch_.grid;
    if (name == "%laneid") return thread % 32;
    return 0; // the shared variable's address
  }

  void operate(const Node& node, uint32_t thread) {
    const Operation& row = operations()[node.operation];
    NodeTrace& trace = outcome_.trace.nodes[node.id];
    std::array<uint64_t, 8> in{}, out{};
    for (size_t i = 0; i < node.sources.size(); ++i) {
      const char kind = source_kind(row.sources[i]);
      in[i] = get(node.sources[i], thread, kind);
      if (kind == 'd') note(trace, in[i]);
      trace.has_negative |= kind == 'd' ? in[i] >> 63 : kind == 'r' && in[i] >> 31;
    }
    if (is_division(row.text) && in[1] == 0) {
      trace.has_zero_divisor = true;
      outcome_.trace.is_undefined = true;
      return set(node.results[0], thread, UINT64_MAX); // the emulator's result
    }
    row.evaluate(in.data(), out.data());
    for (size_t i = 0; i < node.results.size(); ++i) {
      set(node.results[i], thread, out[i]);
      if (node.results[i].kind == 'd') note(trace, out[i]);
    }
  }

  static void note(NodeTrace& trace, uint64_t value) {
    trace.fits_u32 &= value <= UINT32_MAX;
    trace.fits_s32 &= static_cast<int64_t>(value) == static_cast<int32_t>(value);
  }

  // The source lane of a lane's value (PTX ISA, shfl.sync).
  static unsigned source_lane(const std::string& mode, unsigned lane, uint32_t b, uint32_t c) {
    const unsigned bound = c & 31, segment = c >> 8 & 31, by = b & 31;
    const unsigned least = lane & segment, most = (lane & segment) | (bound & ~segment);
    if (mode == "up") return int(lane) - int(by) >= int(most) ? lane - by : lane;
    const unsigned from = mode == "down" ? lane + by : mode == "bfly" ? lane ^ by : least | (by & ~segment);
    return from <= most ? from : lane;
  }

  void shuffle(const Node& node, const Mask& mask) {
    std::vector<uint64_t> before(launch_.block);
    for (uint32_t thread = 0; thread < launch_.block; ++thread)
      before[thread] = get(node.sources[0], thread, 'r');
    for (uint32_t thread = 0; thread < launch_.block; ++thread) {
      if (!mask[thread]) continue;
      const unsigned from =
          source_lane(node.text, thread % 32, static_cast<uint32_t>(get(node.sources[1], thread, 'r')),
                      static_cast<uint32_t>(get(node.sources[2], thread, 'r')));
      const uint32_t source = thread / 32 * 32 + from;
      const bool is_there = source < launch_.block && mask[source] && get(node.sources[3], thread, 'r') >> from & 1;
      outcome_.trace.is_undefined |= !is_there;
      if (is_there) set(node.results[0], thread, before[source]);
    }
  }

  void vote(const Node& node, const Mask& mask) {
    for (uint32_t warp = 0; warp < launch_.block; warp += 32) {
      uint32_t ballot = 0, members = 0;
      for (uint32_t lane = 0; lane < 32 && warp + lane < launch_.block; ++lane)
        if (mask[warp + lane]) {
          members |= 1u << lane;
          ballot |= static_cast<uint32_t>(get(node.sources[0], warp + lane, 'p')) << lane;
        }
      for (uint32_t lane = 0; lane < 32 && warp + lane < launch_.block; ++lane)
        if (members >> lane & 1)
          set(node.results[0], warp + lane,
              node.text == "ballot" ? ballot
              : node.text == "any"  ? ballot != 0
                                    : ballot == members);
    }
  }

  const Kernel& kernel_;
  const Launch& launch_;
  uint64_t arena_address_;
  std::vector<ByteHistory> history_;
  std::vector<uint8_t> shared_;
  std::array<std::vector<uint64_t>, 5> registers_;
  uint32_t block_ = 0, phase_ = 0;
  Outcome outcome_;
};

} // namespace

Outcome carry_out(const Kernel& kernel, const Launch& launch, uint64_t arena_address) {
  return Machine(kernel, launch, arena_address).run();
}

} // namespace ptxrewrite::fuzz::launchtime
