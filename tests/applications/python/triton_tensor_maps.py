"""Triton's tensor descriptors on Hopper, through its own launcher: products of matrices whose tiles are loaded and
stored by tensor copies (TMA), by maps that the driver or the kernel makes; sums by reductions of tiles."""
import ml_dtypes
import numpy
import triton
import triton.language as tl
from cuda.bindings import driver
from triton.tools.tensor_descriptor import TensorDescriptor

NAMES = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "float8_e4m3fn": "float8e4nv",
         "float8_e5m2": "float8e5"}


class Tensor:
    """The interface that Triton requires of a tensor: address, type and shape."""

    def __init__(self, values):
        self.values = values
        self.dtype = getattr(tl, NAMES[values.dtype.name])
        self.shape = list(values.shape)
        self.address = int(call(driver.cuMemAlloc(values.nbytes)))
        call(driver.cuMemcpyHtoD(self.address, values.ctypes.data, values.nbytes))

    def data_ptr(self):
        return self.address

    def stride(self):
        return [self.values.strides[0] // self.values.itemsize, 1]

    def element_size(self):
        return self.values.itemsize

    def fetch(self):
        call(driver.cuMemcpyDtoH(self.values.ctypes.data, self.address, self.values.nbytes))
        return self.values

    def tiles(self, block):
        return TensorDescriptor(self, self.shape, self.stride(), list(block))


def call(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) > 1 else None


@triton.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, k, K):
        total = tl.dot(a.load([row, step]), b.load([column, step]).T, total)
    c.store([row, column], total.to(c.dtype))


@triton.jit
def own_maps(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    product(tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K]), tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K]),
            tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N]), k, M, N, K)


@triton.jit
def add(x, sums, m, n, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    rows = row + tl.arange(0, M)
    columns = column + tl.arange(0, N)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    sums.atomic_add([row, column], tl.load(x + rows[:, None] * n + columns[None, :], mask=mask, other=1e9))


def check(found, a, b, bits):
    """Sums are in f32; the result is rounded to `bits` of its type."""
    right = a.astype(numpy.float64) @ b.astype(numpy.float64).T
    assert abs(found.astype(numpy.float64) - right).max() <= abs(right).max() * 2.0**-bits


def main():
    call(driver.cuInit(0))
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(0))))
    random = numpy.random.default_rng(1)
    m, n, k = 200, 136, 192  # no multiples of the tiles
    for kind, result, tile, bits in ((numpy.float16, numpy.float16, 64, 10), (ml_dtypes.bfloat16, ml_dtypes.bfloat16, 64, 7),
                                     (ml_dtypes.float8_e4m3fn, numpy.float16, 128, 10),
                                     (ml_dtypes.float8_e5m2, numpy.float16, 128, 10)):
        a = random.standard_normal((m, k)).astype(kind)
        b = random.standard_normal((n, k)).astype(kind)
        c = Tensor(numpy.zeros((m, n), result))
        kernel = product[(2, 3)](Tensor(a).tiles((128, tile)), Tensor(b).tiles((64, tile)), c.tiles((128, 64)), k, 128, 64, tile)
        assert "cp.async.bulk.tensor" in kernel.asm["ptx"] and "wgmma" in kernel.asm["ptx"]
        check(c.fetch(), a, b, bits)

    scratch = []
    def allocate(size, alignment, stream):
        scratch.append(Tensor(numpy.zeros((1, size // 4), numpy.float32)))
        return scratch[-1]
    triton.set_allocator(allocate)
    a = random.standard_normal((m, k)).astype(numpy.float16)
    b = random.standard_normal((n, k)).astype(numpy.float16)
    c = Tensor(numpy.zeros((m, n), numpy.float16))
    kernel = own_maps[(4, 3)](Tensor(a), Tensor(b), c, m, n, k, 64, 64, 64)
    assert "tensormap.replace" in kernel.asm["ptx"]
    check(c.fetch(), a, b, 10)

    x = random.standard_normal((70, 52)).astype(numpy.float32)
    sums = random.standard_normal((70, 52)).astype(numpy.float32)
    right = x + sums
    there = Tensor(sums)
    kernel = add[(3, 2)](Tensor(x), there.tiles((32, 32)), 70, 52, 32, 32)
    assert "cp.reduce.async.bulk.tensor" in kernel.asm["ptx"]
    assert (there.fetch() == right).all()
    print("right")


main()
