"""What the guide's savings are measured against; loaded by name, never imported."""
