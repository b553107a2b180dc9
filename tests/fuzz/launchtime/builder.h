// What sites of random kernels are written with.
#pragma once

#include "tests/fuzz/launchtime/program.h"

#include <string_view>

namespace ptxrewrite::fuzz::launchtime {

// How arguments are chosen: small and plain, or at the edges of their types.
enum class Mood : uint8_t { plain, edges };

class Builder {
public:
  Builder(Kernel& kernel, Random& random);

  Random& random;
  Kernel& kernel;

  Register fresh(char kind);
  Register special(std::string_view name);
  // The first row of that text with as many sources. Its result is a new register ...
  Register op(std::string_view text, std::vector<Operand> sources);
  // ... or this one.
  void assign(Register result, std::string_view text, std::vector<Operand> sources);

  // Parameters; arguments of numbers come from `fill`, of pointers from the generator.
  uint32_t pointer(unsigned grain);
  uint32_t number(char kind);
  Register parameter(uint32_t index) const { return kernel.parameters[index].reg; }
  // Called for every launch, in the order in which they were given.
  using Fill = std::function<void(Random&, Mood, Launch&)>;
  void fill(Fill function) { fills.push_back(std::move(function)); }

  // Elements of an array that starts at the pointer: address of index * stride. `index` is a non-negative 32-bit
  // number; the arithmetic is spelled in one of several ways.
  Register address(uint32_t pointer, Register index, uint32_t stride);
  Register load(uint32_t pointer, Register address, int64_t offset, const std::string& type);
  uint32_t store(uint32_t pointer, Register address, int64_t offset, const std::string& type, Register value);
  uint32_t add_in_memory(uint32_t pointer, Register address, Register value);
  // Through an address that one of several pointers has led to.
  uint32_t store_to_either(Register address, Register value);
  Node& node(Node::Kind kind);

  void branch(Register condition, bool is_negated, const std::function<void()>& body);
  // `body` returns the condition under which there is another trip.
  void loop(const std::function<Register()>& body);
  Register shuffle(const std::string& mode, Register value, Operand lane, Operand bound, Operand members);
  Register vote(const std::string& mode, Register predicate, Operand members);

  Register thread();        // in the block
  Register global_thread(); // in the grid
  uint32_t last_id() const { return kernel.node_count - 1; }

  std::vector<Fill> fills;

private:
  std::vector<std::vector<Node>*> open_; // bodies that are being written, innermost last
};

// The type of a register that holds an element of this type: "u8" is in r, "b16" in h.
char register_kind_of(const std::string& type);

} // namespace ptxrewrite::fuzz::launchtime
