"""Which blocks must go before which: cones on coordinates, their graph, and an audit without it."""
