#!/usr/bin/env python3
"""matrix_law.py WORDS.tsv: how tensor cores of Hopper sum products of narrow floats, against what an H100 computed.

All products of one instruction along k, and the accumulator, are aligned to the largest exponent among them: of a product
the sum of its factors' exponents as encoded, so that a product of significands in [1, 2) may begin one bit higher. Each
is cut off (towards zero) FRACTION bits behind that exponent, the sum is exact, and its first BITS bits are kept.

WORDS.tsv (written by --write from a record of matrix_kernels.py's kernels with all elements): kernel, tile, words of D.
Exit code 1: some words differ.
"""
import json
import math
import struct
import sys

import matrix_kernels

# FRACTION and BITS by the types of A and B, for f32 accumulators. mma of fp8 is computed by f16 on Hopper: not here.
LAWS = {"f16": (25, 24), "bf16": (25, 24), "tf32": (25, 24), "e4m3": (13, 14), "e5m2": (13, 14)}
KERNELS = {"mma_m16n8k8_f16_f16_f32": 8, "mma_m16n8k16_f16_f16_f32": 16, "mma_m16n8k8_bf16_bf16_f32": 8,
           "mma_m16n8k16_bf16_bf16_f32": 16, "mma_m16n8k4_tf32_tf32_f32": 4, "mma_m16n8k8_tf32_tf32_f32": 8,
           "wgmma_n8_f16_f32": 16, "wgmma_n8_bf16": 16, "wgmma_n8_tf32": 8, "wgmma_n8_e4m3_f32": 32,
           "wgmma_n8_e5m2_f32": 32}
TILES = (1, 5, 9, 13)


def number(bits, kind):
    """Significand and exponent of its last bit, and the exponent as encoded."""
    exponent_bits, mantissa_bits = matrix_kernels.FLOATS[kind]
    if kind == "tf32":
        bits &= 0xffffe000
    significand = bits & ((1 << mantissa_bits) - 1)
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    if exponent:
        significand |= 1 << mantissa_bits
    exponent = max(exponent, 1) - ((1 << (exponent_bits - 1)) - 1)
    sign = -1 if bits >> (exponent_bits + mantissa_bits) & 1 else 1
    return sign * significand, exponent - mantissa_bits, exponent


def summed(products, accumulator, fraction, bits):
    terms = [term for term in (*products, accumulator) if term[0]]
    if not terms:
        return 0.0
    last = max(encoded for _, _, encoded in terms) - fraction
    total = 0
    for significand, exponent, _ in terms:
        shift = exponent - last
        size = abs(significand) << shift if shift >= 0 else abs(significand) >> -shift
        total += size if significand > 0 else -size
    size = abs(total)
    excess = max(size.bit_length() - bits, 0)
    return math.copysign(math.ldexp(size >> excess << excess, last), total)


class Tile:
    """Registers of a tile as elements of A, B and C (PTX ISA, "Matrix fragments for mma", "for wgmma")."""

    def __init__(self, product, lanes, k):
        self.lanes, self.k, (self.kind, self.kind_b, _) = lanes, k, product.kinds
        self.a, self.b, self.c = product.words
        self.bits = matrix_kernels.BITS[self.kind]
        self.b_bytes = b"".join(struct.pack(f"<{self.b}I", *lane[self.a:self.a + self.b]) for lane in lanes)

    def element(self, words, column):
        """Element of a row whose words are spread over four lanes, two words of each."""
        per_word = 32 // self.bits
        word = words[column // (4 * per_word)][column % (4 * per_word) // per_word]
        return word >> (self.bits * (column % per_word)) & ((1 << self.bits) - 1)

    def row(self, warp, row):
        group = self.lanes[32 * warp + 4 * (row % 8):32 * warp + 4 * (row % 8) + 4]
        words = [[lane[i] for lane in group] for i in range(row // 8, self.a, 2)]
        return [number(self.element(words, i), self.kind) for i in range(self.k)]

    def column(self, column):
        if len(self.lanes) == 32:
            group = self.lanes[4 * column:4 * column + 4]
            words = [[lane[self.a + i] for lane in group] for i in range(self.b)]
            return [number(self.element(words, i), self.kind_b) for i in range(self.k)]
        size = self.bits // 8  # core matrices of eight columns, 16 bytes of each
        places = (i * size // 16 * 128 + column * 16 + i * size % 16 for i in range(self.k))
        return [number(int.from_bytes(self.b_bytes[at:at + size], "little"), self.kind_b) for at in places]

    def results(self):
        """Words of D in the order of lanes."""
        fraction, bits = LAWS[self.kind]
        columns = [self.column(i) for i in range(8)]
        for number_of_lane, lane in enumerate(self.lanes):
            for i in range(4):
                row = self.row(number_of_lane // 32, number_of_lane % 32 // 4 + 8 * (i // 2))
                column = columns[2 * (number_of_lane % 4) + i % 2]
                products = [(x[0] * y[0], x[1] + y[1], x[2] + y[2]) for x, y in zip(row, column)]
                accumulator = number(lane[self.a + self.b + i], "f32")
                yield struct.unpack("<I", struct.pack("<f", summed(products, accumulator, fraction, bits)))[0]


def tiles_of(name):
    product = next(one for one in matrix_kernels.products() if one.name == name)
    data = product.data()
    size = len(data) // matrix_kernels.TILES
    lane = size // product.threads
    return product, [[data[tile * size + i * lane:tile * size + (i + 1) * lane] for i in range(product.threads)]
                     for tile in range(matrix_kernels.TILES)]


def write(record, path):
    with open(record, encoding="utf-8") as file:
        outputs = {one["file"][:-5]: one["outputs"][0] for one in json.load(file)["files"]}
    with open(path, "w", encoding="utf-8") as file:
        for name in KERNELS:
            size = outputs[name]["elements"] // matrix_kernels.TILES
            for tile in TILES:
                words = [int(outputs[name]["sample"][str(tile * size + i)], 16) for i in range(size)]
                file.write(f"{name}\t{tile}\t" + " ".join(f"{word:x}" for word in words) + "\n")


def main():
    if sys.argv[1] == "--write":
        return write(*sys.argv[2:])
    wrong = total = 0
    known = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            name, tile, words = line.split("\t")
            if name not in known:
                known = {name: tiles_of(name)}
            product, tiles = known[name]
            wanted = [int(word, 16) for word in words.split()]
            found = list(Tile(product, tiles[int(tile)], KERNELS[name]).results())
            differ = sum(x != y and (x | y) & 0x7fffffff != 0 for x, y in zip(found, wanted))  # a zero's sign is open
            wrong, total = wrong + differ, total + len(wanted)
            if differ or len(found) != len(wanted):
                print(f"{name}, tile {tile}: {differ} of {len(wanted)} differ")
    print(f"{total} results, {wrong} differ")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
