"""numba-cuda: a vector addition, a reduction through shared memory, a histogram with atomics, a matrix product."""
import numpy
from numba import cuda, float32

THREADS = 128


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
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


@cuda.jit
def histogram(values, counts):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, values[i], 1)


@cuda.jit
def product(a, b, c):
    x, y = cuda.grid(2)
    if x < c.shape[0] and y < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[x, k] * b[k, y]
        c[x, y] = total


def main():
    random = numpy.random.default_rng(1)
    a = random.random(1000, dtype=numpy.float32)
    b = random.random(1000, dtype=numpy.float32)
    c = cuda.device_array_like(a)
    add[8, THREADS](cuda.to_device(a), cuda.to_device(b), c)
    assert (c.copy_to_host() == a + b).all()

    whole = numpy.arange(1000, dtype=numpy.float32)  # whose sums are exact
    sums = numpy.zeros(1, numpy.float32)
    block_sums[8, THREADS](whole, sums)
    assert sums[0] == whole.sum()

    values = random.integers(0, 10, 5000, dtype=numpy.int32)
    counts = numpy.zeros(10, numpy.int32)
    histogram[4, THREADS](values, counts)
    assert (counts == numpy.bincount(values, minlength=10)).all()

    p = random.integers(0, 9, (33, 17)).astype(numpy.float64)
    q = random.integers(0, 9, (17, 20)).astype(numpy.float64)
    r = numpy.zeros((33, 20))
    stream = cuda.stream()
    with stream.auto_synchronize():
        device = cuda.to_device(r, stream)
        product[(3, 2), (16, 16), stream](cuda.to_device(p, stream), cuda.to_device(q, stream), device)
        device.copy_to_host(r, stream)
    assert (r == p @ q).all()
    print("right")


main()
