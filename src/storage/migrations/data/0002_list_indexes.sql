-- Lists by two filters: an index for each pair that people combine, so that rows that do not match
-- are not read. Every order ends in (sort_ms, execution_id).
DROP INDEX executions_newest;
DROP INDEX executions_status;
DROP INDEX executions_outcome;
DROP INDEX executions_user;
DROP INDEX executions_compute;
DROP INDEX executions_native;
DROP INDEX executions_display;
DROP INDEX executions_source;
DROP INDEX executions_job_name;
CREATE INDEX executions_newest ON executions (org_id, sort_ms, execution_id, compute_id);
CREATE INDEX executions_status ON executions
  (org_id, status, sort_ms, execution_id, outcome, compute_id);
CREATE INDEX executions_outcome ON executions
  (org_id, outcome, sort_ms, execution_id, status, compute_id);
CREATE INDEX executions_user ON executions
  (org_id, user_name, sort_ms, execution_id, compute_id);
CREATE INDEX executions_user_status ON executions
  (org_id, user_name, status, sort_ms, execution_id, outcome, compute_id);
CREATE INDEX executions_user_outcome ON executions
  (org_id, user_name, outcome, sort_ms, execution_id, status, compute_id);
CREATE INDEX executions_compute ON executions (org_id, compute_id, sort_ms, execution_id);
CREATE INDEX executions_compute_status ON executions
  (org_id, compute_id, status, sort_ms, execution_id, outcome);
CREATE INDEX executions_compute_outcome ON executions
  (org_id, compute_id, outcome, sort_ms, execution_id, status);
CREATE INDEX executions_native ON executions (org_id, native_id, sort_ms, execution_id);
CREATE INDEX executions_display ON executions (org_id, display_id, sort_ms, execution_id);
CREATE INDEX executions_source ON executions
  (org_id, compute_id, script_hash, tree_hash, sort_ms, execution_id, args_hash);
CREATE INDEX executions_job_name ON executions
  (org_id, compute_id, user_name, job_name, sort_ms, execution_id);
