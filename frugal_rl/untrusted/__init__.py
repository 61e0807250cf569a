"""Files from strangers, read under limits: nothing is executed, and nothing is believed unchecked.

Whatever a file says (a length, a depth, a shape, a type) is compared with a limit, or with the
file's own size, before memory is taken for it.
"""
