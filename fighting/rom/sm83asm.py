"""Assembler for the SM83 processor: a strict subset of RGBDS' language, in pure Python.

Understood: `SECTION "name", ROM0[$addr]` and `WRAM0[$addr]`; `DEF NAME EQU expression`; labels
`Name:` and local `.name:`; `db`, `dw`, `ds count, value`, strings in `db`, tile rows as
`` dw `01230123 ``; `INCLUDE "file"`; all instructions, hexadecimal as `$FF`, binary as `%01`.
Two passes: the first gives every item its address, the second evaluates expressions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fighting.rom.expressions import Evaluator, ExpressionError
from fighting.rom.opcodes import ARITHMETIC, FIXED_OPERANDS, INSTRUCTIONS, MNEMONICS, Encoding

ROM_BYTES = 0x8000
LOGO = slice(0x104, 0x134)
RANGES = {"ROM0": (0x0000, 0x8000), "WRAM0": (0xC000, 0xE000)}
LIMITS = {"u8": (-128, 255), "u16": (-32768, 65535), "s8": (-128, 127), "high": (0xFF00, 0xFFFF)}
LABEL = re.compile(r"^(\.?[A-Za-z_]\w*):+\s*(.*)$")
CONSTANT = re.compile(r"^DEF\s+([A-Za-z_]\w*)\s+EQU\s+(.+)$", re.IGNORECASE)
SECTION = re.compile(r'^SECTION\s+"([^"]*)"\s*,\s*(\w+)\s*\[(.+)\]$', re.IGNORECASE)
INCLUDE = re.compile(r'^INCLUDE\s+"([^"]+)"$', re.IGNORECASE)
SPLIT = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')


class AssemblyError(Exception):
    """A line that cannot be assembled; the message names file, line and text."""


@dataclass(frozen=True)
class Line:
    """One line of source, without comment and outer blanks."""

    file: str
    number: int
    text: str
    raw: str

    def error(self, problem: object) -> AssemblyError:
        """The exception that names this line."""
        return AssemblyError(f"{self.file}:{self.number}: {problem}\n    {self.text}")


@dataclass
class Item:
    """Something that occupies bytes: an instruction or data."""

    line: Line
    address: int
    size: int
    scope: str
    encoding: Encoding | None = None
    operands: list[str] = field(default_factory=list)
    directive: str = ""
    code: bytes = b""


@dataclass(frozen=True)
class Program:
    """What an assembly gives: 32 KiB, the labels, and the items for a listing."""

    rom: bytes
    labels: dict[str, int]
    items: list[Item]

    def symbol_file(self) -> str:
        """Labels as `bank:address name`, by address, as debuggers and PyBoy read them."""
        rows = sorted((address, name) for name, address in self.labels.items())
        return "".join(f"00:{address:04x} {name}\n" for address, name in rows)

    def listing(self) -> str:
        """Address, bytes and source of each line that gave bytes."""
        rows = []
        for item in self.items:
            shown = item.code[:8].hex(" ") + (" .." if len(item.code) > 8 else "")
            rows.append(f"{item.address:04x}  {shown:<26} {item.line.raw.rstrip()}\n")
        return "".join(rows)


def source_lines(path: Path, trail: tuple[Path, ...] = ()) -> Iterator[Line]:
    """The lines of a file and of those that it includes, in order."""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = re.sub(r';(?=(?:[^"]*"[^"]*")*[^"]*$).*', "", raw).strip()
        if not text:
            continue
        line = Line(path.name, number, text, raw)
        included = INCLUDE.match(text)
        if included is None:
            yield line
            continue
        target = path.parent / included[1]
        if target in (*trail, path):
            raise line.error(f"{included[1]} includes itself")
        if not target.is_file():
            raise line.error(f"there is no file {included[1]} beside {path.name}")
        yield from source_lines(target, (*trail, path))


class Assembler:
    """Holds what is known so far: constants, labels, items."""

    def __init__(self) -> None:
        self.constants: dict[str, tuple[Line, str]] = {}
        self.labels: dict[str, int] = {}
        self.items: list[Item] = []
        self.address, self.kind, self.scope = -1, "ROM0", ""
        self.resolving: list[str] = []

    def assemble(self, path: Path) -> Program:
        """Both passes over `path`, then the image with its checksums."""
        for line in source_lines(path):
            try:
                self.place(line)
            except ExpressionError as problem:
                raise line.error(problem) from None
        for item in self.items:
            try:
                item.code = self.encode(item)
            except ExpressionError as problem:
                raise item.line.error(problem) from None
        return Program(self.image(), self.labels, self.items)

    def place(self, line: Line) -> None:
        """First pass: what one line defines, and how many bytes it takes."""
        text = line.text
        if match := LABEL.match(text):
            self.define_label(line, match[1])
            text = match[2]
            if not text:
                return
        if match := CONSTANT.match(text):
            self.refuse_duplicate(line, match[1])
            self.constants[match[1]] = (line, match[2])
        elif match := SECTION.match(text):
            self.open_section(line, match[2].upper(), match[3])
        else:
            self.place_item(line, text)

    def open_section(self, line: Line, kind: str, where: str) -> None:
        """Moves to a section's start address."""
        if kind not in RANGES:
            raise line.error(f"unknown section type {kind}; use ROM0 or WRAM0")
        self.kind, self.scope, self.address = kind, "", self.value(where, "")
        low, high = RANGES[kind]
        if not low <= self.address < high:
            raise line.error(f"${self.address:04X} is outside {kind}")

    def refuse_duplicate(self, line: Line, name: str) -> None:
        """A name has one meaning."""
        if name in self.labels or name in self.constants:
            raise line.error(f"{name} is defined twice")

    def define_label(self, line: Line, name: str) -> None:
        """Gives a label the present address; `.name` belongs to the label before it."""
        if self.address < 0:
            raise line.error("a label before the first SECTION")
        if name.lower() in FIXED_OPERANDS:
            raise line.error(f"{name} is the name of a register or condition")
        if name.startswith("."):
            if not self.scope:
                raise line.error(f"local label {name} without a label before it")
            name = self.scope + name
        else:
            self.scope = name
        self.refuse_duplicate(line, name)
        self.labels[name] = self.address

    def place_item(self, line: Line, text: str) -> None:
        """Recognises an instruction or a data directive."""
        if self.address < 0:
            raise line.error("code before the first SECTION")
        word, _, rest = text.partition(" ")
        word = word.lower()
        operands = [part.strip() for part in SPLIT.split(rest)] if rest.strip() else []
        item = Item(line, self.address, 0, self.scope, operands=operands)
        if word in ("db", "dw", "ds"):
            item.directive = word
            item.size = self.data_size(line, word, operands)
        elif word in MNEMONICS:
            item.encoding, item.operands = self.instruction(line, word, operands)
            item.size = item.encoding.size
        else:
            raise line.error(f"unknown mnemonic {word}")
        self.address += item.size
        if self.address > RANGES[self.kind][1]:
            raise line.error(f"the section runs past ${RANGES[self.kind][1]:04X}")
        if self.kind == "ROM0":
            self.items.append(item)
        elif word != "ds" or len(operands) != 1:
            raise line.error("memory holds no initial values; only `ds count` is allowed here")

    def data_size(self, line: Line, word: str, operands: list[str]) -> int:
        """Bytes of a data directive."""
        if not operands or (word == "ds" and len(operands) > 2):
            wanted = "a count and perhaps a value" if word == "ds" else "values"
            raise line.error(f"{word} needs {wanted}")
        if word == "ds":
            count = self.value(operands[0], self.scope)
            if count < 0:
                raise line.error(f"ds {count} is negative")
            return count
        strings = sum(len(part) - 3 for part in operands if part.startswith('"'))
        return (len(operands) + strings) * (2 if word == "dw" else 1)

    def instruction(self, line: Line, word: str, operands: list[str]) -> tuple[Encoding, list[str]]:
        """Finds the encoding; returns it with the operands that are numbers."""
        if word in ("bit", "res", "set", "rst") and operands:
            operands = [str(self.value(operands[0], self.scope)), *operands[1:]]
        if word in ARITHMETIC and len(operands) == 1:
            operands = ["a", *operands]
        shapes, numbers = [], []
        for operand in operands:
            squeezed = operand.lower().replace(" ", "")
            if squeezed in FIXED_OPERANDS or word in ("bit", "res", "set", "rst"):
                shapes.append(squeezed)
            elif squeezed.startswith("sp+"):
                shapes.append("sp+n")
                numbers.append(operand[operand.index("+") + 1 :])
            elif operand.startswith("["):
                shapes.append("[n]")
                numbers.append(operand[1:-1])
            else:
                shapes.append("n")
                numbers.append(operand)
        spelling = f"{word} {','.join(shapes)}".strip()
        encoding = INSTRUCTIONS.get(spelling)
        if encoding is None:
            raise line.error(f"there is no instruction of the form `{spelling}`")
        return encoding, numbers

    def encode(self, item: Item) -> bytes:
        """Second pass: the bytes of one item."""
        if item.encoding is None:
            return self.data(item)
        kind = item.encoding.operand
        if kind == "none":
            return item.encoding.opcode
        value = self.value(item.operands[0], item.scope)
        if kind == "relative":
            value -= item.address + 2
            if not -128 <= value <= 127:
                raise item.line.error(f"jr reaches {value} bytes far, beyond -128..127; use jp")
        else:
            self.check_range(item.line, value, kind)
        return (
            item.encoding.opcode
            + (value & 0xFFFF).to_bytes(2, "little")[
                : item.encoding.size - len(item.encoding.opcode)
            ]
        )

    def check_range(self, line: Line, value: int, kind: str) -> None:
        """A number must fit where it goes."""
        low, high = LIMITS[kind]
        if not low <= value <= high:
            raise line.error(f"the value {value} is outside {low}..{high}")

    def data(self, item: Item) -> bytes:
        """The bytes of db, dw or ds."""
        if item.directive == "ds":
            fill = self.value(item.operands[1], item.scope) if len(item.operands) > 1 else 0
            self.check_range(item.line, fill, "u8")
            return bytes([fill & 0xFF]) * item.size
        width, kind = (2, "u16") if item.directive == "dw" else (1, "u8")
        code = bytearray()
        for operand in item.operands:
            if operand.startswith('"'):
                values = list(operand[1:-1].encode("ascii"))
            else:
                values = [self.value(operand, item.scope)]
            for value in values:
                self.check_range(item.line, value, kind)
                code += (value & 0xFFFF).to_bytes(2, "little")[:width]
        return bytes(code)

    def value(self, text: str, scope: str) -> int:
        """An expression's value; `.name` is looked up in `scope`."""

        def lookup(name: str) -> int:
            full = scope + name if name.startswith(".") else name
            if full in self.labels:
                return self.labels[full]
            if full not in self.constants:
                raise ExpressionError(f"undefined symbol {full}")
            if full in self.resolving:
                raise ExpressionError(f"{full} is defined by itself")
            self.resolving.append(full)
            try:
                return self.value(self.constants[full][1], "")
            finally:
                self.resolving.remove(full)

        return Evaluator(text, lookup).value()

    def image(self) -> bytes:
        """Joins the items, checks the logo area, writes both header checksums."""
        rom, owner = bytearray(ROM_BYTES), {}
        for item in sorted(self.items, key=lambda one: one.address):
            last = owner.get("last")
            if last is not None and item.size and item.address < last.address + last.size:
                raise item.line.error(
                    f"overlaps the bytes of {last.line.file}:{last.line.number} at "
                    f"${item.address:04X}"
                )
            rom[item.address : item.address + item.size] = item.code
            if item.size:
                owner["last"] = item
        if any(rom[LOGO]):
            raise AssemblyError("the logo area $0104-$0133 must stay zero: it is not ours to fill")
        rom[0x14D] = (-sum(rom[0x134:0x14D]) - (0x14D - 0x134)) & 0xFF
        rom[0x14E:0x150] = (sum(rom) - rom[0x14E] - rom[0x14F] & 0xFFFF).to_bytes(2, "big")
        return bytes(rom)


def assemble(path: Path) -> Program:
    """Assembles the program whose main file is `path`."""
    return Assembler().assemble(path)
