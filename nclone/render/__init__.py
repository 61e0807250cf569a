"""Pictures: the grey frames that are observed, and the drawing that people look at."""
