// The heap that malloc of a kernel takes from: a range of device addresses of fixed size, and which parts of it are
// free (CUDA programming guide, Dynamic Global Memory Allocation).
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace ptxrewrite::emulator {

// What CUDA gives a context that does not ask for more (cudaLimitMallocHeapSize).
inline constexpr uint64_t default_heap_bytes = uint64_t(8) << 20;

class KernelHeap {
public:
  KernelHeap() = default;
  KernelHeap(uint64_t begin, uint64_t bytes) { put(begin, bytes); }

  // The smallest free part that is big enough, aligned to 16 bytes; 0: there is none.
  uint64_t take(uint64_t bytes);
  // What take() gave for so many bytes.
  void give_back(uint64_t address, uint64_t bytes);

private:
  void put(uint64_t address, uint64_t bytes);
  void remove(std::map<uint64_t, uint64_t>::iterator part);

  std::map<uint64_t, uint64_t> parts_;               // free ones: address -> bytes
  std::set<std::pair<uint64_t, uint64_t>> by_bytes_; // the same: bytes, address
};

} // namespace ptxrewrite::emulator
