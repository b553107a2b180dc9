// Helper functions for writing the sites of random kernels.
#pragma once

#include "tests/fuzz/launchtime/program.h"

#include <string_view>

namespace ptxrewrite::fuzz::launchtime {

// The choice of arguments: small and plain, or at the edges of their types.
enum class Mood : uint8_t { plain, edges };

class Builder {
public:
  Builder(Kernel& kernel, Random& random);

  Random& random;
  Kernel& kernel;

  Register fresh(char kind);
  Register special(std::string_view name);
  // The first row with that text and number of sources. Its result is a new register ...
  Register op(std::string_view text, std::vector<Operand> sources);
  // ... or this one.
  void assign(Register result, std::string_view text, std::vector<Operand> sources);

  // Parameters; `fill` chooses the arguments of numbers, the generator those of pointers.
  uint32_t pointer(unsigned grain);
  uint32_t number(char kind);
  Register parameter(uint32_t index) const { return kernel.parameters[index].reg; }
  // Called for every launch, in the order of registration.
  using Fill = std::function<void(Random&, Mood, Launch&)>;
  void fill(Fill function) { fills.push_back(std::move(function)); }

  // Elements of an array that starts at the pointer: address of index * stride. `index` is a non-negative 32-bit
  // number; the arithmetic is written in one of several ways.
  Register address(uint32_t pointer, Register index, uint32_t stride);
  Register load(uint32_t pointer, Register address, int64_t offset, const std::string& type);
  uint32_t store(uint32_t pointer, Register address, int64_t offset, const std::string& type, Register value);
  uint32_t add_in_memory(uint32_t pointer, Register address, Register value);
  // Stores to an address computed from one of several pointers.
  uint32_t store_to_either(Register address, Register value);
  Node& node(Node::Kind kind);

  void branch(Register condition, bool is_negated, const std::function<void()>& body);
  // `body` returns the condition for another trip.
  void loop(const std::function<Register()>& body);
  Register shuffle(const std::string& mode, Register value, Operand lane, Operand bound, Operand members);
  Register vote(const std::string& mode, Register predicate, Operand members);

  Register thread();        // in the block
  Register global_thread(); // in the grid
  uint32_t last_id() const { return kernel.node_count - 1; }

  std::vector<Fill> fills;

private:
  std::vector<std::vector<Node>*> open_; // open bodies, innermost last
};

// The kind of register for an element of this type: "u8" is in r, "b16" in h.
char register_kind_of(const std::string& type);

} // namespace ptxrewrite::fuzz::launchtime
