"""One-shot priority policies: a score per block, a decoder, and learners for the scores."""
