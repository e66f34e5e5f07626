import numpy as np
import pytest

from emvc.metrics import METRICS, clustering_accuracy, clustering_scores, pair_scores

# Classes A A A B B C, clusters 0 0 1 1 1 1. Pairs together: truth {01, 02, 12, 34} of which found {01, 34};
# found {01, 23, 24, 25, 34, 35, 45}.
TRUTH = ["A", "A", "A", "B", "B", "C"]
FOUND = [0, 0, 1, 1, 1, 1]


def test_hand_computed_example():
    scores = clustering_scores(TRUTH, FOUND)
    assert tuple(scores) == METRICS
    assert scores["precision"] == pytest.approx(2 / 7)
    assert scores["recall"] == pytest.approx(2 / 4)
    assert scores["f_score"] == pytest.approx(4 / 11)
    assert scores["accuracy"] == pytest.approx(4 / 6)  # A with 0, B with 1
    # Cluster 0 is pure; cluster 1 has 1/4, 2/4, 1/4: entropy 1.5 bits.
    assert scores["entropy"] == pytest.approx(1.5 * 4 / 6)
    # H(truth) = 1.459148, H(found) = 0.918296, I = H(truth) - 1.0 = 0.459148 bits.
    assert scores["nmi"] == pytest.approx(0.459148 / ((1.459148 + 0.918296) / 2), abs=1e-6)
    # 15 pairs, 4 true, 7 found, 2 both: expected 28/15, maximum 5.5.
    assert scores["ari"] == pytest.approx((2 - 28 / 15) / (5.5 - 28 / 15))


@pytest.mark.parametrize(
    ("average", "divisor"),
    [
        ("arithmetic", (1.459148 + 0.918296) / 2),
        ("geometric", np.sqrt(1.459148 * 0.918296)),
        ("min", 0.918296),
        ("max", 1.459148),
    ],
)
def test_nmi_normalisation(average, divisor):
    assert clustering_scores(TRUTH, FOUND, nmi_average=average)["nmi"] == pytest.approx(0.459148 / divisor, abs=1e-6)


def test_perfect_and_permuted():
    scores = clustering_scores([0, 0, 1, 2], [5, 5, 3, 4])
    assert all(scores[name] == pytest.approx(1.0) for name in METRICS if name != "entropy")
    assert scores["entropy"] == 0.0


def test_accuracy_with_unequal_numbers_of_clusters():
    assert clustering_accuracy([0, 0, 1, 1], [0, 1, 2, 3]) == 0.5
    assert clustering_accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25


def test_no_pairs_at_all():
    assert pair_scores([0, 1, 2], [0, 1, 2]) == (1.0, 1.0, 1.0)
    assert pair_scores([0, 0, 0], [0, 1, 2]) == (0.0, 0.0, 0.0)


def test_bad_input():
    with pytest.raises(ValueError, match="y_true has 2 entries, labels has 3"):
        clustering_scores([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="labels must be a non-empty one-dimensional array"):
        clustering_scores([0, 1], [[0], [1]])
    with pytest.raises(TypeError, match="must each be of one kind"):
        clustering_scores([None, "a"], [0, 1])
