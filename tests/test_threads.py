"""The pool of threads: results do not depend on it, limits come and go, errors get through."""

import os
import threading

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from emvc import _threads
from emvc._threads import gram, matmul, n_threads, run_ranges, threads_for_blas, threads_for_openmp, use_threads


def blas_threads():
    scipy.linalg.solve(np.eye(2), np.ones(2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def openmp_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(_threads, "n_cores", lambda: 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 3, 2), (700, 300, 310), (1100, 900, 40)])
def test_products_are_right_and_do_not_depend_on_the_number_of_threads(rng, shape, dtype):
    one = rng.standard_normal(shape[:2]).astype(dtype)
    other = rng.standard_normal(shape[1:]).astype(dtype)
    found = []
    for threads in (1, 2, 3, 4):
        with use_threads(threads):
            found.append((matmul(one, other), matmul(other.T, one.T), gram(one)))
    for products in found:
        for product, first in zip(products, found[0], strict=True):
            assert product.dtype == dtype
            np.testing.assert_array_equal(product, first)
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found[0][0], one.astype(float) @ other.astype(float), atol=tolerance)
    np.testing.assert_allclose(found[0][1], found[0][0].T, atol=tolerance)
    np.testing.assert_allclose(found[0][2], one.astype(float).T @ one.astype(float), atol=tolerance)
    np.testing.assert_array_equal(found[0][2], found[0][2].T)


def test_products_are_written_where_they_belong(rng):
    one, other = rng.standard_normal((600, 200)), rng.standard_normal((200, 150))
    out = np.zeros((600, 150))
    assert matmul(one, other, out=out) is out
    np.testing.assert_allclose(out, one @ other)


def test_blas_has_one_thread_inside_and_its_own_number_again_outside():
    before = blas_threads()
    with use_threads(3):
        assert blas_threads() == {1}
        assert n_threads() == 3
        with use_threads():
            assert n_threads() == 3
        with use_threads(2):
            assert n_threads() == 2
        assert blas_threads() == {1}
        with threads_for_blas(10, least=100):
            assert blas_threads() == {1}
        with threads_for_blas(100, least=100):
            assert max(blas_threads()) > 1
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_limits_of_the_user_are_kept():
    with threadpool_limits(1, "blas"):
        assert n_threads() == 1
        with use_threads():
            assert n_threads() == 1


def test_every_item_is_visited_once():
    for n_items in (0, 1, 7, 100):
        for threads in (1, 3):
            seen = np.zeros(n_items, dtype=int)

            def visit(first, last, seen=seen):
                seen[first:last] += 1

            with use_threads(threads):
                run_ranges(visit, n_items, least=2)
            assert np.all(seen == 1)


@pytest.mark.parametrize("bad", [0, 99])
def test_errors_get_through_and_the_pool_survives(bad):
    def fail(first, last):
        if first <= bad < last:
            raise ValueError("item is bad")

    with use_threads(4):
        with pytest.raises(ValueError, match="item is bad"):
            run_ranges(fail, 100)
        run_ranges(lambda *_: None, 100)
    assert not _threads._blas.active


def test_many_threads_may_compute_at_once(rng):
    one = rng.standard_normal((600, 300))
    expected = one @ one.T
    wrong = []

    def work():
        for _ in range(5):
            if not np.allclose(matmul(one, one.T), expected):
                wrong.append(1)

    before = blas_threads()
    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert not wrong
    assert blas_threads() == before


def overlapping(blocks, order):
    """Enter and leave blocks, each in a thread of its own, in this order; return the threads of BLAS at each step."""
    found = []
    doors = [(threading.Semaphore(0), threading.Semaphore(0)) for _ in blocks]

    def live(block, go, done):
        go.acquire()
        with block:
            done.release()
            go.acquire()
        done.release()

    workers = [threading.Thread(target=live, args=(block, *door)) for block, door in zip(blocks, doors, strict=True)]
    for worker in workers:
        worker.start()
    for number in order:
        doors[number][0].release()
        assert doors[number][1].acquire(timeout=30)
        found.append(blas_threads())
    for worker in workers:
        worker.join(30)
    return found


@pytest.mark.parametrize("order", [(0, 1, 0, 1), (0, 1, 1, 0), (1, 0, 1, 0), (0, 1, 2, 0, 1, 2), (2, 0, 1, 2, 0, 1)])
def test_limits_are_restored_however_blocks_of_several_threads_overlap(order):
    with threadpool_limits(3):
        before = blas_threads(), openmp_threads()
        blocks = [use_threads(2), threads_for_blas(100, least=1), threads_for_openmp(1, least=100)]
        found = overlapping(blocks[: max(order) + 1], order)
        assert found[order.index(0)] == {1}  # in threads that did not set the limits before, too
        assert found[-1] == before[0]
        assert openmp_threads() == before[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_pool_of_its_own(rng):
    one = rng.standard_normal((600, 300))
    with use_threads(4):
        matmul(one, one.T)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.allclose(matmul(one, one.T), one @ one.T) else 1)
        assert os.waitpid(child, 0)[1] == 0
