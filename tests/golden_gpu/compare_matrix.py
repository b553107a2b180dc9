#!/usr/bin/env python3
"""compare_matrix.py TOOL WORDS.tsv: the emulator's products of matrices, in an order of summation, against a GPU's words.

The launch files of matrix_kernels.py run with `run --matrix-sums hopper`. WORDS.tsv (written by --write from a record
of those launch files with all elements, `record --sample`): kernel, tile, the words of D in the order of threads.
Exit code 1: some words differ.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import matrix_kernels

TILES = (1, 9, 13, 14)  # the order of summation was fitted to tiles 0, 8 and 12
FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2")


def kernels():
    return [one for one in matrix_kernels.products() if one.kinds[0] in FLOATS and not one.name.startswith("wgmma_n32")]


def write(record, path):
    with open(record, encoding="utf-8") as file:
        outputs = {one["file"][:-5]: one["outputs"][0] for one in json.load(file)["files"]}
    with open(path, "w", encoding="utf-8") as file:
        for name in (one.name for one in kernels()):
            size = outputs[name]["elements"] // matrix_kernels.TILES
            for tile in TILES:
                words = [int(outputs[name]["sample"][str(tile * size + i)], 16) for i in range(size)]
                file.write(f"{name}\t{tile}\t" + " ".join(f"{word:x}" for word in words) + "\n")


def run(tool, folder):
    """The words of D of each kernel, by name."""
    found = {}
    for product in kernels():
        product.write(folder)
        subprocess.run([tool, "run", folder / f"{product.name}.toml", "--matrix-sums", "hopper", "--dump", folder / "dump"],
                       check=True, stdout=subprocess.DEVNULL)
        data = (folder / "dump" / "out.bin").read_bytes()
        found[product.name] = struct.unpack(f"<{len(data) // 4}I", data)
    return found


def compare(tool, path):
    with tempfile.TemporaryDirectory() as folder:
        found = run(tool, pathlib.Path(folder))
    wrong = total = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, tile, words = line.split("\t")
            wanted = [int(word, 16) for word in words.split()]
            first = int(tile) * len(wanted)
            differ = sum(x != y for x, y in zip(found[name][first:first + len(wanted)], wanted, strict=True))
            wrong, total = wrong + differ, total + len(wanted)
            if differ:
                print(f"{name}, tile {tile}: {differ} of {len(wanted)} words differ")
    print(f"{total} words, {wrong} differ")
    return 1 if wrong or not total else 0


def main():
    if sys.argv[1] == "--write":
        return write(*sys.argv[2:])
    return compare(*sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
