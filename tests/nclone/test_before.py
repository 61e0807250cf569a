"""The guide's "before" side: the same observations, more memory, every optimisation a switch."""

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.run.compose import compose_run
from nclone.before.guide_baseline import ENTITY_VALUES, GuideEnv, guide_parts
from nclone.guide import Guide, switches
from nclone.spec import Observation
from nclone.vec_env import NppVecEnv

NAMES = [f.name for f in fields(Guide)]
ALL_ON = Guide(**dict.fromkeys(NAMES, True))
ALL_OFF = Guide(**dict.fromkeys(NAMES, False))
DRAWS = [o for o in Observation if o.value in ("pixels", "full")]
LEVELS = "env.levels=[jump,mines,locked_door,drone]"


def composed(obs, *words):
    return compose_run(["env=nclone", f"env.obs={obs.value}", "memory=baseline", LEVELS, *words])


def made(run, count=2):
    return run.env.make_vec(count, run.encoding(), run.memory, run.vec, "train")


def trace(env, steps=20, seed=5):
    rng = np.random.default_rng(seed)
    rows = [{n: v.copy() for n, v in env.reset(seed).items()}]
    for _ in range(steps):
        step = env.step(rng.integers(0, 6, env.num_envs))
        rows.append({n: v.copy() for n, v in step.rows.items()})
    return rows


@pytest.mark.parametrize("obs", list(Observation))
def test_what_is_seen_is_what_the_native_batch_shows(obs):
    run = composed(obs)
    before = made(run)
    assert all(isinstance(core, GuideEnv) for core in before.singles.envs)
    native = NppVecEnv(run.env, 2, run.encoding(), run.memory)
    for ours, theirs in zip(trace(before, 8), trace(native, 8), strict=True):
        assert set(ours) == set(theirs)
        for name in ours:
            if not name.endswith("_id"):
                np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@cache
def without_any(obs):
    """Four steps of the side on which nothing is switched on: each of them draws for long."""
    return trace(made(composed(obs)), 4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("obs", DRAWS[:1] or [Observation.graph])
def test_one_optimisation_alone_changes_nothing_that_is_seen(name, obs):
    alone = made(composed(obs, f"env.guide.{name}=true"))
    for ours, theirs in zip(trace(alone, 4), without_any(obs), strict=True):
        for key in ours:
            np.testing.assert_array_equal(ours[key], theirs[key], err_msg=key)


@pytest.mark.parametrize("obs", list(Observation))
@pytest.mark.parametrize(
    "words", [(), ("env.guide.frame_cache=true", "env.guide.buffer_reuse=true")]
)
def test_the_plan_knows_the_bytes_of_the_before_side(obs, words):
    run = composed(obs, *words)
    env = made(run, 3)
    trace(env, 3)
    chosen = switches(run.env.guide, run.memory)
    planned = {
        p.name.removeprefix("env guide: "): p.ram_bytes for p in guide_parts(run.env, chosen, 3)
    }
    held: dict[str, int] = {}
    for single in env.singles.envs:
        for name, size in single.parts().items():
            name = "frame buffers" if name in ("player_frame", "global_view") else name
            held[name] = held.get(name, 0) + size
    assert {n: s for n, s in held.items() if s} == planned
    lines = run.env.parts(3, run.encoding(), run.memory, run.vec)
    assert sum(p.ram_bytes for p in lines if p.name.startswith("env guide")) == sum(
        planned.values()
    )


def test_the_profile_decides_and_a_name_overrules_it():
    baseline = compose_run(["env=nclone", "memory=baseline"]).memory
    assert switches(Guide(), baseline) == ALL_OFF
    assert switches(Guide(), MemoryProfile()) == ALL_ON
    assert switches(Guide(views=True), baseline) == replace(ALL_OFF, views=True)


def test_new_arrays_alone_keep_the_native_batch():
    run = compose_run(["env=nclone", "memory.buffers=new"])
    assert isinstance(made(run), NppVecEnv)
    off = compose_run(["env=nclone", "env.guide.views=false"])
    assert not isinstance(made(off), NppVecEnv)


def test_shared_level_data_is_one_copy():
    run = composed(Observation.state, "env.guide.shared_levels=true")
    one, two = made(run).singles.envs
    assert one.game.level_table is two.game.level_table is one.game.world.table
    assert one.game.distances is two.game.distances
    apart = made(composed(Observation.state)).singles.envs
    assert apart[0].game.level_table is not apart[1].game.level_table


def test_a_cached_reachability_is_the_computed_one():
    run = composed(Observation.state)
    plain = GuideEnv(replace(run.env, guide=ALL_OFF), seed=1)
    cached = GuideEnv(replace(run.env, guide=replace(ALL_OFF, reachability_cache=True)), seed=1)
    rng = np.random.default_rng(0)
    for env in (plain, cached):
        env.reset(seed=1)
    for action in rng.integers(0, 6, 80):
        done = [env.step(action)[2] or env.step(action)[3] for env in (plain, cached)]
        assert plain.reachable == cached.reachable > 0
        if any(done):
            for env in (plain, cached):
                env.reset()


def test_entity_states_list_every_mine_or_the_first_values_only():
    run = composed(Observation.state)
    full = GuideEnv(replace(run.env, guide=ALL_OFF))
    early = GuideEnv(replace(run.env, guide=replace(ALL_OFF, sparse_entities=True)))
    for env in (full, early):
        env.reset(seed=0, options={"level": 1})
    mines = int(full.held["entity states"][0])
    assert mines > 0
    assert len(full.held["entity states"]) == ENTITY_VALUES == 769
    assert full.entities[0] == early.entities[0] == mines
    assert "entity states" not in early.held


@pytest.mark.skipif(not DRAWS, reason="no observation of pixels")
def test_conversions_per_observation_are_counted():
    counts = {}
    for words in ((), ("frame_cache",), ("single_conversion",)):
        run = composed(DRAWS[0], *(f"env.guide.{w}=true" for w in words))
        env = made(run, 1)
        env.reset(0)
        screen = env.singles.envs[0].screen
        before = screen.conversions
        for _ in range(10):
            env.step(np.zeros(1, np.int64))
        counts[words] = screen.conversions - before
    assert counts == {(): 20, ("frame_cache",): 10, ("single_conversion",): 10}
