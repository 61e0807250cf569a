"""Game Boy games on PyBoy: an own fighting game, self-play, any cartridge by a profile.

Importing this registers `fighting/Duel-v0`, `fighting/DuelSelfPlay-v0` (one seat of it, against a
pool's scripts) and `fighting/GameBoy-v0` (a profile and the user's own cartridge image).
"""

import gymnasium

gymnasium.register("fighting/Duel-v0", "fighting.quick_start:make_duel")
gymnasium.register("fighting/DuelSelfPlay-v0", "fighting.quick_start:make_self_play")
gymnasium.register("fighting/GameBoy-v0", "fighting.quick_start:make_game_boy")
