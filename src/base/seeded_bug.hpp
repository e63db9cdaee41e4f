// Seeded bugs: deliberate mistakes that prove the tests. The simulation must catch LK_SEEDED_BUGS
// (tests/simulation/seeded_bugs_test.cpp), the fault walk must catch LK_SEEDED_SQLITE_BUGS
// (tests/faults/seeded_faults_test.cpp), and the tests on a real server must catch LK_SEEDED_POSTGRES_BUGS.
//
// LK_SEEDED(name) is the constant false in production. In a build with LATCHKEY_SEEDED_BUGS it is true for the bug that
// the test has switched on.
#pragma once

#define LK_SEEDED_BUGS(X)                                                                               \
  X(settle_ignores_fence)                /* a settle with an older fence is accepted */                 \
  X(settle_after_requeue)                /* a late settle is accepted after the run was queued again */ \
  X(settle_ignores_cancel)               /* a cancelled run is retried */                               \
  X(attempts_counted_at_failure)         /* an attempt is not counted if its caller dies */             \
  X(release_lowers_attempt)              /* instead of allowing one more attempt */                     \
  X(retry_release_adds_attempt)          /* releasing a failed attempt does not count it */             \
  X(claim_id_forgotten)                  /* a repeated claim is refused because of its own run */       \
  X(fingerprint_after_state)             /* another request gets busy or not due, not a mismatch */     \
  X(window_from_creation)                /* the window starts before the completion */                  \
  X(hold_reruns_after_lease)             /* an effect in doubt is repeated */                           \
  X(extend_ignores_fence)                /* an owner without the lease gets it extended */              \
  X(generation_lowers_fence)             /* a new generation starts with an old fence */                \
  X(fence_reused)                        /* two owners get the same fence */                            \
  X(dead_letter_skipped)                 /* no dead letter if the effect is unknown */                  \
  X(purge_ignores_window)                /* the key is free too early */                                \
  X(purge_ignores_dead_letter)           /* an unacknowledged failure is purged */                      \
  X(predecessor_failure_releases)        /* dependents run after a failure */                           \
  X(dependents_forgotten)                /* dependents of a swept run wait forever */                   \
  X(tenant_not_checked)                  /* a tenant settles or cancels another tenant's run */         \
  X(store_clock_runs_back)               /* together with the wall clock */                             \
  X(lost_reply_taken_as_failure)         /* the claim is repeated with a new claim id */                \
  X(lease_measured_from_reply)           /* instead of from the request */                              \
  X(lost_lease_not_noticed)              /* the effect continues without a lease */                     \
  X(cached_replay_past_window)           /* the cache replays an outcome after its window */            \
  X(cached_replay_any_fingerprint)       /* the cache replays to another request */                     \
  X(cached_replay_not_counted)           /* the suppressed repeat has no record */                      \
  X(call_without_key_forgotten)          /* a repeated enqueue without a key creates two jobs */        \
  X(action_on_later_failure) /* an action on a dead letter changes a later failure */       \
  X(dead_letter_step_not_recorded)       /* there is no record of the operator who retried */           \
  X(reopening_ignores_retries)           /* a new generation has the retries of the first call */       \
  X(action_before_deadline)              /* an operator action ignores that a deadline has passed */

#define LK_SEEDED_SQLITE_BUGS(X)                                                                  \
  X(lost_commit_taken_as_failure) /* callers get an error although the batch is committed */      \
  X(lost_commit_taken_as_success) /* callers get a success although the batch is not committed */ \
  X(log_not_synced)               /* after a checkpoint, replies are sent before the sync */      \
  X(failed_sync_ignored)          /* the log is restarted although the file was not synced */     \
  X(log_not_rewritten)            /* pages of a failed sync are assumed to be on the disk */      \
  X(merge_drops_an_entry)         /* a key of the window is not written to its page */            \
  X(split_drops_a_page)           /* the second half of a split page is not written */            \
  X(filter_ignores_merges)        /* the key filter reports a merged key as new */                \
  X(filter_scan_skips_a_page)     /* the same, for keys that were there at the start */           \
  X(rollback_skips_the_index)     /* a rolled-back take leaves its job out of the index */

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
