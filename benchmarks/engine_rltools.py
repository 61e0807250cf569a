"""Compiles RLtools' half of `benchmarks/engine.py` with the headers of its wheel and MKL's.

Set up with `python -m venv FOLDER && FOLDER/bin/pip install rltools==2.2 mkl mkl-include`; the
flags are those that its Python interface compiles with.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("engine_rltools.cpp")
FLAGS = "-std=c++17 -O3 -march=native -ffast-math".split()
BACKEND = ("-DRL_TOOLS_BACKEND_ENABLE_MKL", "-DRL_TOOLS_DISABLE_UNALIGNED_MEMORY_ALLOCATIONS")
LIBRARIES = ("libmkl_intel_lp64.so", "libmkl_intel_thread.so", "libmkl_core.so", "libiomp5.so")


def build(python: str, macros: Mapping[str, str]) -> Path:
    """The program for one set of sizes, compiled if it was not before."""
    root = Path(python).absolute().parents[1]
    [headers] = root.glob("lib/python*/site-packages/rltools/external/rl_tools/include")
    found = [min((root / "lib").glob(f"{name}*")) for name in LIBRARIES]
    words = [
        *("g++", *FLAGS, *BACKEND, *(f"-D{name}={value}" for name, value in macros.items())),
        *(f"-I{headers}", f"-I{root}/include", str(SOURCE), "-Wl,--no-as-needed"),
        *(*map(str, found), "-lpthread", "-lm", "-ldl", f"-Wl,-rpath,{root}/lib"),
    ]
    known = hashlib.blake2b(" ".join(words).encode() + SOURCE.read_bytes(), digest_size=8)
    program = root / f"engine_rltools_{known.hexdigest()}"
    if not program.exists():
        subprocess.run([*words, "-o", f"{program}.part"], check=True)
        Path(f"{program}.part").rename(program)
    return program
