//! The list of cases, and how it becomes tests.

/// One `#[test]` for each case of the conformance suite, run against what `$factory` makes.
///
/// `$factory` is an expression of a type that implements [`Factory`](crate::testkit::Factory); it is
/// evaluated anew in every test.
///
/// ```text
/// strandline_storage::conformance_tests!(MyFactory::in_a_new_folder());
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::conformance_tests! { @group $factory, append:
            a_new_log_is_empty
            the_ends_move_with_submit_and_ticket
            an_append_elsewhere_than_the_end_is_refused
            submits_pipeline_and_settle_in_order
            durable_waits_for_what_lies_before_its_end
            a_dropped_ticket_cancels_nothing
            a_submit_may_hold_several_batches
            a_batch_larger_than_a_chunk_is_kept
            the_listener_hears_first_and_in_order
            a_busy_engine_takes_the_append_later
            nothing_is_read_before_it_is_durable
        }
        $crate::conformance_tests! { @group $factory, chunk:
            a_chunk_is_closed_before_it_grows_past_its_size
            a_chunk_is_closed_before_it_holds_too_many_records
            a_chunk_is_closed_when_it_is_old
            a_chunk_knows_when_it_was_appended_to
            roll_closes_the_active_chunk
            configure_takes_effect_with_the_next_append
            trim_drops_the_chunks_below_the_log_start
            trim_never_lowers_the_log_start
            a_log_trimmed_to_its_end_goes_on_from_there
            a_trim_survives_a_restart
            chunks_survive_a_restart
        }
        $crate::conformance_tests! { @group $factory, meta:
            every_table_keeps_its_own_rows
            rows_come_in_byte_order
            a_row_is_read_by_its_key
            pages_put_together_are_the_table
            changes_apply_in_order
            expectations_guard_the_whole_commit
            overlapping_commits_are_applied_one_by_one
            large_commits_are_whole
            rows_survive_a_restart
            rows_and_records_live_side_by_side
        }
        $crate::conformance_tests! { @group $factory, open:
            a_later_opener_fences_the_earlier
            the_epoch_is_at_least_what_was_asked
            the_store_knows_the_epoch_of_an_open_log
            a_log_opens_again_after_its_handle_was_dropped
            a_log_that_nobody_holds_is_as_it_was
            a_clean_stop_loses_nothing
            a_crash_loses_nothing_acknowledged
            a_crash_cuts_between_batches
            logs_are_independent
            a_handle_is_shared
        }
        $crate::conformance_tests! { @group $factory, quarantine:
            a_quarantined_log_is_served_to_nobody
            a_quarantine_is_idempotent_and_of_nothing_but_what_is_stored
            a_released_log_is_as_it_was
            a_quarantine_survives_a_restart_and_so_does_its_end
            a_quarantined_log_is_removed_like_any_other
            other_logs_go_on_beside_a_quarantine
            a_healthy_store_has_lost_nothing
        }
        $crate::conformance_tests! { @group $factory, read:
            a_read_begins_with_the_batch_that_holds_its_offset
            a_read_ends_before_upto
            a_read_keeps_within_its_limit
            reads_get_through_many_chunks
            batches_of_all_sizes_come_back
            offsets_outside_the_log_are_out_of_range
            bytes_outlive_a_trim
            a_timestamp_finds_the_first_batch_that_reaches_it
        }
        $crate::conformance_tests! { @group $factory, remove:
            removal_goes_in_steps
            the_smallest_budget_gets_on
            removal_is_idempotent
            removal_closes_the_log_for_good
            removal_resumes_after_a_restart
            removal_leaves_other_logs_alone
            bytes_outlive_a_removal
        }
        $crate::conformance_tests! { @group $factory, rewrite:
            a_rewrite_takes_the_place_of_its_chunks
            a_rewrite_of_nothing_removes_its_chunks
            a_rewrite_that_is_dropped_changes_nothing
            a_rewrite_is_refused_what_would_harm_the_log
            the_end_of_a_log_outlives_its_rewrite
            a_rewrite_survives_a_restart
            chunks_that_are_dropped_meanwhile_are_not_replaced
            a_rewrite_ends_with_its_handle
            bytes_outlive_a_rewrite
            a_rewritten_chunk_is_trimmed_and_removed_like_any_other
            how_far_a_log_is_compacted_is_kept
        }
        $crate::conformance_tests! { @group $factory, state:
            the_last_saved_state_is_loaded
            a_state_above_the_durable_end_is_refused
            a_saved_state_survives_a_restart
            a_saved_state_outlives_a_trim
        }
        $crate::conformance_tests! { @group $factory, store:
            logs_with_bytes_are_listed
            what_is_stored_is_known_without_opening
            used_space_counts_what_is_stored
            a_healthy_log_has_no_findings
            a_healthy_engine_is_in_no_trouble_and_counts
            a_closed_engine_says_so
        }
        #[test]
        fn random_histories_agree_with_the_model() {
            $crate::testkit::history::random_histories_agree_with_the_model(|| $factory);
        }
    };
    (@group $factory:expr, $group:ident: $($case:ident)*) => {
        mod $group {
            use super::*;

            $(#[test]
            fn $case() {
                $crate::testkit::run(|| $factory, $crate::testkit::$group::$case);
            })*
        }
    };
}

#[cfg(test)]
mod tests {
    /// A case that is not in the list above would be run by nobody.
    #[test]
    fn every_case_is_in_the_list() {
        let sources = [
            include_str!("append.rs"),
            include_str!("chunk.rs"),
            include_str!("meta.rs"),
            include_str!("open.rs"),
            include_str!("quarantine.rs"),
            include_str!("read.rs"),
            include_str!("remove.rs"),
            include_str!("rewrite.rs"),
            include_str!("state.rs"),
            include_str!("store.rs"),
        ];
        let listed = include_str!("macros.rs").split_whitespace().collect::<Vec<_>>();
        let mut cases = 0;
        for source in sources {
            for declared in source.split("pub async fn ").skip(1) {
                let name = declared.split('(').next().expect("a split has a first part");
                assert!(listed.contains(&name), "{name}");
                cases += 1;
            }
        }
        assert!(cases > 50, "the declarations are found: {cases}");
    }
}
