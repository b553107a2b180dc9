#!/usr/bin/env python3
"""matrix_kernels.py FOLDER: kernels with one matrix product each, as launch files.

For `ptxrewrite record`: what a GPU's tensor cores compute, on numbers by which orders and widths of sums can be told
apart. A lane's registers are words of a buffer, so that no layout of fragments is assumed. Tiles 0 to 7 have numbers of
similar size, 8 to 11 of sizes from 2^-12 to 2^12, 12 and 13 small ones and zeros, 14 and 15 random bits.
"""
import math
import pathlib
import random
import struct
import sys

TILES = 16


def number(rng, tile):
    if tile < 8:
        return rng.gauss(0, 1)
    if tile < 12:
        return rng.gauss(0, 1) * 2.0 ** rng.randint(-12, 12)
    return rng.choice([0.0, -0.0, rng.gauss(0, 1) * 2.0 ** -rng.randint(10, 24)])


def narrow(value, exponent_bits, mantissa_bits):
    """The nearest number with these widths, towards zero, as bits; no infinities."""
    bias = (1 << (exponent_bits - 1)) - 1
    sign = 1 if math.copysign(1, value) < 0 else 0
    mantissa, exponent = math.frexp(abs(value))
    exponent += bias - 1
    if value == 0 or exponent < -mantissa_bits:
        bits = 0
    elif exponent <= 0:
        bits = int(math.ldexp(abs(value), bias - 1 + mantissa_bits))
    else:
        exponent = min(exponent, (1 << exponent_bits) - 2)
        bits = (exponent << mantissa_bits) | int(math.ldexp(2 * mantissa - 1, mantissa_bits))
    return sign << (exponent_bits + mantissa_bits) | bits


FLOATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "e4m3": 8, "e5m2": 8, "f64": 64}


def words_of(rng, kind, count, tile):
    """`count` registers of 32 bits."""
    if kind not in BITS or tile >= 14:
        return [rng.getrandbits(32) for _ in range(count)]
    if kind == "f64":
        return [word for _ in range(count // 2) for word in struct.unpack("<2I", struct.pack("<d", number(rng, tile)))]
    per_word = 32 // BITS[kind]
    return [sum(narrow(number(rng, tile), *FLOATS[kind]) << (BITS[kind] * i) for i in range(per_word))
            for _ in range(count)]


class Product:
    """One instruction: types of A, B, C (and D), and how many 32-bit words of each a lane has."""

    def __init__(self, name, mnemonic, kinds, words, extra="", metadata=False):
        self.name, self.mnemonic, self.kinds, self.words = name, mnemonic, kinds, words
        self.extra, self.metadata = extra, metadata
        self.threads = 128 if mnemonic.startswith("wgmma") else 32

    def text(self):
        a, b, c = self.words
        wide = self.kinds[2] == "f64"
        total = a + b + c + self.metadata
        lines = [".version 8.5", ".target sm_90a", ".address_size 64", "",
                 ".visible .entry k(.param .u64 in, .param .u64 out)", "{",
                 f".reg .b32 %x<{total}>;", ".reg .b32 %r<8>;", ".reg .b64 %l<8>;", ".reg .f64 %d<16>;", ".reg .pred %p1;"]
        if self.threads == 128:
            lines.append(".shared .align 1024 .b8 tile[4096];")
        lines += ["mov.u32 %r0, %ctaid.x;", "mov.u32 %r1, %ntid.x;", "mov.u32 %r2, %tid.x;",
                  "mad.lo.u32 %r3, %r0, %r1, %r2;", "ld.param.u64 %l0, [in];", "ld.param.u64 %l1, [out];",
                  f"mul.wide.u32 %l2, %r3, {4 * total};", "add.u64 %l0, %l0, %l2;", f"mul.wide.u32 %l3, %r3, {4 * c};",
                  "add.u64 %l1, %l1, %l3;"]
        lines += [f"ld.global.b32 %x{i}, [%l0+{4 * i}];" for i in range(total)]
        names = [[f"%x{i}" for i in range(start, start + count)] for start, count in ((0, a), (a, b), (a + b, c))]
        if wide:
            pairs = [f"%x{i}" for i in range(total)]
            for i in range(total // 2):
                lines.append(f"mov.b64 %d{i}, {{{pairs[2 * i]}, {pairs[2 * i + 1]}}};")
            names = [[f"%d{i // 2}" for i in range(start, start + count, 2)]
                     for start, count in ((0, a), (a, b), (a + b, c))]
        lines += self.instruction(names)
        if wide:
            for i, name in enumerate(names[2]):
                lines.append(f"st.global.f64 [%l1+{8 * i}], {name};")
        else:
            lines += [f"st.global.b32 [%l1+{4 * i}], {name};" for i, name in enumerate(names[2])]
        return "\n".join(lines + ["ret;", "}", ""])

    def instruction(self, names):
        group = [", ".join(part) for part in names]
        if self.threads == 32:
            meta = f", %x{sum(self.words)}, 0" if self.metadata else ""
            return [f"{self.mnemonic} {{{group[2]}}}, {{{group[0]}}}, {{{group[1]}}}, {{{group[2]}}}{meta};"]
        # B: each thread writes its words to shared memory, in the order in which core matrices lie there.
        count = self.words[1]
        lines = ["mov.u32 %r4, tile;", f"mad.lo.u32 %r5, %r2, {4 * count}, %r4;"]
        lines += [f"st.shared.b32 [%r5+{4 * i}], {name};" for i, name in enumerate(names[1])]
        lines += ["fence.proxy.async.shared::cta;", "bar.sync 0;", "shr.u32 %r4, %r4, 4;", "cvt.u64.u32 %l4, %r4;",
                  f"or.b64 %l4, %l4, {(128 >> 4) << 16 | (256 >> 4) << 32};", "setp.eq.u32 %p1, %r2, %r2;",
                  "wgmma.fence.sync.aligned;",
                  f"{self.mnemonic} {{{group[2]}}}, {{{group[0]}}}, %l4, %p1{self.extra};",
                  "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
        return lines

    def data(self):
        """Words of all tiles: for each lane A, B, C, metadata."""
        rng = random.Random(self.name)
        data = []
        for tile in range(TILES):
            for _ in range(self.threads):
                for kind, count in zip(self.kinds, self.words):
                    data += words_of(rng, kind, count, tile)
                if self.metadata:
                    data.append(0x44444444)  # elements 0 and 1 of each four
        return data

    def write(self, folder):
        data = self.data()
        base = pathlib.Path(folder) / self.name
        base.with_suffix(".ptx").write_text(self.text())
        base.with_suffix(".bin").write_bytes(struct.pack(f"<{len(data)}I", *data))
        base.with_suffix(".toml").write_text(
            f'ptx = "{self.name}.ptx"\n\n[[launch]]\nkernel = "k"\ngrid = {TILES}\nblock = {self.threads}\n'
            'args = [ { buffer = "in" }, { buffer = "out" } ]\n\n'
            f'[buffer.in]\ntype = "u32"\ncount = {len(data)}\nfile = "{self.name}.bin"\n\n'
            f'[buffer.out]\ntype = "b32"\ncount = {TILES * self.threads * self.words[2]}\noutput = true\n')


def products():
    def mma(shape, d, a, b, c, words, extra="", sparse=False):
        mnemonic = f"mma{'.sp' if sparse else ''}.sync.aligned.{shape}.row.col{extra}.{d}.{a}.{b}.{c}"
        name = f"mma{'_sp' if sparse else ''}_{shape}_{a}_{b}_{c}{extra.replace('.', '_')}"
        yield Product(name, mnemonic, (a, b, c), words, metadata=sparse)

    for c, words in (("f32", 4), ("f16", 2)):
        yield from mma("m16n8k8", c, "f16", "f16", c, (2, 1, words))
        yield from mma("m16n8k16", c, "f16", "f16", c, (4, 2, words))
        yield from mma("m16n8k16", c, "f16", "f16", c, (2, 2, words), sparse=True)
        yield from mma("m16n8k32", c, "f16", "f16", c, (4, 4, words), sparse=True)
    for shape, a, b in (("m16n8k8", 2, 1), ("m16n8k16", 4, 2)):
        yield from mma(shape, "f32", "bf16", "bf16", "f32", (a, b, 4))
    yield from mma("m16n8k4", "f32", "tf32", "tf32", "f32", (2, 1, 4))
    yield from mma("m16n8k8", "f32", "tf32", "tf32", "f32", (4, 2, 4))
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield from mma("m16n8k32", "f32", a, b, "f32", (4, 2, 4))
    for shape, a, b, c in (("m8n8k4", 2, 2, 4), ("m16n8k4", 4, 2, 8), ("m16n8k8", 8, 4, 8), ("m16n8k16", 16, 8, 8)):
        yield from mma(shape, "f64", "f64", "f64", "f64", (a, b, c))
    for a, b in (("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")):
        for extra in ("", ".satfinite"):
            yield from mma("m8n8k16", "s32", a, b, "s32", (1, 1, 2), extra)
            yield from mma("m16n8k16", "s32", a, b, "s32", (2, 1, 4), extra)
            yield from mma("m16n8k32", "s32", a, b, "s32", (4, 2, 4), extra)
    for a, b in (("s4", "s4"), ("u4", "s4")):
        yield from mma("m16n8k64", "s32", a, b, "s32", (4, 2, 4))
    for operation in ("xor", "and"):
        yield Product(f"mma_m16n8k256_b1_{operation}",
                      f"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{operation}.popc", ("b1", "b1", "s32"),
                      (4, 2, 4))
    scales = ", 1, 1"
    for n in (8, 32):
        for d, c in (("f32", n // 2), ("f16", n // 4)):
            yield Product(f"wgmma_n{n}_f16_{d}", f"wgmma.mma_async.sync.aligned.m64n{n}k16.{d}.f16.f16",
                          ("f16", "f16", d), (4, 2, c), f"{scales}, 0")
            for a in ("e4m3", "e5m2"):
                yield Product(f"wgmma_n{n}_{a}_{d}", f"wgmma.mma_async.sync.aligned.m64n{n}k32.{d}.{a}.e4m3",
                              (a, "e4m3", d), (4, 2, c), scales)
        yield Product(f"wgmma_n{n}_bf16", f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16",
                      ("bf16", "bf16", "f32"), (4, 2, n // 2), f"{scales}, 0")
        yield Product(f"wgmma_n{n}_tf32", f"wgmma.mma_async.sync.aligned.m64n{n}k8.f32.tf32.tf32",
                      ("tf32", "tf32", "f32"), (4, 2, n // 2), scales)
        yield Product(f"wgmma_n{n}_s8", f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8", ("s8", "s8", "s32"),
                      (4, 2, n // 2))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for product in products():
        product.write(folder)


if __name__ == "__main__":
    sys.exit(main())
