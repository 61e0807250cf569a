; Stack: falling blocks in a well of 6 by 12. Game Boy (DMG), 32 KiB, no mapper, no sound.
; Left and Right move, A turns, B or Down drops; a full row vanishes and is a point, a piece that
; finds no room ends the game. Pieces fill one to four cells of a square of 2 by 2.
; Build with `python -m fighting.rom build`.

INCLUDE "shell.inc"

; --- contract ---
DEF SHAPE EQU $C010          ; cells: upper left, upper right, lower right, lower left from bit 0
DEF COLUMN EQU $C011         ; of the piece's square, 0 to 4
DEF ROW EQU $C012            ; of the piece's square, 0 at the top
DEF WELL EQU $C020           ; 12 rows, the left cell in bit 0; then the floor
DEF HEIGHTS EQU $C030        ; of the six columns
DEF PIECES EQU $C036         ; pieces laid, modulo 256
; --- the program's own ---
DEF wFall EQU $C040          ; frames until the piece falls by one row
DEF wRepeat EQU $C041        ; frames until a held direction counts again
DEF VIEW EQU $C050           ; what is drawn: the well with the piece in it

DEF DISPLAY EQU %10010001    ; no window, tiles at $8000, no objects
DEF HUD EQU MAP + 32
DEF CELLS EQU MAP + 32 * 4 + 7
DEF ROWS EQU 12
DEF COLUMNS EQU 6
DEF FULL EQU $3F
DEF FALL_FRAMES EQU 24
DEF REPEAT_FRAMES EQU 4
DEF TILE_BRICK EQU 2
DEF TILE_EMPTY EQU 3         ; and a filled cell behind it

SECTION "header", ROM0[$0134]
 db "STACK"
 ds 11, 0               ; rest of the title, no colour
 db 0, 0, 0, 0, 0, 0    ; licensee, no SGB, ROM only, 32 KiB, no RAM
 db 1, $33, 0           ; outside Japan, licensee field above, version 0
 db 0, 0, 0             ; checksums, written by the assembler

SECTION "game", ROM0[$0800]
; Walls left and right of the well, the floor below it.
Paint:
 ld hl, CELLS - 1
 ld de, 25
 ld b, ROWS
.wall:
 ld a, TILE_BRICK
 ld [hl+], a
 ld c, COLUMNS
 inc a                  ; TILE_EMPTY
.cell:
 ld [hl+], a
 dec c
 jr nz, .cell
 ld [hl], TILE_BRICK
 add hl, de
 dec b
 jr nz, .wall
 ld c, COLUMNS + 2
 ld a, TILE_BRICK
.floor:
 ld [hl+], a
 dec c
 jr nz, .floor
 ret

Begin:
 ld hl, WELL
 ld bc, ROWS
 call Clear
 dec a                  ; Clear leaves 0
 ld [hl+], a
 ld [hl], a
 xor a
 ld [PIECES], a
 call Next
 jp Compose

; A new piece at the top; the game is over where there is no room.
Next:
 call Measure
 ld a, [RNG]
 and 3
 ld c, a
 ld b, 0
 ld hl, Kinds
 add hl, bc
 ld a, [hl]
 ld hl, SHAPE
 ld [hl+], a
 ld [hl], 2
 inc l
 ld [hl], 0
 ld a, FALL_FRAMES
 ld [wFall], a
 call Collides
 ret z
 ld a, 2
 ld [PHASE], a
 ret

Play:
 call Control
 jp Compose

Control:
 ld a, [PRESSED]
 bit 0, a
 call nz, Turn
 call Move
 ld a, [PRESSED]
 and $82                ; B or Down
 jr nz, .drop
 ld hl, wFall
 dec [hl]
 ret nz
 ld [hl], FALL_FRAMES
 call Lower
 ret z
 jr Lock
.drop:
 call Lower
 jr z, .drop
; The piece stays where it is.
Lock:
 call Masks
 call Place
 ld a, [hl]
 or d
 ld [hl+], a
 ld a, [hl]
 or e
 ld [hl], a
 ld hl, PIECES
 inc [hl]
 ld c, 0
.row:
 ld b, 0
 ld hl, WELL
 add hl, bc
 ld a, [hl]
 cp FULL
 call z, Vanish
 inc c
 ld a, c
 cp ROWS
 jr c, .row
 jr Next

; The row at hl goes, all above it sink by one.
Vanish:
 ld a, l
 cp LOW(WELL)
 jr z, .top
 dec l
 ld a, [hl+]
 ld [hl-], a
 jr Vanish
.top:
 ld [hl], 0
 jp AddPoint

; A quarter turn to the right, where there is room.
Turn:
 ld hl, SHAPE
 ld a, [hl]
 push af
 add a
 bit 4, a
 jr z, .turned
 xor $11
.turned:
 ld [hl], a
 call Collides
 pop bc
 ret z
 ld a, b
 ld [SHAPE], a
 ret

; One column per REPEAT_FRAMES in which Left or Right is held.
Move:
 ld hl, wRepeat
 ld a, [PAD]
 and $30
 jr nz, .held
 ld [hl], a
 ret
.held:
 ld b, a
 ld a, [hl]
 or a
 jr nz, .wait
 ld [hl], REPEAT_FRAMES
 bit 4, b
 ld b, 1
 jr nz, .side
 ld b, $FF
.side:
 push hl
 call Shift
 pop hl
.wait:
 dec [hl]
 ret

; The piece by b columns, where there is room.
Shift:
 ld hl, COLUMN
 ld a, [hl]
 add b
 cp COLUMNS - 1
 ret nc                 ; beyond a wall
 ld c, [hl]
 ld [hl], a
 push bc
 call Collides
 pop bc
 ret z
 ld a, c
 ld [COLUMN], a
 ret

; One row down; nz and nothing moved where there is no room.
Lower:
 ld hl, ROW
 inc [hl]
 call Collides
 ret z
 ld hl, ROW
 dec [hl]
 or 1
 ret

; z where the piece has room.
Collides:
 call Masks
 call Place
 ld a, [hl+]
 and d
 ld b, a
 ld a, [hl]
 and e
 or b
 ret

; hl = the row of the well in which the piece's upper half lies.
Place:
 ld a, [ROW]
 add LOW(WELL)
 ld l, a
 ld h, HIGH(WELL)
 ret

; d, e = the cells of the piece's upper and lower half.
Masks:
 ld a, [SHAPE]
 ld b, a
 and 3
 ld d, a
 xor a
 bit 3, b
 jr z, .right
 inc a
.right:
 bit 2, b
 jr z, .shift
 or 2
.shift:
 ld e, a
 ld a, [COLUMN]
 or a
 ret z
.next:
 sla d
 sla e
 dec a
 jr nz, .next
 ret

; HEIGHTS of the columns.
Measure:
 ld de, HEIGHTS
 ld c, 1
.column:
 ld hl, WELL
 ld b, ROWS
.cell:
 ld a, [hl+]
 and c
 jr nz, .found
 dec b
 jr nz, .cell
.found:
 ld a, b
 ld [de], a
 inc e
 sla c
 bit COLUMNS, c
 jr z, .column
 ret

; VIEW is the well with the piece in it.
Compose:
 ld de, WELL
 ld hl, VIEW
 ld bc, ROWS + 2
 call Copy
 call Masks
 call Place
 ld bc, VIEW - WELL
 add hl, bc
 ld a, [hl]
 or d
 ld [hl+], a
 ld a, [hl]
 or e
 ld [hl], a
 ret

Draw:
 ld a, [PHASE]
 or a
 ret z
 ld de, VIEW
 ld hl, CELLS
 ld c, TILE_EMPTY
.row:
 ld a, [de]
 inc e
 ld b, a
 xor a
 srl b
 adc c
 ld [hl+], a
 xor a
 srl b
 adc c
 ld [hl+], a
 xor a
 srl b
 adc c
 ld [hl+], a
 xor a
 srl b
 adc c
 ld [hl+], a
 xor a
 srl b
 adc c
 ld [hl+], a
 xor a
 srl b
 adc c
 ld [hl+], a
 ld a, l
 add 32 - COLUMNS
 ld l, a
 jr nc, .same
 inc h
.same:
 ld a, e
 cp LOW(VIEW) + ROWS
 jr nz, .row
 ret

Kinds:
 db %0001, %0011, %0111, %1111

INCLUDE "art_stack.inc"
