"""What rules and savings are measured against; loaded by name, imported by nothing."""
