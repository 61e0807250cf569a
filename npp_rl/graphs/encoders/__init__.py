"""Graph encoders behind one ragged interface; padding never reaches them."""
