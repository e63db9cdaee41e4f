DROP FUNCTION latchkey.make_request, latchkey.check_request, latchkey.half_hash, latchkey.prefixed, latchkey.pack_retry, latchkey.place_of, latchkey.span_ms,
  latchkey.body, latchkey.check_span, latchkey.is_plain, latchkey.check_text, latchkey.writing_tenant, latchkey.refuse;
