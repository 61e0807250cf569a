"""`env=gymnasium` as a picture: a policy at play in a window or as a film, by `render()`."""
