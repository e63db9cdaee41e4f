DROP TRIGGER notify ON latchkey.dead_letters;
DROP VIEW latchkey.geoprocessing_idempotency, latchkey.sync_errors, latchkey.dead_letter_queue, latchkey.sync_run_log, latchkey.job_runs,
  latchkey.readable_runs;
DROP FUNCTION latchkey.notify_dead_letter, latchkey.tell_dead_letter, latchkey.is_latest, latchkey.note_tenant, latchkey.tenant_id, latchkey.status_name, latchkey.as_time,
  latchkey.as_json, latchkey.as_text, latchkey.name_uuid, latchkey.sha1;
