; Hop: run to the right, jump over the gaps. Game Boy (DMG), 32 KiB, no mapper, no sound.
; Right runs, A jumps; each gap crossed is a point, each fall costs one of three lives, and a
; balloon carries the runner over the gap that he fell into.
; Build with `python -m fighting.rom build`.

INCLUDE "shell.inc"

; --- contract ---
DEF SCROLL EQU $C010         ; how far the runner has come, pixels modulo 256
DEF HEIGHT EQU $C011         ; above the ground, quarter pixels
DEF SPEED EQU $C012          ; upward, quarter pixels a frame, signed
DEF EDGE EQU $C013           ; pixels to the next gap, 0 above one, at most 96
DEF WIDTH EQU $C014          ; tiles of that gap that still lie ahead
DEF SINK EQU $C015           ; pixels below the ground while falling
DEF CARRIED EQU $C016        ; 1 under the balloon
; --- the program's own ---
DEF wOver EQU $C017          ; 1 above a gap
DEF wLeft EQU $C018          ; columns left of the segment that is being laid
DEF wKind EQU $C019          ; 1: that segment is a gap
DEF wColumn EQU $C01A        ; column waiting to be drawn, $FF none
DEF WORLD EQU $C100          ; 32 columns, 1 where there is a gap

DEF DISPLAY EQU %11110111    ; window at $9C00, tiles at $8000, objects 8x16
DEF HUD EQU WINDOW_MAP
DEF GROUND_ROW EQU 13
DEF RUNNER EQU 44            ; his middle on the screen
DEF STANDING EQU 104         ; y of his object on the ground
DEF JUMP_SPEED EQU 14
DEF BALLOON_HEIGHT EQU 96
DEF DEPTH EQU 24
DEF TILE_GRASS EQU 2
DEF TILE_EARTH EQU 3
DEF TILE_RUN EQU 4
DEF TILE_JUMP EQU 8
DEF TILE_BALLOON EQU 10
DEF TILE_CLOUD EQU 12

SECTION "header", ROM0[$0134]
 db "HOP"
 ds 13, 0               ; rest of the title, no colour
 db 0, 0, 0, 0, 0, 0    ; licensee, no SGB, ROM only, 32 KiB, no RAM
 db 1, $33, 0           ; outside Japan, licensee field above, version 0
 db 0, 0, 0             ; checksums, written by the assembler

SECTION "game", ROM0[$0800]
; Ground everywhere, clouds, the window below.
Paint:
 ld a, TILE_GRASS
 ld hl, MAP + 32 * GROUND_ROW
 call .row
 ld a, TILE_EARTH
 call .row
 call .row
 ld hl, MAP + 32 * 3 + 4
 call .cloud
 ld hl, MAP + 32 * 5 + 14
 call .cloud
 ld hl, MAP + 32 * 2 + 25
 call .cloud
 ld a, 132
 ldh [WY], a
 ld a, 7
 ldh [WX], a
 ld a, $FF
 ld [wColumn], a
 ld a, 4
 ld [wLeft], a
 ret
.row:
 ld c, 32
.next:
 ld [hl+], a
 dec c
 jr nz, .next
 ret
.cloud:
 ld a, TILE_CLOUD
 ld [hl+], a
 inc a
 ld [hl], a
 ret

; The world goes on where it is; the runner comes down by balloon.
Begin:
 ld a, HEARTS
 ld [LIVES], a
Rescue:
 xor a
 ld [SINK], a
 ld [SPEED], a
 inc a
 ld [CARRIED], a
 ld a, BALLOON_HEIGHT
 ld [HEIGHT], a
 ret

Play:
 ld a, [SINK]
 or a
 jr nz, Fall
 ld a, [CARRIED]
 or a
 jr nz, Carry
 ld a, [PAD]
 bit 4, a
 call nz, Advance
 ld a, [HEIGHT]
 or a
 jr nz, .air
 ld a, [PRESSED]
 bit 0, a
 jr nz, .jump
 ld a, [wOver]
 or a
 jp z, Look
 ld a, 2
 ld [SINK], a
 jp Look
.jump:
 ld a, JUMP_SPEED
 ld [SPEED], a
.air:
 ld hl, SPEED
 ld b, [hl]
 dec [hl]
 dec l                  ; HEIGHT
 ld a, [hl]
 add b
 ld [hl], a
 jr z, .land
 bit 7, a
 jp z, Look
.land:
 xor a
 ld [hl+], a
 ld [hl], a
 jp Look

Fall:
 ld hl, SINK
 inc [hl]
 inc [hl]
 ld a, [hl]
 cp DEPTH
 ret c
 ld hl, LIVES
 dec [hl]
 jr nz, Rescue
 ld a, 2
 ld [PHASE], a
 ret

; On until there is ground below and ahead.
Carry:
 call Advance
 call Below
 ld a, [hl]
 inc l
 res 5, l
 or [hl]
 jp nz, Look
 ld [CARRIED], a
 jp Look

; Two pixels to the right; a point for the far edge of a gap.
Advance:
 ld hl, SCROLL
 inc [hl]
 inc [hl]
 ld a, [hl]
 and 7
 call z, Lay
 call Below
 ld b, [hl]
 ld hl, wOver
 ld a, [hl]
 ld [hl], b
 or a
 ret z
 ld a, [CARRIED]
 or b
 ret nz
 jp AddPoint

; hl = the column below the runner, c = his place, modulo 256.
Below:
 ld a, [SCROLL]
 add RUNNER
 ld c, a
 srl a
 srl a
 srl a
 ld l, a
 ld h, HIGH(WORLD)
 ret

; The column that comes into view next: six to nine of ground, two to four of gap.
Lay:
 ld hl, wLeft
 dec [hl]
 jr nz, .put
 ld a, [RNG]
 ld b, a
 ld a, [wKind]
 xor 1
 ld [wKind], a
 jr z, .ground
 ld a, b
 and 3
 jr nz, .long
 inc a
.long:
 inc a
 ld [hl], a             ; 2, 2, 3 or 4
 jr .put
.ground:
 ld a, b
 and 3
 add 6
 ld [hl], a
.put:
 ld a, [SCROLL]
 srl a
 srl a
 srl a
 add 21
 and 31
 ld [wColumn], a
 ld l, a
 ld h, HIGH(WORLD)
 ld a, [wKind]
 ld [hl], a
 ret

; EDGE and WIDTH of the next gap within twelve columns.
Look:
 call Below
 ld b, 12
.ground:
 ld a, [hl]
 or a
 jr nz, .gap
 inc l
 res 5, l
 dec b
 jr nz, .ground
.gap:
 ld a, 12
 sub b
 jr z, .edge
 add a
 add a
 add a
 ld b, a
 ld a, c
 and 7
 cpl
 inc a
 add b
.edge:
 ld [EDGE], a
 ld c, 0
.wide:
 ld a, [hl]
 or a
 jr z, .end
 inc c
 inc l
 res 5, l
 bit 2, c
 jr z, .wide
.end:
 ld a, c
 ld [WIDTH], a
 ret

Draw:
 ld a, [SCROLL]
 ldh [SCX], a
 ld hl, wColumn
 ld a, [hl]
 ld [hl], $FF
 cp $FF
 jr z, .objects
 ld l, a
 ld h, HIGH(WORLD)
 ld b, [hl]
 ld h, HIGH(MAP + 32 * GROUND_ROW)
 add LOW(MAP + 32 * GROUND_ROW)
 ld l, a
 ld de, 32
 xor a
 bit 0, b
 jr nz, .sky
 ld a, TILE_GRASS
.sky:
 ld [hl], a
 add hl, de
 or a
 jr z, .deep
 inc a                  ; TILE_EARTH
.deep:
 ld [hl], a
 add hl, de
 ld [hl], a
.objects:
 ld a, [PHASE]
 or a
 ret z
 ld a, [HEIGHT]
 srl a
 srl a
 ld b, a
 ld a, [SINK]
 add STANDING
 sub b
 ld b, a
 ld hl, OAM
 ld [hl+], a
 ld a, RUNNER + 4
 ld [hl+], a
 ld a, [HEIGHT]
 or a
 ld a, TILE_JUMP
 jr nz, .pose
 ld a, [SCROLL]
 and 8
 srl a
 srl a
 add TILE_RUN
.pose:
 ld [hl+], a
 inc l
 ld a, [CARRIED]
 or a
 jr z, .alone           ; a = 0 hides the balloon
 ld a, b
 sub 16
.alone:
 ld [hl+], a
 ld a, RUNNER + 4
 ld [hl+], a
 ld [hl], TILE_BALLOON
 ret

INCLUDE "art_hop.inc"
