"""Reports: metrics, W&B, comparisons, plots, videos. The only room that talks to W&B."""
