; Duel: two fighters, one screen. Game Boy (DMG), 32 KiB, no mapper, no sound.
; Build with `python -m fighting.rom build`.

INCLUDE "defs.inc"

SECTION "vblank", ROM0[$0040]
 jp VBlank

 ds 5, 0
; Line 0: the emulator's host has just had its turn, now logic may run.
LineZero:
 push af
 ld a, 1
 ld [wTick], a
 pop af
 reti

SECTION "entry", ROM0[$0100]
 nop
 jp Start

SECTION "logo", ROM0[$0104]
 ds 48, 0

SECTION "header", ROM0[$0134]
 db "DUEL"
 ds 12, 0               ; rest of the title, no colour
 db 0, 0, 0, 0, 0, 0    ; licensee, no SGB, ROM only, 32 KiB, no RAM
 db 1, $33, 0           ; outside Japan, licensee field above, version 0
 db 0, 0, 0             ; checksums, written by the assembler

SECTION "code", ROM0[$0150]
Start:
 di
 ld sp, $DFFE
.vblank:
 ldh a, [LY]
 cp 144
 jr c, .vblank
 xor a
 ldh [LCDC], a
 ldh [NR52], a
 ldh [SCX], a
 ldh [SCY], a
 ldh [IFLAG], a
 ld hl, $C000           ; zero all of the work RAM, 32 bytes at a time
 ld b, a
.clear:
 ds 32, $22             ; ld [hl+], a
 dec b
 jr nz, .clear
 ld de, FighterTiles
 ld hl, $8000
 ld bc, 512             ; 4096 bytes
 call CopyEights
 ld de, StageTiles
 ld hl, $9000
 ld bc, 256
 call CopyEights
 ld de, StageMap
 ld hl, MAP
 ld bc, 72              ; 18 rows of 32
 call CopyEights
 ld de, DmaRoutine
 ld hl, DmaInHram
 ld bc, 3
 call CopyEights
 ld hl, LEVEL
 ld [hl], 3
 ld l, LOW(ROUND_TIME)
 ld [hl], 60
 inc l
 ld [hl], 2             ; WINS_NEEDED
 inc l
 ld [hl], HP_MAX
 inc l
 ld [hl], HP_MAX
 ld l, LOW(START_GAP)
 ld [hl], 64
 ld a, $E4
 ldh [BGP], a
 ldh [OBP0], a
 ld a, $D0
 ldh [OBP1], a
 ld hl, MAGIC
 ld a, $44              ; D U E L
 ld [hl+], a
 ld a, $55
 ld [hl+], a
 ld a, $45
 ld [hl+], a
 ld a, $4C
 ld [hl+], a
 ld [hl], 1             ; VERSION
 ld a, %10000111        ; screen on, objects 8x16, background tiles at $9000
 ldh [LCDC], a
 xor a
 ldh [LYC], a
 ld a, $40              ; interrupt on line LYC
 ldh [STAT], a
 ld a, 3                ; VBlank and line 0
 ldh [IENABLE], a
 ei

Main:
 xor a
 ld [wBusy], a
.wait:
 ld hl, wTick
 bit 0, [hl]
 jr nz, .go
 halt
 nop
 jr .wait
.go:
 ld [hl], 0
 xor a
 inc a
 ld [wBusy], a
 call Logic
 jr Main

; Copies bc x 8 bytes from de to hl.
CopyEights:
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 ld a, [de]
 inc de
 ld [hl+], a
 dec bc
 ld a, b
 or c
 jr nz, CopyEights
 ret

; Runs in HRAM: only HRAM can be read during the 160 cycles of the transfer.
; `add sp, 0` takes four cycles, so the wait is 6 x 28 cycles in few instructions.
DmaRoutine:
 ld a, HIGH(OAM_SHADOW)
 ldh [DMA], a
 ld a, 6
.wait:
 add sp, 0
 add sp, 0
 add sp, 0
 add sp, 0
 add sp, 0
 add sp, 0
 dec a
 jr nz, .wait
 ret
 ds 2, 0

VBlank:
 push af
 push bc
 push de
 push hl
 call DmaInHram
 ld a, [wHudCount]
 or a
 jr z, .drawn
 ld b, a
 ld hl, wQueue
.next:
 ld d, [hl]
 inc l
 ld e, [hl]
 inc l
 ld a, [hl+]
 ld [de], a
 dec b
 jr nz, .next
 xor a
 ld [wHudCount], a
.drawn:
 ld a, [wBusy]          ; logic should be over long before

 or a
 jr z, .done
 ld hl, LAG
 inc [hl]
.done:
 pop hl
 pop de
 pop bc
 pop af
 reti

INCLUDE "match.inc"
INCLUDE "input.inc"
INCLUDE "fighter.inc"
INCLUDE "motion.inc"
INCLUDE "hits.inc"
INCLUDE "cpu.inc"
INCLUDE "draw.inc"
INCLUDE "tables.inc"
INCLUDE "plans.inc"
INCLUDE "art_fighter.inc"
INCLUDE "art_stage.inc"
