DROP FUNCTION latchkey.run_of_key, latchkey.insert_state, latchkey.first_state, latchkey.insert_run, latchkey.write_state,
  latchkey.release_dependents, latchkey.write_one, latchkey.add_dead_letter, latchkey.update_state, latchkey.lock_state,
  latchkey.leave_block, latchkey.check_snapshot, latchkey.peek_state, latchkey.find_held, latchkey.hold_key, latchkey.counter_of,
  latchkey.make_id, latchkey.store_now,
  latchkey.make_request, latchkey.half_hash, latchkey.prefixed, latchkey.pack_retry, latchkey.place_of, latchkey.span_ms,
  latchkey.body, latchkey.check_span, latchkey.check_text, latchkey.writing_tenant, latchkey.refuse;
