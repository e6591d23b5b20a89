"""How far two arrays agree: values that are no numbers must stand at the same places."""

import numpy as np
import pytest

from stepwell.driver.agreement import agree

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("odd", [INF, -INF, NAN])
def test_what_is_no_number_in_both_is_left_out(odd: float) -> None:
    found, reference = np.array([odd, 1, 2, 3]), np.array([odd, 1, 2, 3.001])
    result = agree("y", found, reference)
    assert result.holds
    assert result.cosine == pytest.approx(1)
    assert result.max_abs_error == pytest.approx(0.001)
    assert result.max_abs_reference == pytest.approx(3.001)


@pytest.mark.parametrize(("found", "reference"), [(INF, 7e4), (7e4, INF), (NAN, 0), (0, NAN), (INF, -INF), (INF, NAN)])
def test_what_is_no_number_in_one_alone_departs(found: float, reference: float) -> None:
    result = agree("y", np.array([found, 1]), np.array([reference, 1]))
    assert not result.holds
    assert result.max_abs_error == INF


def test_nothing_but_zeros() -> None:
    assert agree("y", np.zeros(3), np.zeros(3)).cosine == 1
    assert agree("y", np.zeros(3), np.ones(3)).cosine == 0


def test_texts_lists_and_other_shapes() -> None:
    texts = np.array(["a", "é"], object)
    assert agree("y", texts, np.array(["a", "é"])).holds
    assert not agree("y", texts, np.array(["a", "e"], object)).holds
    assert not agree("y", np.zeros((2, 3)), np.zeros(6)).holds
    assert not agree("y", texts, np.zeros(2)).holds
    items = [np.ones(3), np.array([1.0, 2])]
    result = agree("y", items, [np.ones(3), np.array([1, 2.001])])
    assert result.holds
    assert result.max_abs_error == pytest.approx(0.001)
    assert not agree("y", items, items[:1]).holds
    assert not agree("y", items, [np.ones(3), np.array([2.0, -1])]).holds
    assert agree("y", [], []).holds
    assert not agree("y", None, np.ones(1)).holds
    assert agree("y", [{1: 0.5, 2: 0.5}], [{1: 0.5, 2: 0.5001}]).max_abs_error == pytest.approx(0.0001)
    assert not agree("y", [{1: 0.5}], [{2: 0.5}]).holds
