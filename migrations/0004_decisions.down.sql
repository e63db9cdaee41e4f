DROP FUNCTION latchkey.decide_fail, latchkey.fail_try, latchkey.keep_error, latchkey.decide_complete, latchkey.refuse_settle,
  latchkey.decide_predecessor, latchkey.decide_enqueue, latchkey.decide_claim, latchkey.is_held, latchkey.is_mismatch, latchkey.is_free,
  latchkey.in_window, latchkey.reopened, latchkey.decide_deadline, latchkey.end_lease, latchkey.give_up_queued, latchkey.give_up, latchkey.next_deadline,
  latchkey.waits_for_caller, latchkey.retries_end, latchkey.may_try_again, latchkey.owned, latchkey.with_state, latchkey.delay_after,
  latchkey.plain_delay, latchkey.retry_field, latchkey.le8, latchkey.add_capped, latchkey.is_by_call, latchkey.made_by_latchkey,
  latchkey.on_failed_of, latchkey.holds, latchkey.guard_of;
DROP TYPE latchkey.failure, latchkey.decision, latchkey.request;
