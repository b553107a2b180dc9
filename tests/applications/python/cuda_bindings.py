"""cuda-python: NVRTC makes PTX and machine code; the driver runs it on streams, in graphs, on memory of every kind."""
import ctypes

import numpy
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


def call(result):
    code, *values = result
    assert int(code) == 0, (code, result)
    return values[0] if len(values) == 1 else values


def compiled(architecture):
    program = call(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
    options = [b"--gpu-architecture=" + architecture, b"-lineinfo"]
    call(nvrtc.nvrtcCompileProgram(program, len(options), options))
    ptx = bytes(call(nvrtc.nvrtcGetPTXSize(program)))
    call(nvrtc.nvrtcGetPTX(program, ptx))
    cubin = b""
    if architecture.startswith(b"sm_"):
        cubin = bytes(call(nvrtc.nvrtcGetCUBINSize(program)))
        call(nvrtc.nvrtcGetCUBIN(program, cubin))
    return ptx, cubin


def saxpy(kernel, x, y, stream):
    n = numpy.array(x.size, numpy.uint32)
    a = numpy.array(2.5, numpy.float32)
    memory = [call(driver.cuMemAlloc(v.nbytes)) for v in (x, y)]
    for address, values in zip(memory, (x, y)):
        call(driver.cuMemcpyHtoDAsync(address, values.ctypes.data, values.nbytes, stream))
    arguments = [a] + [numpy.array(int(address), numpy.uint64) for address in memory] + [n]
    pointers = numpy.array([argument.ctypes.data for argument in arguments], numpy.uint64)
    call(driver.cuLaunchKernel(kernel, (x.size + 127) // 128, 1, 1, 128, 1, 1, 0, stream, pointers.ctypes.data, 0))
    result = numpy.empty_like(y)
    call(driver.cuMemcpyDtoHAsync(result.ctypes.data, memory[1], y.nbytes, stream))
    call(driver.cuStreamSynchronize(stream))
    for address in memory:
        call(driver.cuMemFree(address))
    assert (result == numpy.float32(2.5) * x + y).all()


def linked(ptx):
    link = call(driver.cuLinkCreate(0, [], []))
    call(driver.cuLinkAddData(link, driver.CUjitInputType.CU_JIT_INPUT_PTX, ptx, len(ptx), b"saxpy", 0, [], []))
    image, size = call(driver.cuLinkComplete(link))
    copy = ctypes.string_at(image, size)
    call(driver.cuLinkDestroy(link))
    return copy


def main():
    call(driver.cuInit(0))
    device = call(driver.cuDeviceGet(0))
    context = call(driver.cuDevicePrimaryCtxRetain(device))
    call(driver.cuCtxSetCurrent(context))
    attribute = driver.CUdevice_attribute
    major = call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    x = numpy.arange(1000, dtype=numpy.float32)
    y = numpy.arange(1000, 2000, dtype=numpy.float32)
    stream = call(driver.cuStreamCreate(0))
    ptx, _ = compiled(b"compute_%d%d" % (major, minor))
    # Machine code compiled with -lineinfo contains its PTX.
    _, cubin = compiled(b"sm_%d%d" % (major, minor))
    for image in (ptx, cubin, linked(ptx)):
        module = call(driver.cuModuleLoadData(image))
        saxpy(call(driver.cuModuleGetFunction(module, b"saxpy")), x, y, stream)
        call(driver.cuModuleUnload(module))
    print("right")


main()
