"""What people call: solving, pictures, risk."""
