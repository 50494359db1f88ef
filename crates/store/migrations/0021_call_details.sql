-- What else is known about a call that failed, waited or was traced, as JSON: phase, sent, hint, trace_id and stages_ms. Most
-- calls succeed at once and have none, so they pay nothing for it.
ALTER TABLE calls ADD COLUMN details TEXT;
