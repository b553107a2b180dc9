// Indices and pointers of random kernels: address arithmetic in the widths and signednesses of compilers and
// programmers, also with detours that wrap and cancel.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

uint32_t Builder::extremum(SpecialRegister which) const {
  uint32_t largest = 0;
  for (const Shape& shape : kernel_.shapes) {
    const auto axis = static_cast<size_t>(which) % 3;
    const bool of_block = which <= SpecialRegister::ntid_z;
    const bool is_index =
        which <= SpecialRegister::tid_z || (which >= SpecialRegister::ctaid_x && which <= SpecialRegister::ctaid_z);
    largest = std::max(largest, (of_block ? shape.block : shape.grid)[axis] - (is_index ? 1 : 0));
  }
  return largest;
}

uint32_t Builder::multiply_add(uint32_t a, const Operand& b, uint32_t c) {
  switch (random_.below(5)) {
  case 0:
    return compute("mad.lo.u32", "r", "rrr", {reg(a), b, reg(c)});
  case 1: {
    const uint32_t product = compute("mul.lo.s32", "r", "rr", {reg(a), b});
    return compute("add.s32", "r", "rr", {reg(product), reg(c)});
  }
  case 2: {
    const uint32_t product = compute("mul.wide.u32", "d", "rr", {reg(a), b});
    const uint32_t narrow = compute("cvt.u32.u64", "r", "D", {reg(product)});
    return compute("add.u32", "r", "rr", {reg(c), reg(narrow)});
  }
  case 3: {
    const uint32_t product = compute("mul24.lo.u32", "r", "rr", {reg(a), b});
    return compute("add.u32", "r", "rr", {reg(product), reg(c)});
  }
  default:
    return compute("mad.lo.s32", "r", "rrr", {reg(a), b, reg(c)});
  }
}

// a * b + c of special registers, read in this order.
uint32_t Builder::multiply_add(SpecialRegister a, SpecialRegister b, SpecialRegister c) {
  const uint32_t first = special(a);
  const uint32_t second = special(b);
  return multiply_add(first, reg(second), special(c));
}

uint32_t Builder::thread_in_block() {
  using enum SpecialRegister;
  if (dimensions_ == 1) return special(tid_x);
  if (dimensions_ == 2) return multiply_add(tid_y, ntid_x, tid_x);
  const uint32_t plane = multiply_add(tid_z, ntid_y, tid_y);
  const uint32_t width = special(ntid_x);
  return multiply_add(plane, reg(width), special(tid_x));
}

uint32_t Builder::block_in_grid() {
  using enum SpecialRegister;
  if (dimensions_ == 1) return special(ctaid_x);
  if (dimensions_ == 2) return multiply_add(ctaid_y, nctaid_x, ctaid_x);
  const uint32_t plane = multiply_add(ctaid_z, nctaid_y, ctaid_y);
  const uint32_t width = special(nctaid_x);
  return multiply_add(plane, reg(width), special(ctaid_x));
}

uint32_t Builder::block_size() {
  using enum SpecialRegister;
  uint32_t size = special(ntid_x);
  if (dimensions_ >= 2) size = compute("mul.lo.u32", "r", "rr", {reg(size), reg(special(ntid_y))});
  if (dimensions_ == 3) size = compute("mul.lo.s32", "r", "rr", {reg(special(ntid_z)), reg(size)});
  return size;
}

uint32_t Builder::global_index(bool row_major) {
  using enum SpecialRegister;
  if (!row_major || dimensions_ == 1) {
    const uint32_t block = block_in_grid();
    const uint32_t size = block_size();
    return multiply_add(block, reg(size), thread_in_block());
  }
  uint32_t row = multiply_add(ctaid_y, ntid_y, tid_y);
  if (dimensions_ == 3) {
    const uint32_t rows = compute("mul.lo.s32", "r", "rr", {reg(special(nctaid_y)), reg(special(ntid_y))});
    const uint32_t plane = multiply_add(ctaid_z, ntid_z, tid_z);
    row = multiply_add(plane, reg(rows), row);
  }
  const uint32_t pitch = compute("mul.lo.s32", "r", "rr", {reg(special(ntid_x)), reg(special(nctaid_x))});
  const uint32_t column = multiply_add(ctaid_x, ntid_x, tid_x);
  return multiply_add(row, reg(pitch), column);
}

uint32_t Builder::perturbed(uint32_t index) {
  if (!random_.chance(knobs_.perturb)) return index;
  count("index with wrap-around");
  const auto factor = static_cast<uint32_t>(random_.next()) | 1;
  uint32_t inverse = factor; // Newton's iteration doubles the right bits
  for (int i = 0; i < 5; ++i)
    inverse *= 2 - factor * inverse;
  switch (random_.below(6)) {
  case 0: {
    const int64_t constant =
        random_.one_in(2) ? 0x7ffffff0 + random_.between(0, 15) : random_.between(-0x80000000ll, -1);
    const uint32_t moved = compute("add.s32", "r", "rr", {reg(index), number32(constant)});
    return compute("sub.s32", "r", "rr", {reg(moved), number32(constant)});
  }
  case 1: {
    const uint32_t negative = compute("neg.s32", "r", "r", {reg(index)});
    return compute("sub.s32", "r", "rr", {number32(0), reg(negative)});
  }
  case 2: {
    const uint32_t triple = compute("mul.lo.s32", "r", "rr", {reg(index), number32(3)});
    const uint32_t twice = compute("shl.b32", "r", "rc", {reg(index), number32(1)});
    return compute("sub.s32", "r", "rr", {reg(triple), reg(twice)});
  }
  case 3: {
    const uint32_t narrow = compute("cvt.u16.u32", "h", "R", {reg(index)});
    return compute("cvt.u32.u16", "r", "H", {reg(narrow)});
  }
  case 4: {
    const uint32_t far = compute("mul.lo.s32", "r", "rr", {reg(index), number32(factor)});
    return compute("mul.lo.s32", "r", "rr", {reg(far), number32(inverse)});
  }
  default: {
    const uint32_t high = compute("shl.b32", "r", "rc", {reg(index), number32(16)});
    return compute("shr.u32", "r", "rc", {reg(high), number32(16)});
  }
  }
}

// base + index * element_bytes. A negative index needs is_signed.
uint32_t Builder::scaled_pointer(uint32_t base, uint32_t index, unsigned element_bytes, bool is_signed) {
  unsigned shift = 0;
  while ((1u << shift) < element_bytes)
    ++shift;
  const auto add = [&](uint32_t bytes) {
    if (random_.one_in(3)) return compute("add.s64", "a", "Da", {reg(bytes), reg(base)});
    return compute(random_.one_in(2) ? "add.s64" : "add.u64", "a", "ad", {reg(base), reg(bytes)});
  };
  const auto wide = [&](uint32_t narrow) {
    return is_signed ? compute("cvt.s64.s32", "d", "R", {reg(narrow)})
                     : compute("cvt.u64.u32", "d", "R", {reg(narrow)});
  };
  switch (random_.below(7)) {
  case 0:
    return add(compute(is_signed ? "mul.wide.s32" : "mul.wide.u32", "d", "rr", {reg(index), number32(element_bytes)}));
  case 1:
    return add(compute("shl.b64", "d", "dc", {reg(wide(index)), number32(shift)}));
  case 2:
    return add(wide(compute("shl.b32", "r", "rc", {reg(index), number32(shift)})));
  case 3:
    return compute(is_signed ? "mad.wide.s32" : "mad.wide.u32", "a", "Rra",
                   {reg(index), number32(element_bytes), reg(base)});
  case 4:
    return compute("mad.lo.s64", "a", "Dda", {reg(wide(index)), number64(element_bytes), reg(base)});
  case 5:
    return add(compute("mul.lo.s64", "d", "dd", {reg(wide(index)), number64(element_bytes)}));
  default: { // by way of 64 bits
    const int64_t constant = random_.between(-0x7fffffffffff, 0x7fffffffffff);
    const uint32_t bytes = compute("mul.lo.u64", "d", "dd", {reg(wide(index)), number64(element_bytes)});
    const uint32_t moved = compute("add.s64", "d", "dd", {reg(bytes), number64(constant)});
    const uint32_t pointer = add(moved);
    return compute("sub.s64", "a", "ad", {reg(pointer), number64(constant)});
  }
  }
}

uint32_t Builder::masked_index(uint32_t elements) {
  const uint32_t any = pick_variable(Kind::b32, Level::thread);
  return compute("and.b32", "r", "rr", {reg(any), number32(elements - 1)});
}

// Coefficients times indices and parameters; terms that would go out of bounds are left out.
uint32_t Builder::linear_index(uint32_t limit) {
  using enum SpecialRegister;
  static constexpr SpecialRegister indices[] = {tid_x, tid_y, tid_z, ctaid_x, ctaid_y, ctaid_z, ntid_x};
  uint32_t left = limit - 1;
  uint32_t sum = 0;
  bool empty = true;
  if (kernel_.shapes.size() > 0 && left >= largest_block_ * largest_grid_ && random_.one_in(2)) {
    sum = random_.one_in(2) ? global_index(random_.one_in(2)) : global_index_;
    left -= largest_block_ * largest_grid_;
    empty = false;
  }
  for (size_t i = 0, terms = 1 + random_.below(3); i < terms; ++i) {
    const SpecialRegister which = random_.pick(indices);
    const auto coefficient = static_cast<uint32_t>(random_.between(1, 20));
    const uint32_t most = coefficient * extremum(which);
    if (most > left) continue;
    left -= most;
    const Operand factor =
        random_.one_in(4) ? reg(compute("mov.u32", "r", "r", {number32(coefficient)})) : number32(coefficient);
    if (empty)
      sum = compute("mul.lo.s32", "r", "rr", {reg(special(which)), factor});
    else
      sum = multiply_add(special(which), factor, sum);
    empty = false;
  }
  return empty ? special(tid_x) : sum;
}

uint32_t Builder::shared_pointer(int object, uint32_t slot) {
  Statement statement;
  statement.kind = StatementKind::address_of;
  statement.text = "mov.u32";
  statement.memory.object = object;
  const uint32_t base = new_variable(Kind::shared_pointer, Level::block, true);
  statement.results = {base};
  emit(std::move(statement));
  switch (random_.below(3)) {
  case 0:
    return compute("mad.lo.s32", "s", "Rrs", {reg(slot), number32(shared_slot), reg(base)});
  case 1: {
    const uint32_t bytes = compute("shl.b32", "r", "rc", {reg(slot), number32(4)});
    return compute("add.u32", "s", "Rs", {reg(bytes), reg(base)});
  }
  default: {
    const uint32_t bytes = compute("mul.lo.u32", "r", "rr", {reg(slot), number32(shared_slot)});
    return compute("add.s32", "s", "sr", {reg(base), reg(bytes)});
  }
  }
}

uint32_t Builder::object_pointer(int object, bool generic) {
  Statement statement;
  statement.kind = StatementKind::address_of;
  statement.text = "mov.u64";
  statement.memory.object = object;
  const uint32_t pointer = new_variable(Kind::pointer, Level::block, true);
  statement.results = {pointer};
  emit(std::move(statement));
  if (!generic) return pointer;
  switch (kernel_.objects[static_cast<size_t>(object)].space) {
  case Space::global:
    return compute("cvta.global.u64", "a", "a", {reg(pointer)});
  case Space::constant:
    return compute("cvta.const.u64", "a", "a", {reg(pointer)});
  case Space::local:
    return compute("cvta.local.u64", "a", "a", {reg(pointer)});
  default:
    return compute("cvta.shared.u64", "a", "a", {reg(pointer)});
  }
}

} // namespace ptxrewrite::fuzz
