// Handles by which Python accesses functions, instructions and values of a module, and which know whether their objects
// still exist. Tables of a function move when passes run, so that using an older handle raises an exception.
#pragma once

#include "ir/core/module.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::python {

// Determines how long handles may be used.
struct Lease {
  std::shared_ptr<ir::Module> keeps; // nullptr if a pass owns the module
  bool alive = true;
};

struct FunctionHandle {
  std::shared_ptr<Lease> lease;
  ir::Function* function = nullptr;

  ir::Function& get() const; // raises if the lease has ended
};

struct InstructionHandle {
  FunctionHandle owner;
  ir::InstructionId id;

  const ir::Instruction& get() const; // raises if it was removed
};

struct ValueHandle {
  FunctionHandle owner;
  ir::ValueId id;
};

// One operand with its nested parts (addresses, vectors ...).
struct OperandHandle {
  FunctionHandle owner; // empty for constants created by Python
  std::vector<ir::Operand> parts;
};

class ModuleBox {
public:
  explicit ModuleBox(std::shared_ptr<ir::Module> module) : lease_(std::make_shared<Lease>()) {
    lease_->keeps = std::move(module);
  }
  ir::Module& get() const; // raises while passes run over it
  const std::shared_ptr<Lease>& lease() const { return lease_; }
  // Gives the module to passes, which invalidates all handles. `put_back` returns the module in its new state.
  std::shared_ptr<ir::Module> take();
  void put_back(std::shared_ptr<ir::Module> module);

private:
  std::shared_ptr<Lease> lease_;
};

void bind_module(pybind11::module_& core);
void bind_builder(pybind11::module_& core);
void bind_passes(pybind11::module_& core);
void bind_rewrite(pybind11::module_& core);
void bind_launch(pybind11::module_& core);

// Raises the exception that a Python pass raised on this thread since the last call, if any. This happens after the
// pipeline has ended, because exceptions must not pass through the pass manager.
void raise_error_of_pass();

} // namespace ptxrewrite::python
