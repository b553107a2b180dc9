"""cuda.core: a program compiled and launched, memory from the device's pool, events."""
import numpy
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
template <class T> __global__ void scale(T* values, T factor, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}
"""


def main():
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    kernel = Program(SOURCE, code_type="c++", options=options).compile(
        "ptx", name_expressions=("scale<double>",)).get_kernel("scale<double>")
    values = numpy.arange(300, dtype=numpy.float64)
    buffer = device.memory_resource.allocate(values.nbytes, stream=stream)
    from cuda.bindings import driver
    assert int(driver.cuMemcpyHtoD(int(buffer.handle), values.ctypes.data, values.nbytes)[0]) == 0
    start = stream.record()
    launch(stream, LaunchConfig(grid=3, block=128), kernel, buffer, numpy.float64(3), numpy.uint32(values.size))
    end = stream.record()
    stream.sync()
    result = numpy.empty_like(values)
    assert int(driver.cuMemcpyDtoH(result.ctypes.data, int(buffer.handle), values.nbytes)[0]) == 0
    assert (result == 3 * values).all()
    assert end.is_done and start.is_done
    buffer.close(stream)
    print("right")


main()
