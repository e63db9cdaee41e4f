DROP FUNCTION latchkey.run_of_key, latchkey.insert_state, latchkey.first_state, latchkey.insert_run, latchkey.write_state,
  latchkey.release_dependents, latchkey.tell_work, latchkey.write_one, latchkey.add_dead_letter, latchkey.update_state, latchkey.lock_state,
  latchkey.leave_block, latchkey.check_snapshot, latchkey.peek_state, latchkey.are_held, latchkey.draw_fence, latchkey.hold_key, latchkey.counter_of,
  latchkey.make_id, latchkey.store_now;
