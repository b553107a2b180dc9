// Kernels in which the obligations of launch-time rewrites hold in some launches and not in others: a list of nodes,
// with the launches and with the conditions for rewriting each site. Made by generator.h, written by print.h, executed
// by oracle.h, which is independent of our reader, IR and emulator.
//
// All pointers point into one arena, so that buffers can overlap, be adjacent, or be the same.
#pragma once

#include "tests/fuzz/random.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz::launchtime {

// kinds: p predicate, h 16 bits (integers and f16), r 32 bits, d 64 bits, f f32
struct Register {
  char kind = 'r';
  uint32_t number = 0;
};

struct Operand {
  bool is_register = true;
  Register reg;
  uint64_t bits = 0;
  Operand(Register source) : reg(source) {}
  Operand(uint64_t immediate) : is_register(false), bits(immediate) {}
};

struct Node {
  enum class Kind : uint8_t {
    operation, // results[0] = operations()[operation](sources)
    special,   // results[0] = `text`, a special register
    load,      // results = elements of `type` at sources[0] + offset
    store,     // sources[1...] to sources[0] + offset
    add,       // red.add.u32: adds sources[1] to the word at sources[0] + offset
    branch,    // if (sources[0]) body
    loop,      // do body while (sources[0])
    shuffle,   // results[0] = shfl.sync.`text`(sources: value, lane, clamp and segments, members)
    vote,      // results[0] = vote.sync.`text`(sources: predicate, members)
    barrier,   // bar.sync 0
  };
  Kind kind = Kind::operation;
  uint32_t id = 0; // its index in Trace::nodes
  std::string text;
  uint32_t operation = 0;
  std::vector<Register> results;
  std::vector<Operand> sources;
  std::string type;       // of an element: "u8", "f32"
  bool is_shared = false; // the memory of load or store; else global
  int pointer = -1;       // the parameter of the address; -1: one of several
  int64_t offset = 0;
  bool is_negated = false; // branch: if (!sources[0])
  std::vector<Node> body;
};

struct Parameter {
  char kind = 'd'; // r or d
  bool is_pointer = false;
  bool is_generic = false; // accesses through it have no state space
  unsigned grain = 1;      // of a pointer: bytes of its smallest element, so that its offset may be a multiple of them
  Register reg;            // holds the value, or the address in global space
};

// Arguments of pointers are offsets into the arena.
struct Launch {
  uint32_t grid = 1, block = 32;
  std::vector<uint64_t> arguments;
  std::string kind; // its special property: "same buffer", "edges"
  uint32_t threads() const { return grid * block; }
};

// A set of bytes of the arena.
class ByteSet {
public:
  void resize(size_t bytes) { present_.resize(bytes); }
  void add(uint64_t first, uint64_t bytes);
  bool empty() const { return low_ >= high_; }
  uint64_t low() const { return low_; } // of the smallest range that contains it
  uint64_t high() const { return high_; }
  bool contains(uint64_t byte) const { return byte < present_.size() && present_[byte]; }
  bool meets(const ByteSet& other) const;       // whether they have a byte in common
  bool range_meets(const ByteSet& other) const; // whether their ranges overlap
  bool covers(const ByteSet& other) const;      // whether every byte of `other` is in it

private:
  std::vector<bool> present_;
  uint64_t low_ = UINT64_MAX, high_ = 0;
};

// The oracle's record of one node, or of one pointer.
struct NodeTrace {
  uint64_t executions = 0;
  uint64_t address_bits = 0; // all addresses or'ed: the low zeros are the alignment
  // Whether all results and sources of 64 bits are in the range.
  bool fits_u32 = true, fits_s32 = true;
  bool has_negative = false; // a source, as a signed number of its width
  bool has_zero_divisor = false;
};
struct PointerTrace {
  ByteSet loads, stores;
};
struct Trace {
  std::vector<NodeTrace> nodes;
  std::vector<PointerTrace> pointers; // by parameter
  ByteSet loads, stores;              // of all
  bool races = false;                 // results depend on the order of threads
  bool is_undefined = false;          // a shuffle from an absent lane, a division by zero
  bool leaves_arena = false;
  bool is_endless = false; // a loop does not terminate: the launch is left out
};

// The evidence in the rewritten text that a site was rewritten.
enum class Evidence : uint8_t { non_coherent, vectors, wide_division, division };

// A place that a family of rewrites can change.
struct PatternSite {
  std::string family, idiom;
  Evidence evidence = Evidence::non_coherent;
  bool has_evidence = false;
  // Without `necessary` no rewrite of the site is right; with `sufficient` a rewrite is right. Both are computed by
  // brute force from the oracle's record of the launch.
  std::function<bool(const Trace&)> necessary, sufficient;
  // Whether the launch executes none of the instructions that the rewrite changes, so that both forms do the same.
  std::function<bool(const Trace&)> is_idle = [](const Trace&) { return false; };
};

struct Kernel {
  uint64_t seed = 0;
  std::string name;
  std::string target = "sm_80";
  std::vector<Parameter> parameters;
  std::vector<Node> body;
  std::array<uint32_t, 5> registers{}; // number of registers of each kind p h r d f
  uint32_t node_count = 0;
  uint32_t shared_bytes = 0;
  std::vector<PatternSite> sites;
  uint64_t arena_bytes = 0;
  std::vector<Launch> launches;

  std::vector<uint8_t> arena() const; // its bytes before a launch
  // Values of the parameters for an arena at this address.
  std::vector<uint64_t> values(const Launch& launch, uint64_t arena_address) const;
};

size_t kind_index(char kind); // into Kernel::registers
unsigned bytes_of(const std::string& type);

} // namespace ptxrewrite::fuzz::launchtime
