"""Search for inputs that win a level, and the proof that it can be won."""
