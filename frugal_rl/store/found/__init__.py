"""The store that finds savings by itself: hypotheses about what arrives, compared row by row."""
