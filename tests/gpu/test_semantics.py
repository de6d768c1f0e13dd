"""What an application means, and what padding has no part in, on a device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from tests.contract import test_kept, test_made_sizes, test_stores, test_validity  # noqa: E402
from tests.contract.application import (  # noqa: E402
    test_by_zero,
    test_choices,
    test_meaning,
    test_places_of_extrema,
    test_scans,
)
from tests.contract.loops import test_conditions_of_loops, test_ways_in_rounds  # noqa: E402
from tests.contract.numbers import test_orders  # noqa: E402
from tests.contract.tensors import (  # noqa: E402
    test_beside,
    test_meeting_in_positions,
    test_positions_of_padding,
    test_reshaped,
)
from tests.contract.variables import (  # noqa: E402
    test_closures,
    test_order,
    test_variables,
    test_what_helpers_change,
)

pytestmark = pytest.mark.usefixtures("on_device")

_CHOSEN = {
    test_validity: ("test_padding_takes_no_part",),
    test_made_sizes: (
        "test_of_what_is_made_in_a_size_a_wider_tile_is_stored_no_more",
        "test_of_what_is_made_in_a_size_truth_values_are_stored",
    ),
    test_kept: ("test_what_pad_adds_without_a_value_is_kept_where_another_tensor_has_elements",),
    test_meeting_in_positions: (
        "test_there_must_be_as_many_elements",
        "test_tiles_may_lie_elsewhere",
        "test_a_product_of_flattened_grids_contracts_what_both_have",
        "test_positions_meet_what_is_stored_there_before_the_slices_behind_them",
        "test_what_positions_select_exists_where_they_do",
        "test_positions_meet_each_other",
    ),
    test_places_of_extrema: ("test_the_greatest_and_the_least_of_negated_integers",),
    test_closures: (
        "test_functions_see_what_they_do_in_python",
        "test_a_tile_is_the_one_that_was_selected",
    ),
    test_order: ("test_it_is_what_it_was_when_python_read_it",),
    test_variables: ("test_it_means_what_python_says",),
    test_what_helpers_change: (
        "test_what_was_selected_stays_where_a_helper_changes_the_index",
        "test_a_helper_is_what_its_own_helpers_make_of_it",
        "test_what_a_dictionary_holds_stays_where_a_round_has_no_element",
    ),
    test_choices: ("test_a_choice_that_is_asked_of_has_the_elements_of_what_is_chosen",),
    test_scans: (
        "test_scans_are_what_plain_numpy_says",
        "test_no_more_than_all_are_the_greatest",
        "test_fewer_than_all_are_in_32_bits",
    ),
    test_orders: (
        "test_nan_is_the_greatest_in_order",
        "test_nan_is_among_the_greatest",
        "test_the_greatest_alone_is_one_of_a_whole_tile",
        "test_what_is_in_no_bin_is_not_counted",
    ),
    test_reshaped: (
        "test_what_was_reshaped_is_reduced_as_in_numpy",
        "test_of_more_than_two_dimensions_the_last_two_are_exchanged",
    ),
    test_stores: (
        "test_what_threads_are_still_to_load_no_other_stores_to",
        "test_of_what_moved_that_alone_is_stored_which_exists",
        "test_truth_values_are_left_as_well",
        "test_what_is_moved_within_a_tensor_is_read_after_the_store",
        "test_rows_and_columns_of_what_moved",
        "test_what_pad_adds_beside_a_tile_is_there_to_be_read",
        "test_nothing_is_stored_beyond_the_tensor_by_tiles_that_are_not_there",
    ),
    test_beside: (
        "test_it_is_stored_beside_an_element_of_another_tile",
        "test_it_is_left_out_of_what_is_reduced_and_of_what_moved",
        "test_the_sums_of_windows_are_stored_where_nothing_is",
        "test_rows_and_columns_that_were_added_stay_as_they_were_where_rows_are_sorted",
        "test_what_another_tile_does_not_have_is_treated_alike",
        "test_an_element_that_is_not_there_is_in_no_sum",
        "test_what_one_way_does_not_have_is_read_beside_what_moved",
        "test_each_way_is_stored_as_it_is_by_itself",
    ),
    test_positions_of_padding: (
        "test_nothing_is_loaded_from_it",
        "test_nothing_is_stored_to_it",
        "test_nothing_is_stored_of_its_row",
        "test_a_tile_of_positions_that_has_fewer_stores_fewer",
    ),
    test_conditions_of_loops: (
        "test_a_loop_ends_where_all_that_exists_has_ended",
        "test_what_rounds_before_had_is_asked",
        "test_rows_and_columns_that_are_not_there_end_no_later",
    ),
    test_ways_in_rounds: ("test_a_way_keeps_what_there_was_before_the_round",),
    test_by_zero: (
        "test_an_integer_by_zero_is_zero_and_nothing_else_changes",
        "test_a_sum_of_what_was_divided_has_the_elements_that_exist",
    ),
    test_meaning: (
        "test_names_mean_what_they_did_when_the_kernel_was_made",
        "test_it_means_what_plain_numpy_says",
        "test_it_is_refused_where_it_stands",
        "test_a_loops_own_variable_ends_with_it",
        "test_what_a_round_has_no_element_for_is_what_it_was_before_the_round",
    ),
}

for module, names in _CHOSEN.items():
    assert globals().keys().isdisjoint(names), f"of {module.__name__} one hides another"
    globals().update({name: getattr(module, name) for name in names})
