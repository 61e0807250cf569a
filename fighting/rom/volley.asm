; Volley: two paddles and a ball, for two pads. Game Boy (DMG), 32 KiB, no mapper, no sound.
; Up and Down move a paddle; who misses the ball gives the other a point, five points win. The right
; paddle is the computer's, or obeys a byte that the host writes. Left and right are mirror images,
; to the pixel: 154 - BALL_X is where the other side sees the ball.
; Build with `python -m fighting.rom build`.

INCLUDE "shell.inc"

; --- contract ---
DEF P2_PAD EQU $C010         ; the right paddle's buttons in MODE 1, written by the host
DEF MODE EQU $C011           ; of the right paddle: 0 the computer, 1 P2_PAD
DEF PADDLE1 EQU $C012        ; upper end of the left paddle, pixels below the upper wall, 0 to 96
DEF PADDLE2 EQU $C013        ; of the right one
DEF BALL_X EQU $C014         ; its left side, 0 to 154
DEF BALL_Y EQU $C015         ; its upper side, pixels below the upper wall, 0 to 114
DEF SPEED_X EQU $C016        ; to the right, sixteenths of a pixel a frame, signed
DEF SPEED_Y EQU $C017        ; down, likewise
DEF POINTS1 EQU $C018
DEF POINTS2 EQU $C019
DEF RALLY EQU $C01A          ; returns since the serve, at most 255
DEF WAIT EQU $C01B           ; frames until the ball is served
; --- the program's own ---
DEF wBitX EQU $C01C          ; 256ths of a pixel
DEF wBitY EQU $C01D
DEF wSlip EQU $C01E          ; by how much the computer aims beside its middle, 32 being none

DEF DISPLAY EQU %10010011    ; no window, tiles at $8000, objects 8x8
DEF HUD EQU MAP + 8          ; its digits and hearts stand beyond the right border
DEF MARGIN EQU 2             ; pixels above the head-up line
DEF COURT EQU 32 + MARGIN    ; y of an object below the upper wall
DEF LOWEST EQU 96            ; PADDLE at the lower wall
DEF FLOOR EQU 114            ; BALL_Y at the lower wall
DEF RIM EQU 155              ; BALL_X beyond the right rim; beyond the left one it is 255
DEF FACE1 EQU 14             ; BALL_X at the left paddle
DEF FACE2 EQU 140            ; BALL_X at the right paddle
DEF REACH EQU 14             ; of a paddle's middle, to both sides
DEF PADDLE_SPEED EQU 2
DEF SERVE_SPEED EQU 24
DEF MORE_SPEED EQU 2         ; with each return
DEF MOST_SPEED EQU 64
DEF SERVE_FRAMES EQU 32
DEF POINTS_TO_WIN EQU 5
DEF SIGHT EQU 50             ; BALL_X from which the computer looks
DEF TILE_WALL EQU 2
DEF TILE_NET EQU 4
DEF TILE_COUNT EQU 6         ; a block of a digit
DEF TILE_BALL EQU 7
DEF TILE_PADDLE EQU 8
DEF TILE_NAME EQU 10

SECTION "header", ROM0[$0134]
 db "VOLLEY"
 ds 10, 0               ; rest of the title, no colour
 db 0, 0, 0, 0, 0, 0    ; licensee, no SGB, ROM only, 32 KiB, no RAM
 db 1, $33, 0           ; outside Japan, licensee field above, version 0
 db 0, 0, 0             ; checksums, written by the assembler

SECTION "game", ROM0[$0800]
; The name, walls, the net; paddles and ball in the middle.
Paint:
 ld a, 256 - MARGIN
 ldh [SCY], a
 ld hl, MAP + 1
 ld a, TILE_NAME
.name:
 ld [hl+], a
 inc a
 cp TILE_NAME + 6
 jr c, .name
 ld hl, MAP + 32
 ld a, TILE_WALL
 call .wall
 ld hl, MAP + 32 * 17
 ld a, TILE_WALL + 1
 call .wall
 ld hl, MAP + 32 * 2 + 9
 ld de, 31
 ld b, 15
.net:
 ld a, TILE_NET
 ld [hl+], a
 inc a
 ld [hl], a
 add hl, de
 dec b
 jr nz, .net
 jr Middle
.wall:
 ld c, 20
.next:
 ld [hl+], a
 dec c
 jr nz, .next
 ret

; A new game; chance says who gets the first ball.
Begin:
 xor a
 ld [POINTS1], a
 ld [POINTS2], a
 ld a, [RNG + 1]
 and $80
 ld [SPEED_X], a
Middle:
 ld a, LOWEST / 2
 ld [PADDLE1], a
 ld [PADDLE2], a
; The ball in the middle, on its way to where it went before; height and slope by chance.
Serve:
 ld hl, BALL_X
 ld a, [SPEED_X]
 ld bc, SERVE_SPEED << 8 | $88
 add a
 jr nc, .right
 ld bc, (256 - SERVE_SPEED) << 8 | $78
.right:
 ld [hl], 77
 inc l
 ld a, [RNG]
 and 63
 add FLOOR / 2 - 32
 ld [hl+], a            ; BALL_Y
 ld [hl], b
 inc l
 ld a, [RNG + 1]
 and 15
 add a
 sub 15
 ld [hl], a             ; SPEED_Y, never 0
 ld hl, RALLY
 ld [hl], 0
 inc l
 ld [hl], SERVE_FRAMES
 inc l
 ld [hl], c             ; wBitX: off any whole pixel, so that the mirror image is exact
 inc l
 ld [hl], 0
 jp Aim

Play:
 ld a, [PAD]
 ld b, a
 ld hl, PADDLE1
 call Move
 ld a, [P2_PAD]
 ld b, a
 ld a, [MODE]
 dec a
 call nz, Think
 ld hl, PADDLE2
 call Move
 ld hl, WAIT
 ld a, [hl]
 or a
 jr z, Fly
 dec [hl]
 ret

; The paddle at hl by the buttons in b.
Move:
 ld a, [hl]
 bit 6, b
 jr z, .down
 sub PADDLE_SPEED
 jr nc, .down
 xor a
.down:
 bit 7, b
 jr z, .moved
 add PADDLE_SPEED
 cp LOWEST + 1
 jr c, .moved
 ld a, LOWEST
.moved:
 ld [hl], a
 ret

; b = the buttons of the computer: it looks only at a ball that comes and is near, in three frames of four.
Think:
 ld b, 0
 ld a, [SPEED_X]
 bit 7, a
 ret nz
 ld a, [BALL_X]
 cp SIGHT
 ret c
 ld a, [CLOCK]
 and 3
 ret z
 ld a, [PADDLE2]
 add 32 + 9             ; a ball's upper side before the paddle's middle
 ld c, a
 ld hl, wSlip
 ld a, [BALL_Y]
 add [hl]
 sub c
 jr c, .up
 cp 3
 ret c
 set 7, b
 ret
.up:
 cp 256 - 2
 ret nc
 set 6, b
 ret

; Where the computer will meet the next ball: beside it in 3 of 32 cases, and one in eight goes lower.
Aim:
 ld a, [RNG]
 ld b, a
 and 31
 add 16
 ld c, a
 ld a, b
 and $E0
 ld a, c
 jr nz, .aimed
 add 16
.aimed:
 ld [wSlip], a
 ret

; One frame of the ball.
Fly:
 ld a, [SPEED_Y]
 call Step
 ld hl, wBitY
 ld a, [hl]
 add e
 ld [hl], a
 ld hl, BALL_Y
 ld a, [hl]
 adc d
 ld [hl], a
 cp FLOOR + 1
 call nc, Bounce
 ld a, [SPEED_X]
 call Step
 ld hl, wBitX
 ld a, [hl]
 add e
 ld [hl], a
 ld hl, BALL_X
 ld b, [hl]             ; where it was
 ld a, b
 adc d
 ld [hl], a
 cp RIM
 jp nc, Point
 bit 7, d
 jr z, .right
 cp FACE1
 ret nc
 ld a, b
 cp FACE1
 ret c
 ld de, FACE1 << 8 | $08
 ld a, [PADDLE1]
 jr Return
.right:
 cp FACE2 + 1
 ret c
 ld a, b
 cp FACE2 + 1
 ret nc
 ld de, FACE2 << 8 | $F8
 ld a, [PADDLE2]

; The ball comes back from the paddle at height a, to place d and e, where the paddle is.
Return:
 add 9 - REACH          ; modulo 256
 ld b, a
 ld a, [BALL_Y]
 sub b
 cp 2 * REACH + 1
 ret nc
 sub REACH
 ld b, a
 add a
 add b
 ld b, a
 ld a, [RNG + 1]
 and 15
 add a
 sub 15
 add b
 ld [SPEED_Y], a        ; the steeper, the farther from the middle, and a little by chance
 ld a, d
 ld [BALL_X], a
 ld a, e
 ld [wBitX], a
 ld hl, RALLY
 inc [hl]
 jr nz, .counted
 dec [hl]
.counted:
 ld hl, SPEED_X
 ld a, [hl]
 bit 7, a
 jr nz, .left
 call .faster
 cpl
 inc a
 ld [hl], a
 ret
.left:
 cpl
 inc a
 call .faster
 ld [hl], a
 jp Aim
.faster:
 add MORE_SPEED
 cp MOST_SPEED
 ret c
 ld a, MOST_SPEED
 ret

; d, e = pixels and 256ths of a speed.
Step:
 swap a
 ld d, a
 and $F0
 ld e, a
 ld a, d
 and $0F
 bit 3, a
 jr z, .down
 or $F0
.down:
 ld d, a
 ret

; Off a wall: beyond the upper one BALL_Y is above 200.
Bounce:
 ld [hl], 0
 cp 200
 jr nc, .off
 ld [hl], FLOOR
.off:
 xor a
 ld [wBitY], a
 ld hl, SPEED_Y
 sub [hl]
 ld [hl], a
 ret

; For who did not miss; the next ball goes to who did.
Point:
 ld hl, POINTS2
 bit 7, d
 jr nz, .count
 call AddPoint
 ld hl, POINTS1
.count:
 inc [hl]
 ld a, [hl]
 cp POINTS_TO_WIN
 jp nz, Serve
 ld a, 2
 ld [PHASE], a
 jp Serve

INCLUDE "volley_draw.inc"
INCLUDE "art_volley.inc"

SECTION "digits", ROM0[$0D00]
; Blocks of 0 to 5, the left one in bit 0.
Digits:
 db %111, %101, %101, %101, %111
 db %010, %011, %010, %010, %111
 db %111, %100, %111, %001, %111
 db %111, %100, %111, %100, %111
 db %101, %101, %111, %100, %100
 db %111, %001, %111, %100, %111
