"""Reads what the round-trip tests need from a cubin (an ELF file): section contents, and for each function with a
.text section its instruction count, register count and whether it is a kernel entry."""

import hashlib
import re
import struct

SYMTAB = 2
# Sections with a size but no bytes in the file: .bss, and NVIDIA's kinds for global, local and shared memory.
WITHOUT_BYTES = (8, 0x70000007, 0x70000009, 0x7000000A)
ENTRY_FLAG = 0x10          # in st_other: the function is a kernel entry
NOP_OPCODE = 0x918         # low 12 bits of an instruction word; padding after the code
REGISTER_COUNT = 0x2F      # attribute of .nv.info: (symbol, registers)
INSTRUCTION_BYTES = 16     # since sm_70

# Parts that must not change when only debug information may differ: it contains the PTX text and its line numbers.
CODE_SECTIONS = (".text", ".nv.info", ".nv.constant", ".nv.global", ".nv.shared", ".rel.text", ".rela.text")


class Cubin:
    def __init__(self, data):
        if data[:4] != b"\x7fELF" or data[4] != 2:
            raise ValueError("not a 64-bit ELF file")
        self.data = data
        table, = struct.unpack_from("<Q", data, 40)
        entry_size, count, names_index = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)]
        names_at = headers[names_index][4]
        self.sections = []                      # (name, type, offset, size, link), indexed as in the file
        for name, kind, _flags, _address, offset, size, link, _info, _align, _entry in headers:
            self.sections.append((self._string(names_at + name), kind, offset, size, link))

    def _string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def content(self, section):
        _name, kind, offset, size, _link = section
        return b"size %d" % size if kind in WITHOUT_BYTES else self.data[offset:offset + size]

    def section_hashes(self):
        """name -> hash of content, for the sections with code or data that a launch needs."""
        hashes = {}
        for section in self.sections:
            if section[0].startswith(CODE_SECTIONS):
                hashes[section[0]] = hashlib.sha256(self.content(section)).hexdigest()[:16]
        return hashes

    def canonical_hash(self):
        """Hash of everything except the line numbers that ptxas puts into the names of functions' shared variables
        (`$___name__38`): sections by name and content, symbols one by one."""
        tables = (".strtab", ".symtab", ".shstrtab")
        parts = [(name, hashlib.sha256(self.content(section)).hexdigest()) for section in self.sections
                 for name in [section[0]] if name not in tables]
        for section in self.sections:
            if section[1] == SYMTAB:
                strings_at = self.sections[section[4]][2]
                for at in range(section[2], section[2] + section[3], 24):
                    name, *rest = struct.unpack_from("<IBBHQQ", self.data, at)
                    parts.append((re.sub(r"^(\$___.*__)\d+$", r"\1", self._string(strings_at + name)), rest))
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _symbols(self):
        for section in self.sections:
            if section[1] == SYMTAB:
                strings_at = self.sections[section[4]][2]
                for at in range(section[2], section[2] + section[3], 24):
                    name, _info, other, index = struct.unpack_from("<IBBH", self.data, at)
                    yield self._string(strings_at + name), other, index

    def _registers_by_symbol(self):
        registers = {}
        for name, _kind, offset, size, _link in self.sections:
            if name != ".nv.info":
                continue
            at, end = offset, offset + size
            while at + 4 <= end:
                shape, attribute, length = struct.unpack_from("<BBH", self.data, at)
                at += 4
                if shape == 4:
                    if attribute == REGISTER_COUNT:
                        symbol, count = struct.unpack_from("<II", self.data, at)
                        registers[symbol] = count
                    at += length
        return registers

    def functions(self):
        """name -> {"instructions", "registers", "entry"} for every function with its own .text section."""
        symbols = list(self._symbols())
        registers = {symbols[i][0]: count for i, count in self._registers_by_symbol().items() if i < len(symbols)}
        entries = {name for name, other, _index in symbols if other & ENTRY_FLAG}
        found = {}
        for section in self.sections:
            if not section[0].startswith(".text."):
                continue
            name = section[0][len(".text."):]
            words = struct.iter_unpack("<QQ", self.content(section)[:section[3] // 16 * 16])
            count = sum(1 for low, _high in words if low & 0xFFF != NOP_OPCODE)
            found[name] = {"instructions": count, "registers": registers.get(name, 0), "entry": name in entries}
        return found
