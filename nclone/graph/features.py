"""Node and edge features of a navigation graph, as kernels over its compact arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from nclone.geometry import DIAGONAL_PX, MAP_HEIGHT_PX, MAP_WIDTH_PX, PLAYER_RADIUS_PX
from nclone.graph.goals import MINE_RADIUS_PX
from nclone.graph.lattice import DIRECTIONS, HEIGHT, STEP_PX, STEP_X, STEP_Y, WIDTH, node_position

NODE_FEATURES, EDGE_FEATURES = 21, 14
MAX_NODES, MAX_EDGES = 4500, 18500
EMPTY, WALL, MINE, LOCKED_DOOR, SPAWN, EXIT_SWITCH_NODE, EXIT_DOOR_NODE = range(7)
ADJACENT, REACHABLE, FUNCTIONAL, BLOCKED = range(4)
SPAWN_REACH_PX = 24.0
SAFE_MINE_RADIUS_PX = 3.5
SAMPLED_SOURCES = 100


@njit(cache=True)
def compact_graph(steps, reachable, nodes, index, edges):
    """Number the reachable nodes in lattice order and list their steps; returns how many edges.

    steps     [4400] uint8, reachable [4400] bool
    nodes     [>= n] int32: lattice node of each graph node, overwritten
    index     [4400] int16: graph node of each lattice node, -1 elsewhere, overwritten
    edges     [2, >= e] int32: source and target, overwritten
    """
    count = 0
    for node in range(index.size):
        index[node] = -1
        if reachable[node]:
            nodes[count] = node
            index[node] = count
            count += 1
    edge = 0
    for k in range(count):
        for direction in range(DIRECTIONS):
            if steps[nodes[k]] >> direction & 1:
                to = index[nodes[k] + STEP_X[direction] + WIDTH * STEP_Y[direction]]
                if to >= 0:
                    edges[0, edge], edges[1, edge] = k, to
                    edge += 1
    return edge


@njit(cache=True)
def mark_places(index, places, types, mine_of, closed, active, nearest):
    """Mark the nodes near entities; later places overwrite earlier ones.

    index    [4400] int16
    places   [K, 7] float64: x, y, radius px, type, mine number or -1, door closed, active
    types [n] uint8, mine_of [n] int32, closed [n] bool, active [n] bool: updated in place
    nearest  [K] int16, overwritten: the node nearest to each place, -1 without one in its radius
    """
    for k in range(places.shape[0]):
        x, y, radius = places[k, 0], places[k, 1], places[k, 2]
        nearest[k] = -1
        best = np.inf
        first_row = max(0, int(np.ceil((y - radius - 6.0) / STEP_PX)))
        last_row = min(HEIGHT - 1, int(np.floor((y + radius - 6.0) / STEP_PX)))
        first_column = max(0, int(np.ceil((x - radius - 6.0) / STEP_PX)))
        last_column = min(WIDTH - 1, int(np.floor((x + radius - 6.0) / STEP_PX)))
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                node = index[row * WIDTH + column]
                node_x, node_y = node_position(row * WIDTH + column)
                squared = (node_x - x) ** 2 + (node_y - y) ** 2
                if node < 0 or squared > radius * radius:
                    continue
                types[node] = int(places[k, 3])
                if places[k, 4] >= 0.0:
                    mine_of[node] = int(places[k, 4])
                if types[node] != SPAWN:
                    closed[node], active[node] = places[k, 5] != 0.0, places[k, 6] != 0.0
                if squared < best:
                    nearest[k], best = node, squared


@njit(cache=True)
def betweenness(edges, starts, order, out):
    """Brandes' centrality from the nodes order[:100], scaled so that the largest is 1.

    edges   [2, e] int32 grouped by source; starts [n + 1] int32: edges of node k are
            starts[k] to starts[k + 1]
    order   [n] int64, a permutation of the nodes: the sampled sources come first
    out     [n] float32, overwritten
    """
    n = starts.size - 1
    paths, credit = np.empty(n), np.empty(n)
    depth, queue = np.empty(n, np.int32), np.empty(n, np.int32)
    total = np.zeros(n)
    for s in range(min(SAMPLED_SOURCES, n)):
        source = order[s]
        depth[:] = -1
        paths[:] = 0.0
        credit[:] = 0.0
        depth[source], paths[source], queue[0] = 0, 1.0, source
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for e in range(starts[node], starts[node + 1]):
                to = edges[1, e]
                if depth[to] < 0:
                    depth[to] = depth[node] + 1
                    queue[tail] = to
                    tail += 1
                if depth[to] == depth[node] + 1:
                    paths[to] += paths[node]
        for k in range(tail - 1, 0, -1):
            node = queue[k]
            share = (1.0 + credit[node]) / paths[node]
            for e in range(starts[node], starts[node + 1]):
                before = edges[1, e]
                if depth[before] == depth[node] - 1:
                    credit[before] += paths[before] * share
            total[node] += credit[node]
    largest = total.max() if n else 0.0
    for k in range(n):
        out[k] = total[k] / largest if largest > 0.0 else 0.0


@njit(cache=True)
def node_features(
    nodes, types, mine_of, mine_deadly, closed, active, starts, objective, hops, centrality, out
):
    """The 21 features of every node (specification 4.4).

    nodes, types [n]; mine_of [n] int32 mine at the node or -1; mine_deadly [M] bool
    closed [n] bool door closed there; active [n] bool entity active there
    starts [n + 1] int32; objective [2] float64 px; hops [4400] uint16 to the objective
    centrality [n] float32; out [n, 21] float32, overwritten
    """
    most_hops = 1
    for k in range(nodes.size):
        if hops[nodes[k]] != 65535:
            most_hops = max(most_hops, hops[nodes[k]])
    for k in range(nodes.size):
        x, y = node_position(nodes[k])
        row = out[k]
        row[:] = 0.0
        row[0], row[1] = x / MAP_WIDTH_PX, y / MAP_HEIGHT_PX
        row[2 + types[k]] = 1.0
        if mine_of[k] >= 0:
            deadly = mine_deadly[mine_of[k]]
            row[9] = 1.0
            row[10] = -1.0 if deadly else 1.0
            row[11] = (MINE_RADIUS_PX if deadly else SAFE_MINE_RADIUS_PX) / 20.0
        row[12], row[13], row[14] = active[k], closed[k], 1.0
        row[15] = row[16] = (starts[k + 1] - starts[k]) / DIRECTIONS
        row[17] = (x - objective[0]) / MAP_WIDTH_PX
        row[18] = (y - objective[1]) / MAP_HEIGHT_PX
        row[19] = hops[nodes[k]] / most_hops if hops[nodes[k]] != 65535 else 1.0
        row[20] = centrality[k]


@njit(cache=True)
def _to_segment(x1, y1, x2, y2, x, y):
    dx, dy = x2 - x1, y2 - y1
    u = ((x - x1) * dx + (y - y1) * dy) / max(dx * dx + dy * dy, 1e-12)
    u = min(1.0, max(0.0, u))
    return np.sqrt((x1 + u * dx - x) ** 2 + (y1 + u * dy - y) ** 2)


@njit(cache=True)
def _movement(dx, dy):
    if dy == 0.0:
        return 0.0
    if dx != 0.0:
        return 0.33
    return 0.66 if dy < 0.0 else 1.0


@njit(cache=True)
def _mine_features(row, x1, y1, x2, y2, mines_xy, mine_deadly):
    """Features 10 to 13; the mines are sorted by x, so the search goes outwards from the edge."""
    middle_x, middle_y = (x1 + x2) / 2.0, (y1 + y2) / 2.0
    nearest, threat, close = DIAGONAL_PX, 0.0, 0.0
    half_length = np.sqrt((x2 - x1) ** 2 + (y2 - y1) ** 2) / 2.0
    reach = half_length + MINE_RADIUS_PX + PLAYER_RADIUS_PX  # beyond it only the nearest counts
    start = np.searchsorted(mines_xy[:, 0], middle_x)
    for side in range(2):
        m = start - 1 if side == 0 else start
        while 0 <= m < mines_xy.shape[0]:
            dx, dy = mines_xy[m, 0] - middle_x, mines_xy[m, 1] - middle_y
            if abs(dx) > max(nearest, reach):
                break
            distance = np.sqrt(dx * dx + dy * dy)
            nearest = min(nearest, distance)
            radius = MINE_RADIUS_PX if mine_deadly[m] else SAFE_MINE_RADIUS_PX
            if distance < 2.0 * radius:
                close += 1.0
                if mine_deadly[m]:
                    threat += radius / max(distance, 1.0)
            if mine_deadly[m] and distance < reach:
                touch = _to_segment(x1, y1, x2, y2, mines_xy[m, 0], mines_xy[m, 1])
                if touch < radius + PLAYER_RADIUS_PX:
                    row[11] = 1.0
            m += -1 if side == 0 else 1
    row[10] = nearest / DIAGONAL_PX
    row[12], row[13] = min(threat / 5.0, 1.0), min(close / 5.0, 1.0)


@njit(cache=True)
def edge_features(nodes, edges, types, mines_xy, mine_deadly, out):
    """The 14 features of every edge (specification 4.5); mine distances are from its middle.

    nodes [n] int32, edges [2, e] int32, types [e] uint8, mines_xy [M, 2] sorted by x,
    mine_deadly [M] bool; out [e, 14] float32, overwritten
    """
    for e in range(types.size):
        x1, y1 = node_position(nodes[edges[0, e]])
        x2, y2 = node_position(nodes[edges[1, e]])
        row = out[e]
        row[:] = 0.0
        length = np.sqrt((x2 - x1) ** 2 + (y2 - y1) ** 2)
        row[types[e]] = 1.0
        row[4], row[5] = length / STEP_PX if types[e] == ADJACENT else 1.0, 1.0
        row[6], row[7] = (x2 - x1) / MAP_WIDTH_PX, (y2 - y1) / MAP_HEIGHT_PX
        row[8] = length / DIAGONAL_PX
        row[9] = _movement(x2 - x1, y2 - y1)
        _mine_features(row, x1, y1, x2, y2, mines_xy, mine_deadly)


@njit(cache=True)
def graph_node_at(index, nodes, x, y):
    """The graph node nearest to (x, y): looks around first, else at every node; -1 if empty.

    index [4400] int16, nodes [n] int32
    """
    column, line = int(np.floor((x - 6.0) / STEP_PX)), int(np.floor((y - 6.0) / STEP_PX))
    best, best_squared = -1, np.inf
    if 0 <= column < WIDTH - 1 and 0 <= line < index.size // WIDTH - 1:
        for node in (
            line * WIDTH + column,
            line * WIDTH + column + 1,
            (line + 1) * WIDTH + column,
            (line + 1) * WIDTH + column + 1,
        ):
            if index[node] >= 0:
                node_x, node_y = node_position(node)
                squared = (node_x - x) ** 2 + (node_y - y) ** 2
                if squared < best_squared:
                    best, best_squared = index[node], squared
    if best >= 0 and best_squared <= PLAYER_RADIUS_PX * PLAYER_RADIUS_PX:
        return best
    for k in range(nodes.size):
        node_x, node_y = node_position(nodes[k])
        squared = (node_x - x) ** 2 + (node_y - y) ** 2
        if squared < best_squared:
            best, best_squared = k, squared
    return best
