-- Answers of the diagnosis, by run and by the content they were made from.
CREATE TABLE diagnose_run (
  org_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  execution_id TEXT NOT NULL,
  content_key TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  run BYTEA NOT NULL,
  PRIMARY KEY (org_id, run_id)
);
CREATE INDEX diagnose_run_content ON diagnose_run (org_id, content_key, created_ms);
