// What Python holds of a module: handles of functions, instructions and values that know whether what they stand for is
// still there. Tables of a function move when passes run, so that a handle from before raises an exception.
#pragma once

#include "ir/core/module.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::python {

// As long as handles may be used.
struct Lease {
  std::shared_ptr<ir::Module> keeps; // nullptr: a pass has the module
  bool alive = true;
};

struct FunctionHandle {
  std::shared_ptr<Lease> lease;
  ir::Function* function = nullptr;

  ir::Function& get() const; // raises where the lease is over
};

struct InstructionHandle {
  FunctionHandle owner;
  ir::InstructionId id;

  const ir::Instruction& get() const; // raises where it was removed
};

struct ValueHandle {
  FunctionHandle owner;
  ir::ValueId id;
};

// One operand with all that is inside it (addresses, vectors ...).
struct OperandHandle {
  FunctionHandle owner; // none for constants that Python made
  std::vector<ir::Operand> parts;
};

class ModuleBox {
public:
  explicit ModuleBox(std::shared_ptr<ir::Module> module) : lease_(std::make_shared<Lease>()) {
    lease_->keeps = std::move(module);
  }
  ir::Module& get() const; // raises while passes run over it
  const std::shared_ptr<Lease>& lease() const { return lease_; }
  // Passes take it: handles are over. `put_back` ends that, with the module as they left it.
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

// An exception that a pass written in Python raised on this thread since the last call; none: a null object. Raised
// once the pipeline is over, because nothing is thrown through the pass manager.
void raise_error_of_pass();

} // namespace ptxrewrite::python
