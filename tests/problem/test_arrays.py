from fractions import Fraction

import numpy as np
import pytest

from omdpd.problem.arrays import InvalidInputError, as_law, as_table, numbers, policy_table, positive_integer, within


def test_a_row_that_does_not_sum_to_one_is_named_with_its_sum():
    rows = [[[0.5, 0.5], [0.5, 0.4]]]
    with pytest.raises(InvalidInputError, match=r"law\[0, 1\] \(step 0, state 1\) = 0.9 .*should be 1"):
        as_law("law", rows, ["step", "state", "action"], [1, 2, 2])


def test_rows_within_the_typing_tolerance_are_scaled_to_one():
    law = as_law("law", [1 / 3, 0.333333333, 0.333333333], ["state"], [3])
    assert abs(law.sum() - 1.0) < 1e-15


def test_a_negative_probability_is_named():
    with pytest.raises(InvalidInputError, match=r"law\[1, 0\] \(state 1, action 0\) = -0.2 is negative"):
        as_law("law", [[0.5, 0.5], [-0.2, 1.2]], ["state", "action"], [2, 2])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_entry_that_is_not_finite_is_named(bad):
    with pytest.raises(InvalidInputError, match=r"reward\[0, 1\] \(state 0, action 1\) = .* is not a finite number"):
        as_table("reward", [[0.0, bad], [0.0, 0.0]], ["state", "action"], [2, 2])


def test_the_number_of_further_bad_entries_is_told():
    with pytest.raises(InvalidInputError, match=r"\(2 more like it\)"):
        as_table("reward", [np.nan, np.nan, 0.0, np.nan], ["state"], [4])


def test_a_wrong_length_names_the_axis_and_what_it_needs():
    with pytest.raises(InvalidInputError, match=r"length 3 along its action axis \(axis 1\), but needs 2"):
        as_table("reward", np.zeros((2, 3)), ["state", "action"], [2, 2])


def test_a_wrong_number_of_axes_names_the_axes_that_are_needed():
    with pytest.raises(InvalidInputError, match=r"has 1 axes, but needs 2: \(state, action\)"):
        as_table("reward", np.zeros(3), ["state", "action"], [None, None])


def test_an_empty_axis_is_refused_even_where_any_length_is_accepted():
    with pytest.raises(InvalidInputError, match=r"length 0 along its action axis \(axis 1\)"):
        as_table("reward", np.zeros((2, 0)), ["state", "action"], [None, None])


def test_a_number_in_words_is_called_text():
    with pytest.raises(InvalidInputError, match=r"^budget is not an array of numbers: it holds text$"):
        numbers("budget", "2 euros")
    with pytest.raises(InvalidInputError, match=r"^budget is not an array of numbers: it holds text$"):
        as_table("budget", ["2 euros"], ["constraint"], [1])


@pytest.mark.parametrize("value", ["abc", [[1.0, 2.0], [3.0]], [object()]])
def test_what_is_not_an_array_of_numbers_is_refused_with_a_sentence(value):
    with pytest.raises(InvalidInputError, match="reward is not an array of numbers"):
        as_table("reward", value, ["state", "action"], [None, None])


def test_a_table_is_a_copy_that_its_giver_cannot_change():
    given = np.zeros((2, 3))
    table = as_table("reward", given, ["state", "action"], [2, 3])
    given[0, 0] = 7.0
    assert table[0, 0] == 0.0


def test_a_transposed_array_becomes_contiguous():
    assert as_table("reward", np.zeros((3, 2)).T, ["state", "action"], [2, 3]).flags.c_contiguous


def test_within_forgives_rounding_and_nothing_more():
    within("cost", np.array([1.0 + 1e-13]), -1.0, 1.0, ["state"])
    with pytest.raises(InvalidInputError, match=r"cost\[0\] \(state 0\) = 1.01 is outside \[-1, 1\]"):
        within("cost", np.array([1.01]), -1.0, 1.0, ["state"])


@pytest.mark.parametrize("bad", [0, -3, 2.0, True, "5", None])
def test_what_is_not_a_positive_whole_number_is_refused(bad):
    with pytest.raises(InvalidInputError, match=r"horizon is .* must be a whole number of at least 1"):
        positive_integer("horizon", bad)


def test_numpy_integers_are_whole_numbers():
    assert positive_integer("horizon", np.int32(4)) == 4


def test_a_policy_is_checked_row_by_row():
    policy = np.full((2, 3, 4), 0.25)
    assert policy_table(policy, 2, 3, 4).shape == (2, 3, 4)
    policy[1, 2, 3] = 0.5
    with pytest.raises(InvalidInputError, match=r"policy\[1, 2\] \(step 1, state 2\) = 1.25"):
        policy_table(policy, 2, 3, 4)


@pytest.mark.parametrize(
    "value",
    [
        [[1.0 + 0.0j, 0.0]], np.array([["1", "0"]]), [["1", 0]], np.array([[b"1", b"0"]]),
        np.array([[1, 0]], dtype="m8[s]"), np.array([[1, 0]], dtype="M8[s]"),
        np.ma.masked_array([[1.0, 0.0]], [[0, 1]]),
        np.array([["1", 0]], dtype=object), [[10**400, 0]], [[1.0, 0.0], [1.0]], [[{}, 1.0]],
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "dtype", "")),
)  # fmt: skip
def test_what_numpy_would_quietly_turn_into_numbers_is_refused(value):
    with pytest.raises(InvalidInputError, match=r"reward is (not an array of numbers|a masked array)"):
        as_table("reward", value, ["state", "action"], [None, None])


@pytest.mark.parametrize("value", [[[True, False]], np.array([[1, 0]], np.int8), [[Fraction(1, 2), 0]]])
def test_whole_numbers_truth_values_and_fractions_are_numbers(value):
    assert as_table("reward", value, ["state", "action"], [1, 2]).dtype == np.float64
