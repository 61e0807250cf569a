"""The assembler: every opcode, every directive, every refusal."""

import shutil
import subprocess

import pytest

from fighting.rom.expressions import Evaluator, ExpressionError, tile_row
from fighting.rom.opcodes import INSTRUCTIONS
from fighting.rom.sm83asm import AssemblyError, assemble

# Written by hand from the public instruction reference, one row per high nibble; `.` is no opcode.
GRID = """
nop|ld bc,n|ld [bc],a|inc bc|inc b|dec b|ld b,n|rlca|ld [n],sp|add hl,bc|ld a,[bc]|dec bc|inc c|dec c|ld c,n|rrca
stop|ld de,n|ld [de],a|inc de|inc d|dec d|ld d,n|rla|jr n|add hl,de|ld a,[de]|dec de|inc e|dec e|ld e,n|rra
jr nz,n|ld hl,n|ld [hl+],a|inc hl|inc h|dec h|ld h,n|daa|jr z,n|add hl,hl|ld a,[hl+]|dec hl|inc l|dec l|ld l,n|cpl
jr nc,n|ld sp,n|ld [hl-],a|inc sp|inc [hl]|dec [hl]|ld [hl],n|scf|jr c,n|add hl,sp|ld a,[hl-]|dec sp|inc a|dec a|ld a,n|ccf
ld b,b|ld b,c|ld b,d|ld b,e|ld b,h|ld b,l|ld b,[hl]|ld b,a|ld c,b|ld c,c|ld c,d|ld c,e|ld c,h|ld c,l|ld c,[hl]|ld c,a
ld d,b|ld d,c|ld d,d|ld d,e|ld d,h|ld d,l|ld d,[hl]|ld d,a|ld e,b|ld e,c|ld e,d|ld e,e|ld e,h|ld e,l|ld e,[hl]|ld e,a
ld h,b|ld h,c|ld h,d|ld h,e|ld h,h|ld h,l|ld h,[hl]|ld h,a|ld l,b|ld l,c|ld l,d|ld l,e|ld l,h|ld l,l|ld l,[hl]|ld l,a
ld [hl],b|ld [hl],c|ld [hl],d|ld [hl],e|ld [hl],h|ld [hl],l|halt|ld [hl],a|ld a,b|ld a,c|ld a,d|ld a,e|ld a,h|ld a,l|ld a,[hl]|ld a,a
add a,b|add a,c|add a,d|add a,e|add a,h|add a,l|add a,[hl]|add a,a|adc a,b|adc a,c|adc a,d|adc a,e|adc a,h|adc a,l|adc a,[hl]|adc a,a
sub a,b|sub a,c|sub a,d|sub a,e|sub a,h|sub a,l|sub a,[hl]|sub a,a|sbc a,b|sbc a,c|sbc a,d|sbc a,e|sbc a,h|sbc a,l|sbc a,[hl]|sbc a,a
and a,b|and a,c|and a,d|and a,e|and a,h|and a,l|and a,[hl]|and a,a|xor a,b|xor a,c|xor a,d|xor a,e|xor a,h|xor a,l|xor a,[hl]|xor a,a
or a,b|or a,c|or a,d|or a,e|or a,h|or a,l|or a,[hl]|or a,a|cp a,b|cp a,c|cp a,d|cp a,e|cp a,h|cp a,l|cp a,[hl]|cp a,a
ret nz|pop bc|jp nz,n|jp n|call nz,n|push bc|add a,n|rst 0|ret z|ret|jp z,n|.|call z,n|call n|adc a,n|rst 8
ret nc|pop de|jp nc,n|.|call nc,n|push de|sub a,n|rst 16|ret c|reti|jp c,n|.|call c,n|.|sbc a,n|rst 24
ldh [n],a|pop hl|ldh [c],a|.|.|push hl|and a,n|rst 32|add sp,n|jp hl|ld [n],a|.|.|.|xor a,n|rst 40
ldh a,[n]|pop af|ldh a,[c]|di|.|push af|or a,n|rst 48|ld hl,sp+n|ld sp,hl|ld a,[n]|ei|.|.|cp a,n|rst 56
"""  # noqa: E501
PREFIXED = "rlc rrc rl rr sla sra swap srl".split()
REGISTERS = ["b", "c", "d", "e", "h", "l", "[hl]", "a"]


def by_hand():
    """Opcode bytes by spelling, from the grid and the regular prefixed page."""
    rows = [row.split("|") for row in GRID.strip().splitlines()]
    table = {}
    for high, row in enumerate(rows):
        assert len(row) == 16, row
        for low, spelling in enumerate(row):
            if spelling != ".":
                table[spelling] = bytes([high << 4 | low])
    table["stop"] += b"\0"
    for code in range(256):
        register = REGISTERS[code & 7]
        if code < 0x40:
            spelling = f"{PREFIXED[code >> 3]} {register}"
        else:
            spelling = f"{('bit', 'res', 'set')[(code >> 6) - 1]} {code >> 3 & 7},{register}"
        table[spelling] = bytes([0xCB, code])
    return table


def test_all_500_opcodes_equal_the_table_written_by_hand():
    assert {name: encoding.opcode for name, encoding in INSTRUCTIONS.items()} == by_hand()
    assert len(INSTRUCTIONS) == 500


@pytest.fixture
def build(tmp_path):
    """Assembles lines of source in a section at $0150; returns the program."""

    def run(source, head='SECTION "code", ROM0[$150]\n'):
        path = tmp_path / "test.asm"
        path.write_text(head + source + "\n")
        return assemble(path)

    return run


def code_of(program, count):
    return program.rom[0x150 : 0x150 + count].hex(" ")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("ld a, [$C123]", "fa 23 c1"),
        ("ld a, [ hl+ ]", "2a"),
        ("ldh [$FF40], a", "e0 40"),
        ("ld hl, sp+5", "f8 05"),
        ("add sp, -2", "e8 fe"),
        ("ld b, -1", "06 ff"),
        ("jr @", "jr"),
        ("bit 7, [hl]", "cb 7e"),
        ("add b", "80"),
        ("ld [$1234], sp", "08 34 12"),
        ("rst $28", "ef"),
        ('db "AB", 3, %101, HIGH($1234), LOW($1234)', "41 42 03 05 12 34"),
        ("dw $1234, `01230123", "34 12 55 33"),
        ("ds 3, $AA", "aa aa aa"),
        ("here: jr here", "18 fe"),
        ("jp there\nthere: nop", "c3 53 01 00"),
        ("one:\n.two: nop\n jr .two\nthree:\n.two: jr .two", "00 18 fd 18 fe"),
        ("DEF N EQU 2 * (3 + 4)\n ld a, N ; comment", "3e 0e"),
        ('db ";"', "3b"),
    ],
)
def test_source_becomes_bytes(build, source, expected):
    if expected == "jr":
        with pytest.raises(AssemblyError, match="cannot read '@'"):
            build(source)
        return
    assert code_of(build(source), len(expected.split())) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("1 << 4 | 3", 19),
        ("$F0 & ~$30", 0xC0),
        ("10 - 4 - 3", 3),
        ("7 / 2", 3),
        ("2 + 1 << 3", 10),
        ("1 ^ 3", 2),
        ("-5 + 6", 1),
        ("HIGH($ABCD) + LOW(%11)", 0xAE),
    ],
)
def test_expressions_follow_the_order_of_rgbds(text, value):
    assert Evaluator(text, lambda name: 0).value() == value


def test_a_tile_row_splits_its_pixels_into_two_bytes():
    assert tile_row("00112233") == 0b00001111_00110011 & 0xFF | 0b00001111 << 8
    assert tile_row("30000000") == 0x8080


@pytest.mark.parametrize("text", ["1 +", "(1", "1 2", "1 / 0", "1 << 99"])
def test_a_broken_expression_is_refused(text):
    with pytest.raises(ExpressionError):
        Evaluator(text, lambda name: 0).value()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("mov a, b", "unknown mnemonic mov"),
        ("ld a, nowhere", "undefined symbol nowhere"),
        ("x: nop\nx: nop", "x is defined twice"),
        ("ld a, 256", "outside -128..255"),
        ("ld [$10000], a", "outside"),
        ("ldh [$C000], a", "outside"),
        ("ld bc, de", "no instruction of the form `ld bc,de`"),
        ("ld [hl], [hl]", "no instruction"),
        ("far: ds 200, 0\n jr far", "jr reaches"),
        ("hl: nop", "name of a register"),
        (".x: nop", "without a label"),
        ("DEF A1 EQU B1\nDEF B1 EQU A1\n db A1", "defined by itself"),
        ('INCLUDE "no.inc"', "no file"),
        ('SECTION "w", WRAM0[$C000]\n nop', "no initial values"),
        ('SECTION "x", ROMX[$4000]', "unknown section type"),
        ('SECTION "x", ROM0[$9000]', "outside"),
        ('SECTION "x", ROM0[$7FFF]\n dw 1', "runs past"),
        ('SECTION "x", ROM0[$150]\n nop\nSECTION "y", ROM0[$150]\n nop', "overlaps"),
        ("ds -1", "negative"),
    ],
)
def test_errors_name_file_line_and_text(build, source, problem):
    with pytest.raises(AssemblyError) as caught:
        build(source)
    message = str(caught.value)
    assert problem in message
    assert message.startswith("test.asm:")
    assert "\n    " in message


def test_the_logo_area_must_stay_zero(build):
    with pytest.raises(AssemblyError, match="logo area"):
        build("db 1", head='SECTION "logo", ROM0[$104]\n')


def test_a_file_that_includes_itself_is_refused(tmp_path):
    (tmp_path / "a.asm").write_text('INCLUDE "b.asm"\n')
    (tmp_path / "b.asm").write_text('INCLUDE "a.asm"\n')
    with pytest.raises(AssemblyError, match="includes itself"):
        assemble(tmp_path / "a.asm")


@pytest.mark.skipif(shutil.which("sdasgb") is None, reason="sdasgb is not installed")
def test_sdasgb_gives_the_same_bytes(tmp_path):
    """The regular part of the instruction list, in the other assembler's spelling."""
    lines, expected = [], b""
    for spelling, encoding in INSTRUCTIONS.items():
        if encoding.operand == "none" and "[hl" not in spelling and spelling != "stop":
            other = spelling.replace("[", "(").replace("]", ")").replace("ldh (c)", "ld (c)")
            lines.append(f"\t{other}")
            expected += encoding.opcode
    (tmp_path / "all.s").write_text("\t.area _CODE\n" + "\n".join(lines) + "\n")
    subprocess.run(["sdasgb", "-lo", "all.s"], cwd=tmp_path, check=True, capture_output=True)
    listing = (tmp_path / "all.lst").read_text().splitlines()
    rows = [row[9:32] for row in listing if row[9:11].strip()]
    found = bytes.fromhex("".join("".join(row.split()) for row in rows))
    assert found == expected
