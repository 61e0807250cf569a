"""Networks over columns and voxels, and acting by crops."""
