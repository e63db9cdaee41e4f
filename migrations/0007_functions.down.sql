DROP FUNCTION latchkey.begin_run, latchkey.enqueue, latchkey.heartbeat, latchkey.complete_run, latchkey.fail_run,
  latchkey.acknowledge_dlq_entry, latchkey.settle, latchkey.lock_owned, latchkey.own_run, latchkey.start_waiting,
  latchkey.lock_predecessors, latchkey.claim_again, latchkey.start_claimed, latchkey.describe_claim;
DROP TYPE latchkey.begun, latchkey.enqueued, latchkey.settled, latchkey.extended;
