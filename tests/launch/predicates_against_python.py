#!/usr/bin/env python3
"""Random launch predicates: our evaluator against Python's unbounded integers.

usage: predicates_against_python.py EVALUATE_PREDICATES [COUNT [SEED]]

Each expression is made as a tree and used twice: as text for the program, with as few brackets as C's
precedence requires or with some more, and as a value computed here from the tree. The program must print `error`
if and only if a division by zero, a shift by a negative amount or a number beyond 128 bits occurs on the way.
"""
import random
import subprocess
import sys

LOW, HIGH = -(1 << 127), (1 << 127) - 1
PRECEDENCE = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
              "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
EDGES = [0, 1, 2, 3, 7, 16, 255, 32767, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63,
         (1 << 64) - 1, HIGH]


class NoValue(Exception):
    pass


def checked(value):
    if not LOW <= value <= HIGH:
        raise NoValue
    return value


def low_bits(value, bits):
    return value & ((1 << bits) - 1)


def signed(value, bits):
    value = low_bits(value, bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def divide(a, b):
    """Truncated towards zero."""
    if b == 0:
        raise NoValue
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def shift_left(a, b):
    if b < 0 or (a != 0 and b > 127):
        raise NoValue
    return a << b if a else 0


def shift_right(a, b):
    if b < 0:
        raise NoValue
    return a >> min(b, 200)


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divide,
    "%": lambda a, b: a - b * divide(a, b), "<<": shift_left, ">>": shift_right, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b)}


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.block = [rng.randint(1, 1024) for _ in range(3)]
        self.grid = [rng.choice([1, rng.randint(1, 65535), (1 << 31) - 1]) for _ in range(3)]
        self.parameters = [bytes(rng.choice([0, 255, rng.randrange(256)]) for _ in range(rng.choice([1, 2, 4, 8, 12])))
                           for _ in range(4)]

    def tree(self, depth):
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            return self.leaf()
        kind = rng.random()
        if kind < 0.62:
            return ("binary", rng.choice(list(PRECEDENCE)), self.tree(depth - 1), self.tree(depth - 1))
        if kind < 0.72:
            return ("unary", rng.choice("-~!"), self.tree(depth - 1))
        if kind < 0.78:
            return ("choice", self.tree(depth - 1), self.tree(depth - 1), self.tree(depth - 1))
        if kind < 0.84:
            return ("call", rng.choice(["min", "max"]), [self.tree(depth - 1) for _ in range(rng.randint(1, 3))])
        if kind < 0.86:
            return ("call", "log2", [self.tree(depth - 1)])
        if kind < 0.91:
            name = rng.choice(["mulhi_s", "mulhi_u"]) + str(rng.choice([16, 32, 64]))
            return ("call", name, [self.tree(depth - 1), self.tree(depth - 1)])
        name = rng.choice(["sext", "zext", "trunc"]) + str(rng.choice([1, 8, 16, 32, 64]))
        return ("call", name, [self.tree(depth - 1)])

    def leaf(self):
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0:
            number = rng.choice(EDGES + [rng.randrange(1 << 20)])
            return ("number", number, rng.choice(["%d", "0x%x"]) % number)
        if kind == 1:
            axis = rng.randrange(3)
            return rng.choice([("number", self.block[axis], "ntid." + "xyz"[axis]),
                               ("number", self.grid[axis], "nctaid." + "xyz"[axis]), ("number", 0, "ntid.w")])
        index = rng.randrange(len(self.parameters))
        data = self.parameters[index]
        if kind == 2 and len(data) > 1:
            offset = rng.randrange(len(data))
            return ("number", int.from_bytes(data[offset:offset + 8], "little"), f"P{index}@{offset}")
        return ("number", int.from_bytes(data[:8], "little"), f"P{index}")

    def text(self, tree, least=0):
        """The tree as text that binds at least as tightly as `least`."""
        if tree[0] == "number":
            return tree[2]
        if tree[0] == "call":
            return tree[1] + "(" + ", ".join(self.text(argument) for argument in tree[2]) + ")"
        if tree[0] == "unary":
            return tree[1] + " " + self.text(tree[2], 11)
        if tree[0] == "choice":
            text, own = f"{self.text(tree[1], 1)} ? {self.text(tree[2])} : {self.text(tree[3])}", 0
        else:
            own = PRECEDENCE[tree[1]]
            blank = self.rng.choice(["", " "])
            text = self.text(tree[2], own) + blank + tree[1] + blank + self.text(tree[3], own + 1)
        return "(" + text + ")" if own < least or self.rng.random() < 0.1 else text


def value(tree):
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "unary":
        inner = value(tree[2])
        return checked({"-": -inner, "~": ~inner, "!": int(inner == 0)}[tree[1]])
    if kind == "choice":
        return value(tree[2]) if value(tree[1]) else value(tree[3])
    if kind == "binary":
        if tree[1] == "&&":
            return int(value(tree[2]) != 0 and value(tree[3]) != 0)
        if tree[1] == "||":
            return int(value(tree[2]) != 0 or value(tree[3]) != 0)
        return checked(BINARY[tree[1]](value(tree[2]), value(tree[3])))
    arguments = [value(argument) for argument in tree[2]]
    name = tree[1]
    if name in ("min", "max"):
        return {"min": min, "max": max}[name](arguments)
    if name == "log2":
        if arguments[0] <= 0:
            raise NoValue
        return arguments[0].bit_length() - 1
    stem = name.rstrip("0123456789")
    bits = int(name[len(stem):])
    if stem == "sext":
        return signed(arguments[0], bits)
    if stem in ("zext", "trunc"):
        return low_bits(arguments[0], bits)
    as_number = signed if stem == "mulhi_s" else low_bits
    return (as_number(arguments[0], bits) * as_number(arguments[1], bits)) >> bits


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    lines, expected = [], []
    for _ in range(count):
        maker = Maker(rng)
        tree = maker.tree(rng.randint(1, 5))
        facts = maker.block + maker.grid + [len(maker.parameters)] + [data.hex() for data in maker.parameters]
        lines.append(" ".join(map(str, facts)) + " " + maker.text(tree))
        try:
            expected.append(str(value(tree)))
        except NoValue:
            expected.append("error")
    output = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    answers = output.split("\n")[:-1]
    if len(answers) != count:
        print(f"{len(answers)} answers to {count} expressions")
        return 1
    wrong = [(line, want, got) for line, want, got in zip(lines, expected, answers) if want != got]
    for line, want, got in wrong[:10]:
        print(f"{line}\n  expected {want}, got {got}")
    with_value = sum(answer != "error" for answer in expected)
    print(f"{count} expressions, {with_value} with a value, {len(wrong)} wrong")
    return 1 if wrong or with_value < count // 2 or with_value == count else 0


if __name__ == "__main__":
    sys.exit(main())
