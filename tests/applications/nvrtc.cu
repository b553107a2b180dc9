// NVRTC: machine code that the program asks for without line information. `exec` adds the option that puts PTX into it.
#include "check.h"

#include <cstring>
#include <cuda.h>
#include <nvrtc.h>
#include <string>
#include <vector>

static const char* const text = R"(
extern "C" __global__ void scale(float* data, float factor) {
  data[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
})";

static std::string cubin(std::vector<const char*> options) {
  nvrtcProgram program;
  EXPECT(nvrtcCreateProgram(&program, text, "scale.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  EXPECT(nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()) == NVRTC_SUCCESS);
  size_t bytes = 0;
  EXPECT(nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS);
  std::string image(bytes, '\0');
  EXPECT(nvrtcGetCUBIN(program, image.data()) == NVRTC_SUCCESS);
  EXPECT(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
  return image;
}

static void scale(const std::string& image) {
  CUmodule module;
  CUfunction function;
  EXPECT(cuModuleLoadData(&module, image.data()) == CUDA_SUCCESS);
  EXPECT(cuModuleGetFunction(&function, module, "scale") == CUDA_SUCCESS);
  std::vector<float> host(256, 1.5f);
  float *data, factor = 2;
  CALL(cudaMalloc(&data, 256 * sizeof(float)));
  CALL(cudaMemcpy(data, host.data(), 256 * sizeof(float), cudaMemcpyHostToDevice));
  void* arguments[] = {&data, &factor};
  EXPECT(cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS);
  CALL(cudaMemcpy(host.data(), data, 256 * sizeof(float), cudaMemcpyDeviceToHost));
  for (float value : host)
    EXPECT(value == 3);
}

int main() {
  CALL(cudaFree(nullptr));
  scale(cubin({"-arch=sm_90"}));
  scale(cubin({"--gpu-architecture=sm_90", "-lineinfo"}));
  nvrtcProgram program;
  EXPECT(nvrtcCreateProgram(&program, "not C++", "wrong.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  EXPECT(nvrtcCompileProgram(program, 0, nullptr) == NVRTC_ERROR_COMPILATION);
  std::puts("right");
}
