"""Runs ptxas and caches its answers by content, so that repeated round-trip runs only assemble new texts."""

import hashlib
import json
import os
import re
import subprocess
import tempfile

from cubin import Cubin

FORMAT = 3  # part of every cache key: raise when what is stored changes


class Assembler:
    def __init__(self, cache, timeout=3600):
        self.cache = cache
        self.timeout = timeout
        os.makedirs(cache, exist_ok=True)
        self.version = subprocess.run(["ptxas", "--version"], capture_output=True, text=True).stdout

    def flags_for(self, text):
        """Flags for a PTX text: its target (at least one that this ptxas can assemble), debug information."""
        target = re.search(r"^[ \t]*\.target[ \t]+([^\r\n]*)", text, re.M)
        words = [w.strip() for w in target.group(1).split(",")] if target else ["sm_80"]
        number = re.match(r"sm_(\d+)", words[0])
        arch = words[0] if number and int(number.group(1)) >= 75 else "sm_75"
        flags = [f"-arch={arch}"]
        if "debug" in words:
            flags.append("-g")
        elif re.search(r"^[ \t]*\.loc\b", text, re.M):
            flags.append("-lineinfo")
        version = re.search(r"^[ \t]*\.version[ \t]+(\d+)\.(\d+)", text, re.M)
        modern = version and (int(version.group(1)), int(version.group(2))) >= (3, 1)
        if modern and re.search(r"^[ \t]*\.(visible|weak)[ \t]+\.func\b", text, re.M):
            flags.append("-c")  # functions for other modules are only kept in a relocatable object
        return flags

    def _cached(self, kind, text, flags, make):
        key = hashlib.sha256(json.dumps([kind, self.version, flags]).encode() + text.encode("latin-1")).hexdigest()
        stored = os.path.join(self.cache, key[:2], key + ".json")
        if os.path.exists(stored):
            with open(stored) as file:
                return json.load(file)
        answer = make(text, flags)
        if answer["message"] != "timeout":
            os.makedirs(os.path.dirname(stored), exist_ok=True)
            temporary = f"{stored}.{os.getpid()}.{id(answer)}"
            with open(temporary, "w") as file:
                json.dump(answer, file)
            os.replace(temporary, stored)
        return answer

    def assemble(self, text, flags):
        """Returns {"ok", "message", "cubin", "sections", "functions"} for a PTX text; from the cache if possible.

        Functions have instructions, registers, entry, spill_stores and spill_loads (bytes).
        """
        return self._cached(FORMAT, text, flags, self._describe)

    def canonical(self, text, flags):
        """Hash of the cubin without the parts that depend on the text's line numbers; None if it does not assemble."""
        def make(text, flags):
            data, message = self._run(text, flags)
            return {"message": message, "hash": Cubin(data).canonical_hash() if data else None}
        return self._cached("canonical", text, flags, make)["hash"]

    def _run(self, text, flags):
        """(cubin, ptxas's messages), or (None, the reason)."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "input.ptx"), "w", encoding="latin-1", newline="") as file:
                file.write(text)
            command = ["ptxas", "-v", *flags, "input.ptx", "-o", "output.cubin"]
            try:
                result = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace",
                                        timeout=self.timeout)
            except subprocess.TimeoutExpired:
                return None, "timeout"
            said = result.stderr + result.stdout
            if result.returncode != 0:
                lines = [line for line in said.splitlines() if "info" not in line[:14]]
                return None, "\n".join(lines[:5]) or f"ptxas exit code {result.returncode}"
            with open(os.path.join(folder, "output.cubin"), "rb") as file:
                return file.read(), said

    def _describe(self, text, flags):
        data, said = self._run(text, flags)
        if data is None:
            return {"ok": False, "message": said}
        cubin = Cubin(data)
        functions = cubin.functions()
        spills = re.findall(r"Function properties for (\S+)\n\s*\d+ bytes stack frame, (\d+) bytes spill stores, "
                            r"(\d+) bytes spill loads", said)
        for function in functions.values():
            function["spill_stores"] = function["spill_loads"] = 0
        for name, stores, loads in spills:
            if name in functions:
                functions[name]["spill_stores"] = int(stores)
                functions[name]["spill_loads"] = int(loads)
        return {"ok": True, "message": "", "cubin": hashlib.sha256(data).hexdigest(),
                "sections": cubin.section_hashes(), "functions": functions}

    def assemble_original(self, text):
        """Assembles a text unchanged; as a relocatable object if it needs other files. Returns (answer, flags)."""
        flags = self.flags_for(text)
        answer = self.assemble(text, flags)
        if not answer["ok"] and "-c" not in flags and re.search(r"nresolved extern|undefined", answer["message"], re.I):
            again = self.assemble(text, flags + ["-c"])
            if again["ok"]:
                return again, flags + ["-c"]
        return answer, flags
