"""PyCUDA: modules from PTX and from source, which nvcc makes machine code of, arrays, a reduction, pinned memory."""
import numpy
import pycuda.autoinit  # noqa: F401  makes the context
import pycuda.driver as driver
import pycuda.gpuarray as gpuarray
from pycuda.compiler import SourceModule, compile as nvcc_compile
from pycuda.elementwise import ElementwiseKernel

SOURCE = """
extern "C" __global__ void twice(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= 2;
}
__constant__ int step;
extern "C" __global__ void count(int* out) { atomicAdd(out, step); }
"""


def main():
    ptx = nvcc_compile(SOURCE, no_extern_c=True, target="ptx", cache_dir=False)
    module = driver.module_from_buffer(ptx)
    values = numpy.arange(500, dtype=numpy.float32)
    result = values.copy()
    module.get_function("twice")(driver.InOut(result), numpy.int32(values.size), block=(128, 1, 1), grid=(4, 1))
    assert (result == 2 * values).all()

    step, size = module.get_global("step")
    assert size == 4
    driver.memcpy_htod(step, numpy.array(3, numpy.int32))
    out = driver.pagelocked_zeros(1, numpy.int32, mem_flags=driver.host_alloc_flags.DEVICEMAP)
    module.get_function("count")(numpy.uint64(out.base.get_device_pointer()), block=(32, 1, 1), grid=(2, 1))
    driver.Context.synchronize()
    assert out[0] == 3 * 64
    start, end = driver.Event(), driver.Event()
    start.record()
    end.record()
    end.synchronize()
    assert end.time_since(start) >= 0

    function = SourceModule("__global__ void add(int* data, int step) { data[threadIdx.x] += step; }",
                            cache_dir=False).get_function("add")
    numbers = numpy.arange(64, dtype=numpy.int32)
    array = gpuarray.to_gpu(numbers)
    function(array, numpy.int32(5), block=(64, 1, 1))
    assert (array.get() == numbers + 5).all()
    assert gpuarray.sum(array).get() == (numbers + 5).sum()
    ElementwiseKernel("int* out, int* in, int factor", "out[i] = factor * in[i]")(array, array, numpy.int32(3))
    assert (array.get() == 3 * (numbers + 5)).all()
    print("right")


main()
