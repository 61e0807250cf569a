"""Duel's logic in C: the cartridge's own instructions, translated; `logic` compiles them.

What a frame does to the fight is one routine of the cartridge, `Logic`, which reads the cartridge
and work RAM and writes work RAM only. Every instruction that it can reach becomes a line of C, so a
rule or a level that changes in the source changes here too, and a frame takes about a hundredth of
an emulator's. Not here: joypad, pictures, interrupts; flags N and H, which Duel never reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from frugal_rl.errors import DataError

RETURN = 0xFFFF
REGISTERS = ("b", "c", "d", "e", "h", "l", "", "a")
CONDITIONS = ("!zf", "zf", "!cf", "cf")
READ = "#define RD(x) ((x) < 0x8000 ? rom[x] : ram[(x) & 0x1FFF])"
HEAD = (
    f"#include <stdint.h>\n{READ}"
    + """
#define WR(x, v) (ram[(x) & 0x1FFF] = (v))
#define HL (h << 8 | l)
#define PUSH(x) (WR(sp - 1, (x) >> 8), WR(sp - 2, (x) & 0xFF), sp -= 2)
#define POP() (sp += 2, RD(sp - 2) | RD(sp - 1) << 8)
#define PAIR(x, y, v) { unsigned t = (v); x = t >> 8; y = t; }
#define ADD(v) { unsigned t = a + (v); cf = t >> 8 & 1; a = t; zf = !a; }
#define SUB(v) { unsigned t = a - (v); cf = t >> 8 & 1; a = t; zf = !a; }
#define CP(v) { unsigned t = a - (v); cf = t >> 8 & 1; zf = !(t & 0xFF); }
#define AND(v) { a &= (v); zf = !a; cf = 0; }
#define XOR(v) { a ^= (v); zf = !a; cf = 0; }
#define OR(v) { a |= (v); zf = !a; cf = 0; }
void frame(uint8_t *ram, const uint8_t *rom) {
  uint8_t a = 0, b = 0, c = 0, d = 0, e = 0, h = 0, l = 0;
  unsigned zf = 0, cf = 0, pc, sp = 0xDFE0;
"""
)


@dataclass(frozen=True)
class Line:
    """One instruction in C."""

    text: str
    size: int
    falls: bool = True
    """Whether the next instruction may follow."""
    target: int | None = None
    """Where it may go instead."""


def _operand(field: int) -> str:
    """A register as instructions number them; 6 is the byte at HL."""
    return "RD(HL)" if field == 6 else REGISTERS[field]


def _stored(field: int, value: str) -> str:
    return f"WR(HL, {value});" if field == 6 else f"{REGISTERS[field]} = {value};"


def _pair(field: int) -> tuple[str, str]:
    return REGISTERS[2 * field], REGISTERS[2 * field + 1]


def _jump(target: int, condition: int | None) -> str:
    return (
        f"goto L{target:04X};"
        if condition is None
        else (f"if ({CONDITIONS[condition]}) goto L{target:04X};")
    )


def _arithmetic(kind: int, value: str) -> str:
    """ADD, ADC, SUB, SBC, AND, XOR, OR, CP of A and a value."""
    name = ("ADD", "ADD", "SUB", "SUB", "AND", "XOR", "OR", "CP")[kind]
    return f"{name}({value}{' + cf' if kind in (1, 3) else ''})"


def _rotated(kind: int, field: int) -> str:
    """RLC, RRC, RL, RR, SLA, SRA, SWAP, SRL of an operand."""
    value, carry = (
        ("v << 1 | v >> 7", "v >> 7"),
        ("v >> 1 | v << 7", "v & 1"),
        ("v << 1 | cf", "v >> 7"),
        ("v >> 1 | cf << 7", "v & 1"),
        ("v << 1", "v >> 7"),
        ("v >> 1 | (v & 0x80)", "v & 1"),
        ("v << 4 | v >> 4", "0"),
        ("v >> 1", "v & 1"),
    )[kind]
    result = f"unsigned v = {_operand(field)}; uint8_t t = {value};"
    return f"{{ {result} cf = {carry}; zf = !t; {_stored(field, 't')} }}"


def _prefixed(op: int) -> str:
    """Instructions after $CB: rotations, and one bit tested, cleared or set."""
    bit, field = op >> 3 & 7, op & 7
    if op < 0x40:
        return _rotated(bit, field)
    if op < 0x80:
        return f"zf = !({_operand(field)} >> {bit} & 1);"
    mask = f"& {~(1 << bit) & 0xFF}" if op < 0xC0 else f"| {1 << bit}"
    return _stored(field, f"{_operand(field)} {mask}")


def _low_quarter(op: int, at: int, low: int, word: int) -> Line | None:
    """Instructions $00 to $3F; `low` and `word` follow them at `at` + 1."""
    row, kind = op >> 3, op & 7
    if op == 0:
        return Line("", 1)
    if kind == 0 and row >= 3:
        target = at + 2 + (low ^ 0x80) - 0x80
        return Line(_jump(target, None if row == 3 else row - 4), 2, row > 3, target)
    if kind == 1 and row != 6:
        if row & 1:
            pair = "sp" if row == 7 else "({} << 8 | {})".format(*_pair(row >> 1))
            return Line(f"{{ unsigned t = HL + {pair}; cf = t >> 16; h = t >> 8; l = t; }}", 1)
        return Line(f"{_pair(row >> 1)[0]} = {word >> 8}; {_pair(row >> 1)[1]} = {low};", 3)
    if kind == 2:
        high, less = _pair(min(row >> 1, 2))
        text = f"a = RD({high} << 8 | {less});" if row & 1 else f"WR({high} << 8 | {less}, a);"
        step = "" if row < 4 else f" PAIR(h, l, HL {'+' if row < 6 else '-'} 1)"
        return Line(text + step, 1)
    if kind == 3 and row < 6:
        high, less = _pair(row >> 1)
        return Line(f"PAIR({high}, {less}, ({high} << 8 | {less}) {'-' if row & 1 else '+'} 1)", 1)
    if kind in (4, 5):
        sign = "+" if kind == 4 else "-"
        stored = _stored(row, "t")
        return Line(f"{{ uint8_t t = {_operand(row)} {sign} 1; zf = !t; {stored} }}", 1)
    if kind == 6:
        return Line(_stored(row, str(low)), 2)
    if kind == 7 and row != 4:
        plain = (
            *(f"{_rotated(n, 7)} zf = 0;" for n in range(4)),
            "",
            "a = ~a;",
            "cf = 1;",
            "cf = !cf;",
        )
        return Line(plain[row], 1)
    return None


def _high_quarter(op: int, at: int, low: int, word: int) -> Line | None:
    """Instructions $C0 to $FF."""
    row, kind = op >> 3 & 7, op & 7
    condition = None if kind in (1, 3, 5) else row
    if kind == 6:
        return Line(_arithmetic(row, str(low)), 2)
    if op == 0xCB:
        return Line(_prefixed(low), 2)
    if op == 0xCD or (kind == 4 and row < 4):
        call = f"{{ PUSH({at + 3}); goto L{word:04X}; }}"
        check = "" if condition is None else f"if ({CONDITIONS[row]}) "
        return Line(check + call, 3, True, word)
    if op == 0xC3 or (kind == 2 and row < 4):
        return Line(_jump(word, condition), 3, condition is not None, word)
    if op == 0xC9 or (kind == 0 and row < 4):
        check = "" if condition is None else f"if ({CONDITIONS[row]}) "
        return Line(check + "{ pc = POP(); goto done; }", 1, condition is not None)
    if op in (0xEA, 0xFA):
        return Line(f"WR({word}, a);" if op == 0xEA else f"a = RD({word});", 3)
    if kind in (1, 5) and row in (0, 2, 4):
        high, less = _pair(row >> 1)
        push = f"PUSH({high} << 8 | {less});"
        return Line(push if kind == 5 else f"PAIR({high}, {less}, POP())", 1)
    if op == 0xF5:
        return Line("PUSH(a << 8 | zf << 7 | cf << 4);", 1)
    if op == 0xF1:
        return Line("{ unsigned t = POP(); a = t >> 8; zf = t >> 7 & 1; cf = t >> 4 & 1; }", 1)
    return None


def line_of(rom: bytes, at: int) -> Line:
    """The instruction at an address, in C."""
    op, low = rom[at], rom[at + 1]
    if 0x40 <= op < 0xC0:
        if op == 0x76:
            raise DataError(f"The instruction at ${at:04X} halts the processor: no translation.")
        if op < 0x80:
            return Line(_stored(op >> 3 & 7, _operand(op & 7)), 1)
        return Line(_arithmetic(op >> 3 & 7, _operand(op & 7)), 1)
    quarter = _low_quarter if op < 0x40 else _high_quarter
    line = quarter(op, at, low, low | rom[at + 2] << 8)
    if line is None:
        raise DataError(f"The instruction ${op:02X} at ${at:04X} has no translation to C.")
    return line


def translated(rom: bytes, start: int, stops: frozenset[int]) -> str:
    """The C text of all that `start` can reach; a routine in `stops` returns at once.

    Hardware registers ($FF00 on) are not there, so what reads the joypad must be among the stops.
    """
    lines = {at: Line("{ pc = POP(); goto done; }", 1, False) for at in stops}
    waiting, returns = [start], set()
    while waiting:
        at = waiting.pop()
        while at not in lines:
            line = lines[at] = line_of(rom, at)
            if line.target is not None:
                waiting.append(line.target)
            if "PUSH" in line.text and line.target is not None:
                returns.add(at + line.size)
            if not line.falls:
                break
            at += line.size
    body = "\n".join(f"L{at:04X}: {line.text};" for at, line in sorted(lines.items()))
    cases = " ".join(f"case {at}: goto L{at:04X};" for at in sorted(returns))
    return (
        f"{HEAD}PUSH({RETURN}); goto L{start:04X};\n{body}\ndone: switch (pc) {{ {cases} }}\n}}\n"
    )
