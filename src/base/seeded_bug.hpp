// Seeded bugs: deliberate mistakes that prove the tests. The simulation must catch LK_SEEDED_BUGS
// (tests/simulation/seeded_bugs_test.cpp), the fault walk must catch LK_SEEDED_SQLITE_BUGS
// (tests/faults/seeded_faults_test.cpp), and the tests on a real server must catch LK_SEEDED_POSTGRES_BUGS.
//
// LK_SEEDED(name) is the constant false in production. In a build with LATCHKEY_SEEDED_BUGS it is true for the bug that
// the test has switched on.
#pragma once

#define LK_SEEDED_BUGS(X)                                                                 \
  X(settle_ignores_fence)          /* an older owner's settle is accepted */              \
  X(settle_after_requeue)          /* a late settle is accepted once the run is queued */ \
  X(settle_ignores_cancel)         /* a cancelled run is tried again */                   \
  X(attempts_counted_at_failure)   /* a caller that dies is not counted */                \
  X(release_lowers_attempt)        /* instead of allowing one more */                     \
  X(wait_given_back_as_a_try)      /* a failed try does not count */                      \
  X(claim_id_forgotten)            /* a claim asked again is refused by itself */         \
  X(fingerprint_after_state)       /* another request is told busy or not due */          \
  X(window_from_creation)          /* the window starts before the completion */          \
  X(hold_reruns_after_lease)       /* a doubtful effect is repeated */                    \
  X(extend_ignores_fence)          /* a lapsed owner is told that it owns the run */      \
  X(generation_lowers_fence)       /* a new generation forgets who owned the last */      \
  X(fence_reused)                  /* two owners with one fence */                        \
  X(dead_letter_skipped)           /* where the effect is unknown */                      \
  X(purge_ignores_window)          /* the key is free too early */                        \
  X(purge_ignores_dead_letter)     /* nobody reads what went wrong */                     \
  X(predecessor_failure_releases)  /* dependents run after a failure */                   \
  X(dependents_forgotten)          /* dependents of a swept run wait for ever */          \
  X(tenant_not_checked)            /* another tenant's run is settled or cancelled */     \
  X(store_clock_runs_back)         /* with the wall clock */                              \
  X(lost_reply_taken_as_failure)   /* the claim is made again under a new id */           \
  X(lease_measured_from_reply)     /* instead of from the request */                      \
  X(lost_lease_not_noticed)        /* the effect goes on without a lease */               \
  X(cached_replay_past_window)     /* the cache answers for a run that is over */         \
  X(cached_replay_any_fingerprint) /* the cache answers another request */                \
  X(cached_replay_not_counted)     /* why did it not run? nobody knows */                 \
  X(call_without_key_forgotten)    /* a job without a key, asked again, is made twice */  \
  X(action_on_later_failure)       /* a dead letter's action on a later failure */        \
  X(dead_letter_step_not_recorded) /* no record of the operator who retried it */         \
  X(reopening_ignores_retries)     /* a new generation has the first call's tries */      \
  X(move_before_time)              /* by hand, on a run that time has ended */

#define LK_SEEDED_SQLITE_BUGS(X)                                                              \
  X(lost_commit_taken_as_failure) /* it is in the file, and its callers are told otherwise */ \
  X(lost_commit_taken_as_success) /* it is not, and its callers are told that it is */        \
  X(log_not_synced)               /* after a checkpoint commits are answered unsynced */      \
  X(failed_sync_believed)         /* the log starts over though the file was not synced */    \
  X(log_not_rewritten)            /* what a failed sync left unwritten is believed written */ \
  X(merge_drops_an_entry)         /* a key of the window does not reach its page */           \
  X(split_drops_a_page)           /* a page's second half is not written */                   \
  X(filter_ignores_merges)        /* a merged key is said to be new */                        \
  X(filter_scan_skips_a_page)     /* the same, of what was there before */                    \
  X(rollback_skips_the_index)     /* a job is thought taken */

#define LK_SEEDED_POSTGRES_BUGS(X)                                                          \
  X(unknown_commit_retried)      /* a batch that may be committed is executed once more */  \
  X(unknown_commit_acknowledged) /* a batch that may not be committed is acknowledged */    \
  X(rows_not_locked)             /* two servers change one run at the same time */          \
  X(contended_run_half_swept)    /* a run with a contended row is swept without that row */ \
  X(settled_without_entry)       /* the settlement is missing in every index */

#ifdef LATCHKEY_SEEDED_BUGS

namespace latchkey {

enum class SeededBug {
  none,
#define LK_NAME(name) name,
  LK_SEEDED_BUGS(LK_NAME) LK_SEEDED_SQLITE_BUGS(LK_NAME) LK_SEEDED_POSTGRES_BUGS(LK_NAME)
#undef LK_NAME
};
inline SeededBug seeded_bug = SeededBug::none;

}  // namespace latchkey

#define LK_SEEDED(name) (::latchkey::seeded_bug == ::latchkey::SeededBug::name)
#else
#define LK_SEEDED(name) false
#endif
