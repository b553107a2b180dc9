"""Rows of a table of Triton kernels: each is compiled for the GPU that `ptxrewrite exec` emulates, launched by Triton's own
launcher, and compared with NumPy. Names of rows as arguments, by default all. A line for each: its name and "right" or the
error; exits with 1 unless all are right.
"""
import os
import sys

import numpy
import triton
import triton.language as tl
from cuda.bindings import driver
from triton.tools.tensor_descriptor import TensorDescriptor


def call(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) > 1 else None


class Tensor:
    """The interface that Triton requires of a tensor. `codes`: the bytes of types that NumPy lacks, with `kind`."""

    def __init__(self, codes, kind):
        self.codes = numpy.ascontiguousarray(codes)
        self.dtype = kind
        self.shape = list(codes.shape)
        self.address = int(call(driver.cuMemAlloc(codes.nbytes)))
        call(driver.cuMemcpyHtoD(self.address, self.codes.ctypes.data, codes.nbytes))

    def data_ptr(self):
        return self.address

    def stride(self):
        return [self.codes.strides[0] // self.codes.itemsize, 1]

    def element_size(self):
        return self.codes.itemsize

    def fetch(self):
        call(driver.cuMemcpyDtoH(self.codes.ctypes.data, self.address, self.codes.nbytes))
        return self.codes

    def tiles(self, block):
        return TensorDescriptor(self, self.shape, self.stride(), list(block))


def floats(values):
    return Tensor(values.astype(numpy.float32), tl.float32)


def halves(values):
    return Tensor(values.astype(numpy.float16), tl.float16)


def zeros(*shape):
    return floats(numpy.zeros(shape, numpy.float32))


def whole(random, *shape):
    return random.integers(-4, 5, shape).astype(numpy.float32)


# Whole numbers from -4 to 4 have exact codes in every type.
def encode(values, kind):
    if kind == tl.float16:
        return Tensor(values.astype(numpy.float16), kind)
    if kind == tl.float32:
        return Tensor(values.astype(numpy.float32), kind)
    if kind == tl.bfloat16:
        return Tensor((values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16), kind)
    if kind == tl.float8e5:
        return Tensor((values.astype(numpy.float16).view(numpy.uint16) >> 8).astype(numpy.uint8), kind)
    if kind == tl.int8:
        return Tensor(values.astype(numpy.int8), kind)
    assert kind == tl.float8e4nv
    bits = values.astype(numpy.float16).view(numpy.uint16).astype(numpy.int32)  # the exponent's bias is 7, not 15
    codes = (bits >> 8 & 0x80) | numpy.where(values == 0, 0, (bits >> 7 & 0xff) - (8 << 3))
    return Tensor(codes.astype(numpy.uint8), kind)


# --- elementwise kernels, reductions ---


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(x + tl.program_id(0) * columns + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * columns + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@triton.jit
def layer_norm(x, weight, bias, out, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(x + tl.program_id(0) * columns + offsets, mask=mask, other=0.0)
    mean = tl.sum(row, axis=0) / columns
    apart = tl.where(mask, row - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, axis=0) / columns + 1e-5)
    normed = apart * scale * tl.load(weight + offsets, mask=mask) + tl.load(bias + offsets, mask=mask)
    tl.store(out + tl.program_id(0) * columns + offsets, normed, mask=mask)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + offsets, mask=offsets < n, other=0), BINS, mask=offsets < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def scan(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.cumsum(tl.load(x + offsets), axis=0))


def check_add(random):
    x, y = random.random(1000, dtype=numpy.float32), random.random(1000, dtype=numpy.float32)
    out = zeros(1000)
    add[(4, )](floats(x), floats(y), out, 1000, BLOCK=256)
    assert (out.fetch() == x + y).all()


def check_softmax(random):
    x = random.standard_normal((6, 300)).astype(numpy.float32)
    out = zeros(6, 300)
    softmax[(6, )](floats(x), out, 300, BLOCK=512)
    right = numpy.exp(x.astype(numpy.float64))
    assert numpy.allclose(out.fetch(), right / right.sum(axis=1, keepdims=True), rtol=1e-5)


def check_layer_norm(random):
    x = random.standard_normal((5, 700)).astype(numpy.float32)
    weight, bias = random.standard_normal(700), random.standard_normal(700)
    out = zeros(5, 700)
    layer_norm[(5, )](floats(x), floats(weight), floats(bias), out, 700, BLOCK=1024)
    wide = x.astype(numpy.float64)
    apart = wide - wide.mean(axis=1, keepdims=True)
    right = apart / numpy.sqrt((apart * apart).mean(axis=1, keepdims=True) + 1e-5) * weight + bias
    assert numpy.allclose(out.fetch(), right, rtol=1e-4, atol=1e-5)


def check_histogram(random):
    x = random.integers(0, 64, 3000).astype(numpy.int32)
    out = Tensor(numpy.zeros(64, numpy.int32), tl.int32)
    histogram[(3, )](Tensor(x, tl.int32), out, 3000, BLOCK=1024, BINS=64)
    assert (out.fetch() == numpy.bincount(x, minlength=64)).all()


def check_scan(random):
    x = random.integers(-50, 50, (3, 1024)).astype(numpy.int32)
    out = Tensor(numpy.zeros_like(x), tl.int32)
    scan[(3, )](Tensor(x, tl.int32), out, BLOCK=1024)
    assert (out.fetch() == x.cumsum(axis=1)).all()


# --- products of matrices ---


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SUMS: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=SUMS)
    for step in tl.range(0, k, K, num_stages=3):
        left = tl.load(a + rows[:, None] * k + (step + inner)[None, :])
        right = tl.load(b + columns[None, :] * k + (step + inner)[:, None])
        total = tl.dot(left, right, total, out_dtype=SUMS)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def tile_product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SUMS: tl.constexpr,
                 APART: tl.constexpr):
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    total = tl.zeros((M, N), dtype=SUMS)
    for step in tl.range(0, k, K, num_stages=3, warp_specialize=APART):
        total = tl.dot(a.load([row, step]), b.load([column, step]).T, total, out_dtype=SUMS)
    c.store([row, column], total)


def sums_of(kind):
    return (tl.int32, numpy.int32) if kind == tl.int8 else (tl.float32, numpy.float32)


def check_product(random, kind, wide=64):
    a, b = whole(random, 128, 256), whole(random, 128, 256)
    sums, numbers = sums_of(kind)
    c = Tensor(numpy.zeros((128, 128), numbers), sums)
    product[(1, 2)](encode(a, kind), encode(b, kind), c, 128, 128, 256, M=128, N=64, K=wide, SUMS=sums)
    assert (c.fetch() == a @ b.T).all()


def check_tiles(random, kind, apart):
    """Tiles by tensor copies. `apart`: loads and products in warps of their own."""
    rows, wide = 64 if apart else 128, 32 if kind == tl.float32 else 64
    a, b = whole(random, 256, 256), whole(random, 128, 256)
    sums, numbers = sums_of(kind)
    c = Tensor(numpy.zeros((256, 128), numbers), sums)
    compiled = tile_product[(256 // rows, 2)](encode(a, kind).tiles((rows, wide)), encode(b, kind).tiles((64, wide)),
                                              c.tiles((rows, 64)), 256, M=rows, N=64, K=wide, SUMS=sums, APART=apart)
    assert (c.fetch() == a @ b.T).all()
    assert "cp.async.bulk.tensor" in compiled.asm["ptx"]


# --- attention (FlashAttention-2's two passes) ---


@triton.jit
def attention(q, k, v, out, logs, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
              CAUSAL: tl.constexpr):
    base = tl.program_id(1) * length * D
    rows = tl.program_id(0) * M + tl.arange(0, M)
    inner = tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + inner[None, :])
    most = tl.full((M, ), -float("inf"), tl.float32)
    total = tl.zeros((M, ), tl.float32)
    sums = tl.zeros((M, D), tl.float32)
    end = (tl.program_id(0) + 1) * M if CAUSAL else length
    for start in range(0, end, N):
        columns = start + tl.arange(0, N)
        keys = tl.load(k + base + columns[None, :] * D + inner[:, None])
        scores = tl.dot(queries, keys) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - now[:, None])
        shrink = tl.exp(most - now)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + base + columns[:, None] * D + inner[None, :])
        sums = tl.dot(weights.to(tl.float16), values, sums * shrink[:, None])
        most = now
    tl.store(out + base + rows[:, None] * D + inner[None, :], sums / total[:, None])
    tl.store(logs + tl.program_id(1) * length + rows, most + tl.log(total))


@triton.jit
def weights_of(queries, keys, logs, rows, columns, scale, CAUSAL: tl.constexpr):
    weights = tl.exp(tl.dot(queries, keys) * scale - logs[:, None])
    if CAUSAL:
        weights = tl.where(rows[:, None] >= columns[None, :], weights, 0.0)
    return weights


@triton.jit
def attention_queries(q, k, v, slopes, logs, deltas, dq, length, scale, M: tl.constexpr, N: tl.constexpr,
                      D: tl.constexpr, CAUSAL: tl.constexpr):
    base = tl.program_id(1) * length * D
    rows = tl.program_id(0) * M + tl.arange(0, M)
    inner = tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + inner[None, :])
    slope = tl.load(slopes + base + rows[:, None] * D + inner[None, :])
    of_rows = tl.load(logs + tl.program_id(1) * length + rows)
    delta = tl.load(deltas + tl.program_id(1) * length + rows)
    sums = tl.zeros((M, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * M if CAUSAL else length, N):
        columns = start + tl.arange(0, N)
        keys = tl.load(k + base + columns[:, None] * D + inner[None, :])
        values = tl.load(v + base + columns[None, :] * D + inner[:, None])
        weights = weights_of(queries, tl.trans(keys), of_rows, rows, columns, scale, CAUSAL)
        moved = weights * (tl.dot(slope, values) - delta[:, None])
        sums = tl.dot(moved.to(tl.float16), keys, sums)
    tl.store(dq + base + rows[:, None] * D + inner[None, :], sums * scale)


@triton.jit
def attention_keys(q, k, v, slopes, logs, deltas, dk, dv, length, scale, M: tl.constexpr, N: tl.constexpr,
                   D: tl.constexpr, CAUSAL: tl.constexpr):
    base = tl.program_id(1) * length * D
    columns = tl.program_id(0) * N + tl.arange(0, N)
    inner = tl.arange(0, D)
    keys = tl.load(k + base + columns[None, :] * D + inner[:, None])
    values = tl.load(v + base + columns[None, :] * D + inner[:, None])
    of_keys = tl.zeros((N, D), tl.float32)
    of_values = tl.zeros((N, D), tl.float32)
    for start in range(tl.program_id(0) * N // M * M if CAUSAL else 0, length, M):
        rows = start + tl.arange(0, M)
        queries = tl.load(q + base + rows[:, None] * D + inner[None, :])
        slope = tl.load(slopes + base + rows[:, None] * D + inner[None, :])
        of_rows = tl.load(logs + tl.program_id(1) * length + rows)
        delta = tl.load(deltas + tl.program_id(1) * length + rows)
        weights = weights_of(queries, keys, of_rows, rows, columns, scale, CAUSAL)
        of_values = tl.dot(tl.trans(weights.to(tl.float16)), slope, of_values)
        moved = weights * (tl.dot(slope, values) - delta[:, None])
        of_keys = tl.dot(tl.trans(moved.to(tl.float16)), queries, of_keys)
    tl.store(dk + base + columns[:, None] * D + inner[None, :], of_keys * scale)
    tl.store(dv + base + columns[:, None] * D + inner[None, :], of_values)


class Attention:
    """Two heads of 128 queries, and the reference in f64."""
    HEADS, LENGTH, D, TILE = 2, 128, 64, 64

    def __init__(self, random, causal):
        shape = (self.HEADS, self.LENGTH, self.D)
        self.causal = causal
        self.q, self.k, self.v, self.slopes = (random.standard_normal(shape).astype(numpy.float16) for _ in range(4))
        self.scale = self.D**-0.5
        q, k, v, slopes = (x.astype(numpy.float64) for x in (self.q, self.k, self.v, self.slopes))
        scores = q @ k.transpose(0, 2, 1) * self.scale
        if causal:
            scores = numpy.where(numpy.tril(numpy.ones((self.LENGTH, self.LENGTH), bool)), scores, -numpy.inf)
        powers = numpy.exp(scores)
        self.logs = numpy.log(powers.sum(axis=2))
        weights = powers / powers.sum(axis=2, keepdims=True)
        self.out = weights @ v
        self.deltas = (self.out * slopes).sum(axis=2)
        moved = weights * (slopes @ v.transpose(0, 2, 1) - self.deltas[:, :, None])
        self.dq = moved @ k * self.scale
        self.dk = moved.transpose(0, 2, 1) @ q * self.scale
        self.dv = weights.transpose(0, 2, 1) @ slopes

    def grid(self):
        return (self.LENGTH // self.TILE, self.HEADS)

    def sizes(self):
        return {"M": self.TILE, "N": self.TILE, "D": self.D, "CAUSAL": self.causal}

    def close(self, found, right):
        assert abs(found.fetch() - right).max() <= 4e-3 * max(1, abs(right).max())

    def forward(self):
        out, logs = zeros(*self.q.shape), zeros(self.HEADS, self.LENGTH)
        attention[self.grid()](halves(self.q), halves(self.k), halves(self.v), out, logs, self.LENGTH, self.scale,
                               **self.sizes())
        self.close(out, self.out)
        self.close(logs, self.logs)

    def backward(self):
        shape = self.q.shape
        inputs = [halves(self.q), halves(self.k), halves(self.v), halves(self.slopes), floats(self.logs),
                  floats(self.deltas)]
        dq, dk, dv = zeros(*shape), zeros(*shape), zeros(*shape)
        attention_queries[self.grid()](*inputs, dq, self.LENGTH, self.scale, **self.sizes())
        attention_keys[self.grid()](*inputs, dk, dv, self.LENGTH, self.scale, **self.sizes())
        self.close(dq, self.dq)
        self.close(dk, self.dk)
        self.close(dv, self.dv)


def check_attention(random, backward):
    for causal in (False, True):
        both = Attention(random, causal)
        if backward:
            both.backward()
        else:
            both.forward()


def checks(capability):
    rows = {"vector add": check_add, "softmax": check_softmax, "layer norm": check_layer_norm,
            "histogram": check_histogram, "scan": check_scan}
    # e4m3 needs sm_89
    kinds = {"f16": tl.float16, "bf16": tl.bfloat16, "tf32": tl.float32,
             "fp8": tl.float8e4nv if capability >= 89 else tl.float8e5, "int8": tl.int8}
    for name, kind in kinds.items():
        rows[f"matmul {name}"] = lambda random, kind=kind: check_product(random, kind, 32 if kind == tl.float32 else 64)
        if capability >= 90:
            rows[f"matmul {name}, TMA"] = lambda random, kind=kind: check_tiles(random, kind, False)
            rows[f"matmul {name}, TMA, warp specialised"] = lambda random, kind=kind: check_tiles(random, kind, True)
    rows["flash attention forward"] = lambda random: check_attention(random, False)
    rows["flash attention backward"] = lambda random: check_attention(random, True)
    return rows


def main():
    call(driver.cuInit(0))
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(0))))
    attribute = driver.CUdevice_attribute
    capability = 10 * call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0)) + \
        call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
    wrong = 0
    rows = checks(capability)
    for name in sys.argv[1:] or rows:
        if name not in rows:
            print(f"{name}\tnot for sm_{capability}", flush=True)
            continue
        try:
            rows[name](numpy.random.default_rng(1))
            print(f"{name}\tright", flush=True)
        except Exception as error:  # a row that fails must not hide the others
            wrong += 1
            text = f"{type(error).__name__}: {error}".strip().splitlines()
            print(f"{name}\t{text[0] if text else error!r}", flush=True)
            if os.environ.get("PTXREWRITE_TRACEBACKS"):
                sys.excepthook(*sys.exc_info())
    sys.exit(1 if wrong else 0)


main()
