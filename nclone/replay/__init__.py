"""Recorded inputs: attract files, downloaded replays and compact human replays."""

from nclone.replay.attract import read_attract, write_attract
from nclone.replay.compact import read_compact, write_compact
from nclone.replay.downloaded import Download, read_downloaded, write_downloaded
from nclone.replay.inputs import Replay, actions_of_inputs, inputs_of_actions

__all__ = [
    "Download",
    "Replay",
    "actions_of_inputs",
    "inputs_of_actions",
    "read_attract",
    "read_compact",
    "read_downloaded",
    "write_attract",
    "write_compact",
    "write_downloaded",
]
