-- Answers of analyse, by run and by the content they were made from, and their patches.
CREATE TABLE analyse_run (
  org_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  content_key TEXT NOT NULL,  -- empty until the run has been answered
  status BIGINT NOT NULL,     -- RunStatus
  error TEXT,
  created_ms BIGINT NOT NULL,
  run BYTEA NOT NULL,
  PRIMARY KEY (org_id, run_id)
);
CREATE INDEX analyse_run_content ON analyse_run (org_id, user_id, content_key, created_ms);
CREATE INDEX analyse_run_open ON analyse_run (status) WHERE status IN (1, 2);

CREATE TABLE analyse_artifact (
  org_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  artifact_id TEXT NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (org_id, run_id, artifact_id)
);
