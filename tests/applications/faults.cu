// Errors in programs: faults.cu NAME makes one error, and reports whether CUDA reported it as a GPU does.
#include "check.h"

#include <atomic>
#include <cassert>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

__global__ void write_far(int* data) {
  data[1000 + threadIdx.x] = 1;
}

__global__ void write_odd(char* data) {
  *reinterpret_cast<int*>(data + 2) = 1;
}

__global__ void check_value(const int* data) {
  assert(*data == 5);
}

__global__ void stop() {
  asm volatile("trap;");
}

__global__ void wait_for(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void count(int* data) {
  atomicAdd(data, 1);
}

static int* memory(size_t bytes) {
  int* data;
  CALL(cudaMalloc(&data, bytes));
  CALL(cudaMemset(data, 0, bytes));
  return data;
}

// The launch has failed: synchronising returns the error, and so does every later call.
static void expect_dead(cudaError_t code) {
  EXPECT(cudaDeviceSynchronize() == code);
  EXPECT(cudaGetLastError() == code);
  int* data;
  EXPECT(cudaMalloc(&data, 4) == code);
}

static void two_threads() {
  int* data = memory(4);
  const auto launch = [data] {
    for (int i = 0; i < 50; ++i)
      count<<<2, 64>>>(data);
  };
  std::thread first(launch), second(launch);
  first.join();
  second.join();
  int sum = 0;
  CALL(cudaMemcpy(&sum, data, 4, cudaMemcpyDeviceToHost));
  EXPECT(sum == 2 * 50 * 128);
}

// A child of fork has no context: CUDA's calls fail in it, the parent's do not.
static void fork_child() {
  int* data = memory(4);
  count<<<1, 32>>>(data);
  const pid_t child = fork();
  if (child == 0) {
    count<<<1, 32>>>(data);
    expect_dead(cudaErrorInitializationError);
    std::exit(7);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
  int sum = 0;
  CALL(cudaMemcpy(&sum, data, 4, cudaMemcpyDeviceToHost));
  EXPECT(sum == 32);
}

// While another thread launches.
static void fork_beside_launches() {
  int* data = memory(4);
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over)
      count<<<8, 256>>>(data);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(cudaDeviceSynchronize() == cudaErrorInitializationError ? 7 : 1);
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
  }
  is_over = true;
  other.join();
  CALL(cudaDeviceSynchronize());
}

// Ends the program while the other thread's kernel waits for a value that nothing writes.
static void exit_beside_kernel() {
  int* flag = memory(4);
  std::atomic<bool> is_launching = false;
  std::thread other([&] {
    is_launching = true;
    wait_for<<<1, 1>>>(flag);
  });
  while (!is_launching)
    std::this_thread::yield();
  std::exit(3);
}

// A kernel that waits for the host, launched by the thread that ends the program.
static void exit_beside_waiting_kernel() {
  int* flag;
  CALL(cudaMallocManaged(&flag, 4));
  wait_for<<<1, 64>>>(flag);
  std::exit(3);
}

// The same in a loop whose state always changes.
__global__ void count_until(volatile int* flag, unsigned long long* rounds) {
  while (*flag == 0)
    ++*rounds;
}

static void exit_beside_counting_kernel() {
  int* flag;
  CALL(cudaMallocManaged(&flag, 16));
  count_until<<<1, 1>>>(flag, reinterpret_cast<unsigned long long*>(flag + 2));
  std::exit(3);
}

static void missing_driver_call() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CALL(cudaGetDriverEntryPointByVersion("cuIpcOpenMemHandle", &function, 13000, cudaEnableDefault, &found));
  EXPECT(found == cudaDriverEntryPointSuccess);
  unsigned long long address;
  const char handle[64] = {};
  EXPECT(reinterpret_cast<int (*)(void*, const char*, unsigned)>(function)(&address, handle, 1) == 801);
  // No driver has it.
  CALL(cudaGetDriverEntryPointByVersion("cuMakeCoffee", &function, 13000, cudaEnableDefault, &found));
  EXPECT(found == cudaDriverEntryPointSymbolNotFound && !function);
}

int main(int argument_count, char** arguments) {
  const std::string what = argument_count > 1 ? arguments[1] : "";
  if (what == "out_of_bounds") {
    // The launch itself succeeds, as it does on a GPU, where the kernel has not run yet.
    int* data = memory(100);
    void* pointers[] = {&data};
    CALL(cudaLaunchKernel(reinterpret_cast<void*>(write_far), dim3(1), dim3(32), pointers, 0, nullptr));
    expect_dead(cudaErrorIllegalAddress);
  } else if (what == "misaligned") {
    write_odd<<<1, 1>>>(reinterpret_cast<char*>(memory(100)));
    expect_dead(cudaErrorMisalignedAddress);
  } else if (what == "assertion") {
    check_value<<<1, 1>>>(memory(4));
    expect_dead(cudaErrorAssert);
  } else if (what == "trap") {
    stop<<<1, 1>>>();
    expect_dead(cudaErrorLaunchFailure);
  } else if (what == "hang") {
    wait_for<<<1, 1>>>(memory(4));
    expect_dead(cudaErrorLaunchTimeout);
  } else if (what == "wrong_shape") {
    stop<<<1, 2000>>>();
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    stop<<<0, 32>>>();
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    stop<<<1, 32, 1 << 20>>>();
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
  } else if (what == "no_ptx" || what == "relocatable") {
    stop<<<1, 1>>>();
    EXPECT(cudaGetLastError() == cudaErrorNoKernelImageForDevice);
  } else if (what == "missing_call") {
    EXPECT(cudaIpcOpenMemHandle(nullptr, {}, 0) == cudaErrorNotSupported);
    EXPECT(cudaGetLastError() == cudaErrorNotSupported);
  } else if (what == "exit_early") {
    count<<<1, 32>>>(memory(4));
    std::exit(3);
  } else if (what == "exit_beside_kernel") {
    exit_beside_kernel();
  } else if (what == "exit_beside_waiting_kernel") {
    exit_beside_waiting_kernel();
  } else if (what == "exit_beside_counting_kernel") {
    exit_beside_counting_kernel();
  } else if (what == "two_threads") {
    two_threads();
  } else if (what == "fork") {
    fork_child();
  } else if (what == "fork_beside_launches") {
    fork_beside_launches();
  } else if (what == "missing_driver_call") {
    missing_driver_call();
  } else if (what == "static_runtime") {
    count<<<1, 32>>>(nullptr);
    cudaDeviceSynchronize();
  } else {
    return 2;
  }
  std::puts("right");
}
