// The members of a set of registers in ascending order. Sets of an instruction or region have few of 256.
#pragma once

#include "ir/machine/registers/register_program.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::ir {

// for (uint16_t number : RegisterMembers(set)): the set must outlive the loop and stay as it is.
class RegisterMembers {
public:
  explicit RegisterMembers(const RegisterSet& set) : set_(set) {}
  explicit RegisterMembers(RegisterSet&&) = delete;

  class Iterator {
  public:
    Iterator(const RegisterSet& set, size_t number) : set_(&set), number_(number) {}
    uint16_t operator*() const { return static_cast<uint16_t>(number_); }
    Iterator& operator++() {
      number_ = from(*set_, number_ + 1);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return number_ != other.number_; }

  private:
    const RegisterSet* set_;
    size_t number_;
  };

  Iterator begin() const { return {set_, from(set_, 0)}; }
  Iterator end() const { return {set_, set_.size()}; }

private:
  // The first member that is at least `number`, or the size of the set.
  static size_t from(const RegisterSet& set, size_t number) {
#ifdef __GLIBCXX__ // searches whole words
    return number == 0 ? set._Find_first() : set._Find_next(number - 1);
#else
    while (number < set.size() && !set.test(number))
      ++number;
    return number;
#endif
  }

  const RegisterSet& set_;
};

} // namespace ptxrewrite::ir
