"""Reports: metrics, W&B, comparisons, plots, videos. The only room that talks to W&B."""

from frugal_rl.report.log import Log, open_log

__all__ = ["Log", "open_log"]
