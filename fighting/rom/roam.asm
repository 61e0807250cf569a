; Roam: walk over a world of 256 by 128 tiles. Game Boy (DMG), 32 KiB, no mapper, no sound.
; A step is a tile, four frames long. The world is 16 by 8 rooms in 16 regions of 4 by 2; doors lead
; from region to region, each costs the key that lies in some other room of a region already open.
; Grass that was trodden stays trodden; each key and each new region is a point; there is no end.
; Build with `python -m fighting.rom build`.

INCLUDE "shell.inc"

; --- contract ---
DEF KEYS EQU LIVES           ; keys held: hearts of the head-up line are keys here
DEF PLACE_X EQU $C010        ; of the walker, tiles: 0 to 255
DEF PLACE_Y EQU $C011        ; tiles from the top: 0 to 127
DEF FACING EQU $C012         ; 0 right, 1 left, 2 up, 3 down
DEF REGION EQU $C013         ; in which the walker is, 0 to 15
DEF REGIONS EQU $C014        ; how many were entered
DEF PLACES EQU $C015         ; how many tiles were trodden: two bytes, the lowest first
DEF DOORS EQU $C017          ; how many were opened
DEF WALK EQU $C018           ; frames of the step that are left, 0 to 3
DEF SIDES EQU $C020          ; of this room, right, left, up, down: 0 wall, 1 way, 2 locked door
DEF BEYOND EQU $C024         ; tiles trodden in the rooms behind them
DEF HERE EQU $C028           ; tiles trodden in this room
DEF TIMES EQU $C02C          ; how often the rooms behind the sides were entered, 255 where no way leads
DEF AROUND EQU $C030         ; seven rows of seven tiles, the walker in the middle
DEF ROOMS EQU $C100          ; 8 rows of 16: west side, north side (two bits each), key, three bits of plan
DEF COUNTS EQU $C180         ; tiles trodden, of each room
DEF ENTERED EQU $C200        ; how often each room was entered, at most 255
DEF TRODDEN EQU $C800        ; 128 rows of 256 bits, the left tile in the highest
; --- the program's own ---
DEF wLineKind EQU $C019      ; what waits to be drawn: 0 nothing, 1 a column, 2 a row
DEF wLineAt EQU $C01A        ; and where, two bytes
DEF wPause EQU $C01C         ; frames until a door is open: it takes as long as a step
DEF wRoom EQU $C01D          ; the room that was last entered
DEF wRegions EQU $C070       ; 16 regions, 1 where the walker has been
DEF wLine EQU $C080          ; its tiles

DEF DISPLAY EQU %11110011    ; window at $9C00, tiles at $8000, objects 8x8
DEF HUD EQU WINDOW_MAP
DEF START_X EQU 136
DEF START_Y EQU 72
DEF WORLD_SEED EQU $2F1D
DEF COLUMNS_LEFT EQU 10      ; of the walker, on the screen
DEF COLUMNS EQU 20
DEF ROWS_ABOVE EQU 8
DEF ROWS EQU 18
DEF NOOK EQU 4               ; where keys lie, from the left and the top of their room
DEF REACH EQU 3              ; of AROUND
; Tiles that are met, by what can be done: below TILE_TRODDEN nobody walks.
DEF TILE_TREE EQU 2
DEF TILE_BRICK EQU 3
DEF TILE_DOOR EQU 4
DEF TILE_TRODDEN EQU 5
DEF TILE_FRESH EQU 6
DEF TILE_KEY EQU 7
DEF TILE_WALKER EQU 8        ; seen from the front; from behind; from the side, two steps

SECTION "header", ROM0[$0134]
 db "ROAM"
 ds 12, 0               ; rest of the title, no colour
 db 0, 0, 0, 0, 0, 0    ; licensee, no SGB, ROM only, 32 KiB, no RAM
 db 1, $33, 0           ; outside Japan, licensee field above, version 0
 db 0, 0, 0             ; checksums, written by the assembler

SECTION "game", ROM0[$0800]
; The world, and the part of it that is seen first.
Paint:
 ld hl, TRODDEN
 ld bc, $1000
 call Clear
 call World
 ld a, START_X
 ld [PLACE_X], a
 ld b, a
 ld a, START_Y
 ld [PLACE_Y], a
 ld c, a
 ld a, 3
 ld [FACING], a
 call Tread
 ld hl, SCORE + 1
 ld [hl], 0             ; where it begins is no discovery
 ld b, START_X - COLUMNS_LEFT
.column:
 push bc
 call Column
 call DrawLine
 pop bc
 inc b
 ld a, b
 cp START_X - COLUMNS_LEFT + COLUMNS
 jr nz, .column
 ld a, 132
 ldh [WY], a
 ld a, 7
 ldh [WX], a
 jp Look

Begin:
 ret

Play:
 ld hl, WALK
 ld a, [hl]
 or a
 jr nz, .wait
 ld hl, wPause
 ld a, [hl]
 or a
 jr z, .stand
.wait:
 dec [hl]
 ret
.stand:
 ld a, [PAD]
 and $F0
 ret z
 swap a
 ld d, $FF
.which:
 inc d
 srl a
 jr nc, .which
 ld a, d
 ld [FACING], a
 call Ahead
 call TileAt
 cp TILE_DOOR
 jr z, Unlock
 ret c
 ld a, b
 ld [PLACE_X], a
 ld a, c
 ld [PLACE_Y], a
 ld a, 3
 ld [WALK], a
 call Tread
 call Reveal
 jp Look

; b, c = the tile in front of the walker.
Ahead:
 ld a, [PLACE_X]
 ld b, a
 ld a, [PLACE_Y]
 ld c, a
 ld a, [FACING]
 or a
 jr z, .right
 dec a
 jr z, .left
 dec a
 jr z, .up
 inc c
 res 7, c
 ret
.right:
 inc b
 ret
.left:
 dec b
 ret
.up:
 dec c
 res 7, c
 ret

; The door at b, c costs a key and is none any more.
Unlock:
 ld hl, KEYS
 ld a, [hl]
 or a
 ret z
 dec [hl]
 ld hl, DOORS
 inc [hl]
 ld a, 3
 ld [wPause], a
 call RoomAt
 ld a, b
 and 15
 jr nz, .north
 ld a, [hl]
 xor 3                  ; 2, a door, becomes 1, a way
 ld [hl], a
 call Column
 jp Look
.north:
 ld a, [hl]
 xor 3 << 2
 ld [hl], a
 call Row
 jp Look

; The walker is at b, c.
Tread:
 call RegionAt
 ld [REGION], a
 call Trodden
 ld a, [hl]
 and d
 ret nz
 ld a, [hl]
 or d
 ld [hl], a
 ld hl, PLACES
 inc [hl]
 jr nz, .counted
 inc l
 inc [hl]
.counted:
 call RoomAt
 set 7, l
 inc [hl]               ; COUNTS
 res 7, l
 call Nook
 jr nz, .region
 bit 4, [hl]
 jr z, .region
 res 4, [hl]
 ld hl, KEYS
 inc [hl]
 call AddPoint
.region:
 ld a, [REGION]
 add LOW(wRegions)
 ld l, a
 ld h, HIGH(wRegions)
 ld a, [hl]
 or a
 ret nz
 inc [hl]
 ld hl, REGIONS
 inc [hl]
 jp AddPoint

; What the walker knows of the tiles around and of the rooms beside his own.
Look:
 ld a, [PLACE_X]
 sub REACH
 ld b, a
 ld a, [PLACE_Y]
 sub REACH
 and 127
 ld c, a
 ld hl, AROUND
.row:
 ld d, 2 * REACH + 1
.tile:
 push hl
 push de
 call TileAt
 pop de
 pop hl
 ld [hl+], a
 inc b
 dec d
 jr nz, .tile
 ld a, b
 sub 2 * REACH + 1
 ld b, a
 inc c
 res 7, c
 ld a, l
 cp LOW(AROUND) + 49
 jr nz, .row

; SIDES, BEYOND, HERE and TIMES. A room's right side is the next one's west side.
 ld a, [PLACE_X]
 ld b, a
 ld a, [PLACE_Y]
 ld c, a
 call RoomAt
 ld b, l
 call Enter
 ld h, HIGH(ROOMS)
 ld de, SIDES
 ld a, b
 inc a
 call .west
 ld a, b
 call .west
 ld a, b
 call .north
 ld a, b
 add 16
 call .north
 ld c, $80              ; COUNTS are the page's other half
 call Beside            ; e = BEYOND
 ld a, b
 call Beside.byte       ; HERE
 ld e, LOW(TIMES)
 ld h, HIGH(ENTERED)
 ld c, 0
 call Beside
 ld hl, SIDES
.closed:
 ld a, [hl]
 dec a
 jr z, .open
 set 3, l
 set 2, l
 ld [hl], $FF
 res 3, l
 res 2, l
.open:
 inc l
 bit 2, l
 jr z, .closed
 ret
.west:
 res 7, a
 ld l, a
 ld a, [hl]
 jr .kind
.north:
 res 7, a
 ld l, a
 ld a, [hl]
 rrca
 rrca
.kind:
 and 3
 ld [de], a
 inc e
 ret

; Room b is entered anew, unless the walker was there already.
Enter:
 ld hl, wRoom
 ld a, [hl]
 cp b
 ret z
 ld [hl], b
 ld h, HIGH(ENTERED)
 ld l, b
 inc [hl]
 ret nz
 dec [hl]               ; 255 stays
 ret

; From de on the bytes at h, c of the rooms to the right and left of room b, above and below it.
Beside:
 ld a, b
 inc a
 call .byte
 ld a, b
 dec a
 call .byte
 ld a, b
 sub 16
 call .byte
 ld a, b
 add 16
.byte:
 res 7, a
 or c
 ld l, a
 ld a, [hl]
 ld [de], a
 inc e
 ret

INCLUDE "roam_world.inc"
INCLUDE "roam_draw.inc"
INCLUDE "art_roam.inc"
