#include "emulator/tensor_copies/reduction.h"

#include "emulator/semantics/accumulate.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

namespace ptxrewrite::emulator {
namespace {

using ir::TensorElement;
using semantics::BFloat16;
using semantics::Float16;

template <unsigned bytes> struct UnsignedOf;
template <> struct UnsignedOf<2> { using Type = uint16_t; };
template <> struct UnsignedOf<4> { using Type = uint32_t; };
template <> struct UnsignedOf<8> { using Type = uint64_t; };

struct Add {
  template <class T> static T apply(T old, T value) {
    if constexpr (std::is_same_v<T, float>)
      return semantics::atomic_add_global(old, value);
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(old + value);
    else
      return semantics::atomic_add(old, value);
  }
};
struct AddKept {
  template <class T> static T apply(T old, T value) { return semantics::atomic_add_shared(old, value); }
};
template <bool max> struct MinMax {
  template <class T> static T apply(T old, T value) {
    if constexpr (std::is_integral_v<T>)
      return (max ? old < value : value < old) ? value : old;
    else
      return semantics::atomic_min_max<max>(old, value);
  }
};
struct Increment {
  template <class T> static T apply(T old, T limit) { return old >= limit ? 0 : old + 1; }
};
struct Decrement {
  template <class T> static T apply(T old, T limit) { return old == 0 || old > limit ? limit : old - 1; }
};
struct And {
  template <class T> static T apply(T old, T value) { return old & value; }
};
struct Or {
  template <class T> static T apply(T old, T value) { return old | value; }
};
struct Xor {
  template <class T> static T apply(T old, T value) { return old ^ value; }
};

template <class T, class Operation> void reduce(std::byte* to, const std::byte* from, uint32_t bytes, bool concurrent) {
  using Raw = typename UnsignedOf<sizeof(T)>::Type;
  for (uint32_t i = 0; i < bytes; i += sizeof(T)) {
    T value;
    std::memcpy(&value, from + i, sizeof value);
    if (!concurrent) {
      T old;
      std::memcpy(&old, to + i, sizeof old);
      old = Operation::template apply<T>(old, value);
      std::memcpy(to + i, &old, sizeof old);
      continue;
    }
    std::atomic_ref<Raw> place(*reinterpret_cast<Raw*>(to + i));
    Raw seen = place.load(std::memory_order_relaxed);
    while (!place.compare_exchange_weak(seen,
                                        std::bit_cast<Raw>(Operation::template apply<T>(std::bit_cast<T>(seen), value)),
                                        std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
  }
}

template <class T> ReduceElements ordered(ReduceOperation operation) {
  if (operation == ReduceOperation::min) return &reduce<T, MinMax<false>>;
  return operation == ReduceOperation::max ? &reduce<T, MinMax<true>> : nullptr;
}

// Additions wrap, and bits are unsigned.
template <class T> ReduceElements unsigned_or_bits(ReduceOperation operation) {
  switch (operation) {
  case ReduceOperation::add:
    return &reduce<T, Add>;
  case ReduceOperation::and_:
    return &reduce<T, And>;
  case ReduceOperation::or_:
    return &reduce<T, Or>;
  case ReduceOperation::xor_:
    return &reduce<T, Xor>;
  default:
    return nullptr;
  }
}

template <class T> ReduceElements of_halves(ReduceOperation operation) {
  return operation == ReduceOperation::add ? &reduce<T, Add> : ordered<T>(operation);
}

} // namespace

std::optional<ReduceOperation> reduce_operation_of(const ir::Form& form) {
  using enum ir::Modifier;
  constexpr std::pair<ir::Modifier, ReduceOperation> rows[] = {
      {add, ReduceOperation::add},       {min, ReduceOperation::min},       {max, ReduceOperation::max},
      {inc, ReduceOperation::increment}, {dec, ReduceOperation::decrement}, {and_, ReduceOperation::and_},
      {or_, ReduceOperation::or_},       {xor_, ReduceOperation::xor_},
  };
  for (const auto& [word, operation] : rows)
    if (form.has(word)) return operation;
  return std::nullopt;
}

const char* name_of(ReduceOperation operation) {
  constexpr const char* names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return names[static_cast<unsigned>(operation)];
}

ReduceElements reduce_elements(ReduceOperation operation, TensorElement element, bool keeps_subnormals) {
  switch (element) {
  case TensorElement::u32:
    if (operation == ReduceOperation::increment) return &reduce<uint32_t, Increment>;
    if (operation == ReduceOperation::decrement) return &reduce<uint32_t, Decrement>;
    if (ReduceElements found = ordered<uint32_t>(operation)) return found;
    return unsigned_or_bits<uint32_t>(operation);
  case TensorElement::s32:
    if (ReduceElements found = ordered<int32_t>(operation)) return found;
    return unsigned_or_bits<uint32_t>(operation);
  case TensorElement::u64:
    if (ReduceElements found = ordered<uint64_t>(operation)) return found;
    return unsigned_or_bits<uint64_t>(operation);
  case TensorElement::s64:
    if (ReduceElements found = ordered<int64_t>(operation)) return found;
    return unsigned_or_bits<uint64_t>(operation);
  case TensorElement::f16:
    return of_halves<Float16>(operation);
  case TensorElement::bf16:
    return of_halves<BFloat16>(operation);
  case TensorElement::f32:
    if (operation != ReduceOperation::add) return nullptr;
    return keeps_subnormals ? &reduce<float, AddKept> : &reduce<float, Add>;
  case TensorElement::f64:
    return operation == ReduceOperation::add ? &reduce<double, Add> : nullptr;
  case TensorElement::u8:
  case TensorElement::u16:
  case TensorElement::f32_ftz:
  case TensorElement::tf32:
  case TensorElement::tf32_ftz:
  case TensorElement::b4x16:
  case TensorElement::b4x16_p64:
  case TensorElement::b6x16_p32:
    return nullptr;
  }
  return nullptr;
}

ReduceElements reduce_tensor_elements(ReduceOperation operation, TensorElement element) {
  if (element == TensorElement::f64) return nullptr;
  if (element == TensorElement::s64 && operation == ReduceOperation::add) return nullptr;
  return reduce_elements(operation, element);
}

} // namespace ptxrewrite::emulator
