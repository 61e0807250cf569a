"""Every instruction of the SM83 processor, as a table from spelling to bytes.

A key is a spelling without blanks in which a number is written `n`: `ld a,n`, `ld [n],a`,
`jr nz,n`. The value names the opcode bytes and how the number follows them.
The numeric structure (three bits of register, three bits of operation) is the processor's own.
"""

from typing import NamedTuple


class Encoding(NamedTuple):
    """How one spelling is encoded."""

    opcode: bytes
    operand: str
    """`none`, `u8` (-128..255), `u16`, `s8`, `relative` (signed, from the next byte) or `high`."""

    @property
    def size(self) -> int:
        """Bytes of the whole instruction."""
        return len(self.opcode) + {"none": 0, "u16": 2}.get(self.operand, 1)


BYTE_REGISTERS = ("b", "c", "d", "e", "h", "l", "[hl]", "a")
WORD_REGISTERS = ("bc", "de", "hl", "sp")
STACK_REGISTERS = ("bc", "de", "hl", "af")
CONDITIONS = ("nz", "z", "nc", "c")
ARITHMETIC = ("add", "adc", "sub", "sbc", "and", "xor", "or", "cp")
SHIFTS = ("rlc", "rrc", "rl", "rr", "sla", "sra", "swap", "srl")
IMPLIED = {
    "nop": 0x00,
    "rlca": 0x07,
    "rrca": 0x0F,
    "rla": 0x17,
    "rra": 0x1F,
    "daa": 0x27,
    "cpl": 0x2F,
    "scf": 0x37,
    "ccf": 0x3F,
    "halt": 0x76,
    "ret": 0xC9,
    "reti": 0xD9,
    "di": 0xF3,
    "ei": 0xFB,
    "jp hl": 0xE9,
    "ld sp,hl": 0xF9,
    "ld [bc],a": 0x02,
    "ld [de],a": 0x12,
    "ld [hl+],a": 0x22,
    "ld [hl-],a": 0x32,
    "ld a,[bc]": 0x0A,
    "ld a,[de]": 0x1A,
    "ld a,[hl+]": 0x2A,
    "ld a,[hl-]": 0x3A,
    "ldh [c],a": 0xE2,
    "ldh a,[c]": 0xF2,
}
WITH_NUMBER = {
    "ld [n],sp": (0x08, "u16"),
    "ld [n],a": (0xEA, "u16"),
    "ld a,[n]": (0xFA, "u16"),
    "ldh [n],a": (0xE0, "high"),
    "ldh a,[n]": (0xF0, "high"),
    "add sp,n": (0xE8, "s8"),
    "ld hl,sp+n": (0xF8, "s8"),
    "jp n": (0xC3, "u16"),
    "call n": (0xCD, "u16"),
    "jr n": (0x18, "relative"),
}


def instruction_table() -> dict[str, Encoding]:
    """The 500 instructions (244 plain, 256 prefixed), `[n]` and `n` standing for numbers."""
    table = {name: Encoding(bytes([code]), "none") for name, code in IMPLIED.items()}
    table |= {name: Encoding(bytes([code]), kind) for name, (code, kind) in WITH_NUMBER.items()}
    table["stop"] = Encoding(bytes([0x10, 0x00]), "none")
    for i, register in enumerate(BYTE_REGISTERS):
        table[f"inc {register}"] = Encoding(bytes([0x04 | i << 3]), "none")
        table[f"dec {register}"] = Encoding(bytes([0x05 | i << 3]), "none")
        table[f"ld {register},n"] = Encoding(bytes([0x06 | i << 3]), "u8")
        for j, source in enumerate(BYTE_REGISTERS):
            if (register, source) != ("[hl]", "[hl]"):
                table[f"ld {register},{source}"] = Encoding(bytes([0x40 | i << 3 | j]), "none")
    for i, pair in enumerate(WORD_REGISTERS):
        table[f"ld {pair},n"] = Encoding(bytes([0x01 | i << 4]), "u16")
        table[f"inc {pair}"] = Encoding(bytes([0x03 | i << 4]), "none")
        table[f"dec {pair}"] = Encoding(bytes([0x0B | i << 4]), "none")
        table[f"add hl,{pair}"] = Encoding(bytes([0x09 | i << 4]), "none")
    for i, pair in enumerate(STACK_REGISTERS):
        table[f"pop {pair}"] = Encoding(bytes([0xC1 | i << 4]), "none")
        table[f"push {pair}"] = Encoding(bytes([0xC5 | i << 4]), "none")
    for i, condition in enumerate(CONDITIONS):
        table[f"jr {condition},n"] = Encoding(bytes([0x20 | i << 3]), "relative")
        table[f"ret {condition}"] = Encoding(bytes([0xC0 | i << 3]), "none")
        table[f"jp {condition},n"] = Encoding(bytes([0xC2 | i << 3]), "u16")
        table[f"call {condition},n"] = Encoding(bytes([0xC4 | i << 3]), "u16")
    for i, name in enumerate(ARITHMETIC):
        table[f"{name} a,n"] = Encoding(bytes([0xC6 | i << 3]), "u8")
        for j, register in enumerate(BYTE_REGISTERS):
            table[f"{name} a,{register}"] = Encoding(bytes([0x80 | i << 3 | j]), "none")
    for vector in range(8):
        table[f"rst {vector * 8}"] = Encoding(bytes([0xC7 | vector << 3]), "none")
    for j, register in enumerate(BYTE_REGISTERS):
        for i, name in enumerate(SHIFTS):
            table[f"{name} {register}"] = Encoding(bytes([0xCB, i << 3 | j]), "none")
        for bit in range(8):
            for i, name in enumerate(("bit", "res", "set"), start=1):
                code = i << 6 | bit << 3 | j
                table[f"{name} {bit},{register}"] = Encoding(bytes([0xCB, code]), "none")
    return table


INSTRUCTIONS = instruction_table()
MNEMONICS = frozenset(spelling.split()[0] for spelling in INSTRUCTIONS)
FIXED_OPERANDS = frozenset(
    {*BYTE_REGISTERS, *WORD_REGISTERS, *STACK_REGISTERS, *CONDITIONS}
    | {"[bc]", "[de]", "[hl+]", "[hl-]", "[c]"}
)
