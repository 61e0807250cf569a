"""PTX as C: what a CUDA kernel was compiled to, executed by the processor, thread after thread.

For kernels without calls, barriers and local memory. Each instruction becomes one C statement, and
gcc may not fuse a product with a sum, so that what comes out is what the PTX says.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

C_TYPE = {
    "pred": "int",
    "f32": "float",
    "f64": "double",
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
}
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNORDERED = {"equ": "!=", "neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
"""True unless the opposite holds; what is no number makes each comparison false."""
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
PREFIX = {"neg": "-", "not": "~"}
SPECIAL = {"%tid.x": "tid", "%ctaid.x": "ctaid", "%ntid.x": "ntid"}
HEAD = """
#include <math.h>
#include <stdint.h>
static double f64(uint64_t bits) { return ((union {uint64_t u; double d;}){bits}).d; }
static float f32(uint32_t bits) { return ((union {uint32_t u; float f;}){bits}).f; }
static int64_t whole(double v) {  /* cvt.rzi.s64.f64 */
    if (v != v || v < -0x1p63) return INT64_MIN;
    return v >= 0x1p63 ? INT64_MAX : (int64_t)v;
}
#define SHL(v, n, bits) ((n) < bits ? (v) << (n) : 0)
#define SHR(v, n, bits) ((v) >> ((n) < bits ? (n) : bits - 1))
#define SHR_U(v, n, bits) ((n) < bits ? (v) >> (n) : 0)
"""
INSTRUCTION = re.compile(r"(?:@(!?)%(p\d+)\s+)?([a-z]\S*)\s*(.*);")


def _value(operand: str, kind: str) -> str:
    """An operand as a C expression of a PTX type."""
    if operand in SPECIAL:
        return SPECIAL[operand]
    if operand.startswith("0d"):
        return f"f64(0x{operand[2:]})"
    if operand.startswith("0f"):
        return f"f32(0x{operand[2:]})"
    if operand.startswith("%"):
        return f"({C_TYPE[kind]}){operand[1:]}"
    return (
        f"({C_TYPE[kind]}){operand}LL" if operand.lstrip("-").isdigit() else f"(uint64_t){operand}"
    )


def _address(operand: str, kind: str) -> str:
    """[%rd1+8] as a C lvalue."""
    register, _, offset = operand.strip("[]").lstrip("%").partition("+")
    return f"*({C_TYPE[kind]} *)({register} + ({offset or 0}))"


def _convert(goal: str, source: str, rounded: str, value: str) -> str:
    """A conversion; of a double only the one that rounds to zero."""
    if source == "f64" and goal != "f64":
        assert (rounded, goal) == ("rzi", "s64"), goal
        return f"whole({value})"
    return f"({C_TYPE[goal]}){value}"


def _expression(name: str, parts: Sequence[str], given: Sequence[str]) -> str:
    """What an instruction computes."""
    kind = parts[-1]
    bits = kind[1:]
    if name == "cvt":
        return _convert(parts[-2], kind, parts[0], _value(given[0], kind))
    if name == "setp":
        a, b = (_value(operand, kind) for operand in given)
        if parts[0] in UNORDERED:
            return f"!({a} {UNORDERED[parts[0]]} {b})"
        return f"{a} {COMPARED[parts[0]]} {b}"
    if name == "selp":
        return f"{given[2][1:]} ? {_value(given[0], kind)} : {_value(given[1], kind)}"
    if name in ("shl", "shr"):
        macro = "SHL" if name == "shl" else "SHR" if kind[0] == "s" else "SHR_U"
        return f"{macro}({_value(given[0], kind)}, {_value(given[1], 'u32')}, {bits})"
    values = [_value(operand, kind) for operand in given]
    if name in ("mov", "cvta"):
        return values[0]
    if name == "mul" and parts[0] == "hi":
        return f"(__int128){values[0]} * {values[1]} >> 64"
    if name == "mul" and parts[0] == "wide":
        return f"(int64_t){values[0]} * {values[1]}"
    if name in ("min", "max") and kind == "f64":
        return f"f{name}({values[0]}, {values[1]})"
    if name in ("min", "max"):
        sign = "<" if name == "min" else ">"
        return f"{values[0]} {sign} {values[1]} ? {values[0]} : {values[1]}"
    if name in ("sqrt", "abs"):
        return f"{'sqrt' if name == 'sqrt' else 'fabs'}({values[0]})"
    if name in PREFIX:
        return f"!{values[0]}" if kind == "pred" else f"{PREFIX[name]}({values[0]})"
    return f"{values[0]} {INFIX[name]} {values[1]}"


def _statement(operation: str, given: list[str], parameters: dict[str, int]) -> str:
    """One instruction as a C statement."""
    name, *parts = operation.split(".")
    if name == "bra":
        return f"goto {given[0].replace('$', '')};"
    if name == "ret":
        return "return;"
    if name == "st":
        return f"{_address(given[0], parts[-1])} = {_value(given[1], parts[-1])};"
    goal = given[0][1:]
    if name == "ld" and parts[0] == "param":
        return f"{goal} = parameter[{parameters[given[1].strip('[]')]}];"
    if name == "ld":
        return f"{goal} = {_address(given[1], parts[-1])};"
    return f"{goal} = {_expression(name, parts, given[1:])};"


def as_c(ptx: str) -> str:
    """The one kernel of a PTX module as a C function `run(parameter, blocks, threads)`."""
    names = re.findall(r"\.param \.u64 (\w+)", ptx)
    parameters = {name: number for number, name in enumerate(names)}
    lines = [HEAD]
    for name, size, values in re.findall(r"\.const .*?\.b8 (\w+)\[(\d+)\] = \{(.*?)\}", ptx):
        lines.append(
            f"static const uint8_t {name}[{size}] __attribute__((aligned(8))) = {{{values}}};"
        )
    lines.append("static void one(const uint64_t *parameter, int tid, int ctaid, int ntid) {")
    body = ptx[ptx.index("\n{") + 2 : ptx.rindex("}")]
    for line in body.splitlines():
        text = line.split("//")[0].strip()
        if register := re.fullmatch(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>;", text):
            kind, stem, count = register.groups()
            lines.append(f"{C_TYPE[kind]} {', '.join(f'{stem}{k}' for k in range(int(count)))};")
        elif text.endswith(":"):
            lines.append(text.replace("$", "") + ";")
        elif text and not text.startswith(".pragma"):
            negated, predicate, operation, rest = INSTRUCTION.fullmatch(text).groups()
            given = [operand.strip() for operand in rest.split(",")]
            statement = _statement(operation, given, parameters)
            lines.append(f"if ({negated}{predicate}) {statement}" if predicate else statement)
    lines.append("}\nvoid run(const uint64_t *parameter, int blocks, int threads) {")
    lines.append("for (int b = 0; b < blocks; b++) for (int t = 0; t < threads; t++)")
    lines.append("one(parameter, t, b, threads); }")
    return "\n".join(lines)


def compiled(ptx: str, folder: Path) -> Callable[[Sequence[object], int, int], None]:
    """A function (arguments, blocks, threads) that runs a kernel on arrays and integers."""
    source, library = folder / "kernel.c", folder / "kernel.so"
    source.write_text(as_c(ptx))
    options = "-O1 -w -ffp-contract=off -fno-strict-aliasing -shared -fPIC".split()
    subprocess.run(["gcc", *options, str(source), "-o", str(library), "-lm"], check=True)
    kernel = ctypes.CDLL(str(library)).run

    def run(arguments: Sequence[object], blocks: int, threads: int) -> None:
        words = np.array([w for argument in arguments for w in flat(argument)], np.int64)
        kernel(ctypes.c_void_p(words.ctypes.data), blocks, threads)

    return run


def flat(argument: object) -> list[int]:
    """The words that numba passes for an argument: arrays by size, place, shape and strides."""
    if isinstance(argument, tuple):
        return [word for part in argument for word in flat(part)]
    if isinstance(argument, np.ndarray):
        head = [0, 0, argument.size, argument.itemsize, argument.ctypes.data]
        return [*head, *argument.shape, *argument.strides]
    return [int(argument)]
