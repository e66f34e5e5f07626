import math

import numpy as np
import pytest

from emvc import graphs
from emvc.method.local import LocalGraph

VIEWS = {
    "gaussian": np.random.default_rng(0).standard_normal((30, 3)),
    "ties": np.random.default_rng(0).integers(0, 3, (30, 3)).astype(float),
    "duplicates": np.repeat(np.random.default_rng(0).standard_normal((6, 2)), 5, axis=0),
}


def by_loops(squares, own, all_states, n_neighbors):
    """Rows of the graph as the head of `emvc.method.local` describes it."""
    n_states = len(all_states)
    n_neighbors = min(n_neighbors, n_states - 1)

    def parts(row, itself):
        """How much every state counts as a neighbour: ties of the last one share the places that are left."""
        others = [j for j in range(n_states) if j != itself]
        last = sorted(row[j] for j in others)[n_neighbors - 1]
        nearer = [j for j in others if row[j] < last * (1.0 - 1e-9)]
        tied = [j for j in others if j not in nearer and row[j] <= last * (1.0 + 1e-9)]
        return dict.fromkeys(nearer, 1.0) | dict.fromkeys(tied, (n_neighbors - len(nearer)) / len(tied))

    def mean_distance(row, neighbors):
        return sum(part * math.sqrt(row[j]) for j, part in neighbors.items()) / n_neighbors

    states = [parts(all_states[j], j) for j in range(n_states)]
    scales = [mean_distance(all_states[j], states[j]) for j in range(n_states)]
    floor = 1e-3 * np.median(scales) or 1e-6 * max(scales) or 1.0

    def weight(square, one, other):
        width = max(0.35 * (math.sqrt(square) + one + other) / 3.0, floor)
        return math.exp(-square / (2.0 * width**2))

    def total(row, neighbors, scale):
        return sum(part * weight(row[h], scale, scales[h]) for h, part in neighbors.items())

    sums = [total(all_states[j], states[j], scales[j]) for j in range(n_states)]
    found = np.zeros((len(squares), n_states))
    for i, row in enumerate(squares):
        here = parts(row, own[i])
        scale = mean_distance(row, here)
        mass = total(row, here, scale)
        for j in range(n_states):
            if j == own[i]:
                continue
            bound = max(all_states[j][h] for h in states[j])  # i is among the neighbours of j, or would be
            back = states[j].get(int(own[i]), 0.0) if own[i] >= 0 else 0.0
            if own[i] < 0 and row[j] < bound * (1.0 - 1e-9):
                back = 1.0
            elif own[i] < 0 and row[j] <= bound * (1.0 + 1e-9):
                back = min(part for h, part in states[j].items() if all_states[j][h] >= bound * (1.0 - 1e-9))
            found[i, j] = weight(row[j], scale, scales[j]) * (here.get(j, 0.0) / mass + back / sums[j])
    return found / found.sum(axis=1, keepdims=True)


def rows_of(graph, squares, own, dtype=np.float64):
    out = np.full((len(squares), len(graph.states.bounds)), np.nan, dtype=dtype)
    graph.rows(squares, own, out)
    return out


@pytest.mark.parametrize("n_neighbors", [1, 4, 100])
@pytest.mark.parametrize("name", VIEWS)
def test_rows_equal_literal_loops(name, n_neighbors):
    """States as rows of their own, samples that are none, and a mixture of both."""
    view = VIEWS[name]
    squares = graphs.squared_distances(view[:22])
    graph = LocalGraph.fit(squares, n_neighbors)
    between = graphs.squared_distances_between(view, view[:22])
    for rows, own in (
        (squares, np.arange(22)),
        (between[22:], np.full(8, -1)),
        (between[[3, 25, 0, 24]], np.array([3, -1, 0, -1])),
    ):
        np.testing.assert_allclose(
            rows_of(graph, rows, own), by_loops(rows, own, squares, n_neighbors), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("n_neighbors", [1, 4, 100])
@pytest.mark.parametrize("name", VIEWS)
def test_rows_of_the_states_are_those_of_the_local_graph(name, n_neighbors):
    view = VIEWS[name]
    squares = graphs.squared_distances(view)
    found = rows_of(LocalGraph.fit(squares, n_neighbors), squares, np.arange(len(view)))
    expected = graphs.transition_matrix(graphs.local_affinity(view, n_neighbors))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_views_without_any_distance():
    squares = np.zeros((12, 12))
    graph = LocalGraph.fit(squares, 5)
    found = rows_of(graph, squares, np.arange(12))
    np.testing.assert_allclose(found, graphs.transition_matrix(graphs.local_affinity(np.zeros((12, 2)), 5)))
    np.testing.assert_allclose(rows_of(graph, squares[:2], np.full(2, -1)), 1.0 / 12.0)


def test_a_new_row_that_duplicates_a_state_leads_where_it_leads(rng):
    view = rng.standard_normal((150, 3))
    squares = graphs.squared_distances(view)
    graph = LocalGraph.fit(squares, 12)
    known = rows_of(graph, squares, np.arange(150))
    new = rows_of(graph, squares, np.full(150, -1))
    np.testing.assert_allclose(new.sum(axis=1), 1.0)
    assert (new.argmax(axis=1) == np.arange(150)).all()
    np.fill_diagonal(new, 0.0)  # the step to itself, which a row that is a state does not make
    assert np.abs(new / new.sum(axis=1, keepdims=True) - known).sum(axis=1).mean() < 0.25


def test_a_single_state_is_where_all_rows_lead():
    """What is left of a view that shows next to nobody."""
    graph = LocalGraph.fit(np.zeros((1, 1)), 5)
    np.testing.assert_array_equal(rows_of(graph, np.array([[0.0]]), np.array([0])), [[1.0]])
    np.testing.assert_array_equal(rows_of(graph, np.array([[2.0]]), np.array([-1])), [[1.0]])
