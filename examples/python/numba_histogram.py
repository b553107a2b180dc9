"""numba-cuda's kernels on the emulator, compared with NumPy. Needs no GPU."""
import numpy
from numba import cuda, float32

from ptxrewrite.numba import kernel

THREADS = 128


@kernel
def block_sums(values, sums):
    buffer = cuda.shared.array(THREADS, float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    buffer[thread] = values[i] if i < values.size else 0.0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if thread < step:
            buffer[thread] += buffer[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        cuda.atomic.add(sums, 0, buffer[0])


@kernel(passes="dce")
def product(a, b, c):
    x, y = cuda.grid(2)
    if x < c.shape[0] and y < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[x, k] * b[k, y]
        c[x, y] = total


def main():
    values = numpy.arange(1000, dtype=numpy.float32)  # whose sums are exact
    sums = numpy.zeros(1, numpy.float32)
    run = block_sums[8, THREADS](values, sums)
    assert sums[0] == values.sum()
    print(run)

    random = numpy.random.default_rng(1)
    p = random.integers(0, 9, (33, 17)).astype(numpy.float64)
    q = random.integers(0, 9, (17, 20)).astype(numpy.float64)
    r = numpy.zeros((33, 20))
    product[(3, 2), (16, 16)](p, q, r)
    assert (r == p @ q).all()
    print("right")


main()
