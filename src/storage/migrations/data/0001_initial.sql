-- What the data plane keeps in SQL. Organisation first in every table and key; times are unix
-- milliseconds, enumerations the numbers of the contract.

-- Computes as the control plane last described them, for scopes and names while it is away.
CREATE TABLE computes (
  org_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  name TEXT NOT NULL,
  type BIGINT NOT NULL,
  team_id TEXT NOT NULL,             -- '': no team
  updated_ms BIGINT NOT NULL,
  PRIMARY KEY (org_id, compute_id)
);

-- Verdicts on compute credentials, by hash; they outlive an absent control plane.
CREATE TABLE compute_credentials (
  org_id TEXT NOT NULL,              -- '' for a credential that was refused
  credential_hash TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  accepted BIGINT NOT NULL,
  checked_ms BIGINT NOT NULL,
  valid_until_ms BIGINT NOT NULL,
  PRIMARY KEY (org_id, credential_hash)
);
CREATE UNIQUE INDEX compute_credentials_hash ON compute_credentials (credential_hash);

-- The last heartbeat of each compute; pending while the control plane has not taken it.
CREATE TABLE compute_heartbeats (
  org_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  at_ms BIGINT NOT NULL,
  daemon_version TEXT NOT NULL,
  nodes BIGINT,
  gpus BIGINT,
  clock_offset_ms BIGINT,            -- sender's clock less ours
  health BYTEA NOT NULL,             -- HeartbeatRequest with its health entries
  pending BIGINT NOT NULL,
  PRIMARY KEY (org_id, compute_id)
);

CREATE TABLE compute_facts (
  org_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  observed_ms BIGINT NOT NULL,
  facts BYTEA NOT NULL,              -- ComputeFacts
  PRIMARY KEY (org_id, compute_id)
);

-- One spool each: what comes next, and what never came.
CREATE TABLE ingest_sources (
  org_id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  next_sequence BIGINT NOT NULL,
  gaps TEXT NOT NULL,                -- missing ranges, "5-7,9-9"
  missing_records BIGINT NOT NULL,   -- records in those ranges and in forgotten ones
  dropped_records BIGINT NOT NULL,   -- as the source says
  rejected_records BIGINT NOT NULL,
  last_push_ms BIGINT NOT NULL,
  PRIMARY KEY (org_id, source_id)
);

-- What is known to be one run by a strong key, or one sight of a run by a partial key. Fragments
-- of one native id are grouped into executions by identity/assign_runs.
CREATE TABLE run_fragments (
  org_id TEXT NOT NULL,
  fragment_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  source_type BIGINT NOT NULL,
  native_id TEXT NOT NULL,           -- raw; '' when only a SLUID is known
  execution_id TEXT NOT NULL,
  weak BIGINT NOT NULL,
  submit_ms BIGINT,
  restart_count BIGINT,
  db_index BIGINT,
  start_ms BIGINT,
  end_ms BIGINT,
  pending_until_ms BIGINT,           -- last seen waiting
  alive_until_ms BIGINT,             -- last seen not ended
  first_observed_ms BIGINT NOT NULL,
  last_observed_ms BIGINT NOT NULL,
  flags BIGINT NOT NULL,             -- identity/fragment.h
  PRIMARY KEY (org_id, fragment_id)
);
CREATE INDEX run_fragments_native ON run_fragments (org_id, compute_id, native_id);
CREATE INDEX run_fragments_execution ON run_fragments (org_id, execution_id);

CREATE TABLE execution_aliases (
  org_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  fragment_id TEXT NOT NULL,
  has_series BIGINT NOT NULL,
  PRIMARY KEY (org_id, compute_id, kind, value)
);
CREATE INDEX execution_aliases_fragment ON execution_aliases (org_id, fragment_id);

CREATE TABLE execution_facts (
  org_id TEXT NOT NULL,
  fragment_id TEXT NOT NULL,
  origin BIGINT NOT NULL,
  node TEXT NOT NULL,
  step_id TEXT NOT NULL,
  observed_ms BIGINT NOT NULL,       -- newest
  facts BYTEA NOT NULL,              -- StoredFacts
  PRIMARY KEY (org_id, fragment_id, origin, node, step_id)
);

-- The merged view, and the columns that lists filter and sort by.
CREATE TABLE executions (
  org_id TEXT NOT NULL,
  execution_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  source_type BIGINT NOT NULL,
  native_id TEXT NOT NULL,
  display_id TEXT NOT NULL,          -- as users write it: 41982_3
  sort_ms BIGINT NOT NULL,           -- submission, else start, else first sight
  submit_ms BIGINT,
  start_ms BIGINT,
  end_ms BIGINT,
  status BIGINT NOT NULL,
  outcome BIGINT NOT NULL,
  user_name TEXT NOT NULL,
  job_name TEXT NOT NULL,
  script_hash TEXT NOT NULL,
  tree_hash TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  merged BYTEA NOT NULL,             -- Execution
  PRIMARY KEY (org_id, execution_id)
);
CREATE INDEX executions_newest ON executions (org_id, sort_ms, execution_id);
CREATE INDEX executions_status ON executions (org_id, status, sort_ms, execution_id);
CREATE INDEX executions_outcome ON executions (org_id, outcome, sort_ms, execution_id);
CREATE INDEX executions_user ON executions (org_id, user_name, sort_ms, execution_id);
CREATE INDEX executions_compute ON executions (org_id, compute_id, sort_ms, execution_id);
CREATE INDEX executions_native ON executions (org_id, native_id);
CREATE INDEX executions_display ON executions (org_id, display_id);
CREATE INDEX executions_source ON executions (org_id, compute_id, script_hash, tree_hash, sort_ms);
CREATE INDEX executions_job_name ON executions (org_id, compute_id, user_name, job_name, sort_ms);

-- Ids that were answered once and have been joined to another execution since.
CREATE TABLE execution_redirects (
  org_id TEXT NOT NULL,
  from_id TEXT NOT NULL,
  to_id TEXT NOT NULL,
  PRIMARY KEY (org_id, from_id)
);

CREATE TABLE log_tails (
  org_id TEXT NOT NULL,
  fragment_id TEXT NOT NULL,
  stream TEXT NOT NULL,
  observed_ms BIGINT NOT NULL,
  tail BYTEA NOT NULL,               -- LogTail without content
  blob_sha256 TEXT NOT NULL,         -- '': no content
  PRIMARY KEY (org_id, fragment_id, stream)
);

CREATE TABLE bundles (
  org_id TEXT NOT NULL,
  bundle_id TEXT NOT NULL,
  script_hash TEXT NOT NULL,
  tree_hash TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  observed_ms BIGINT NOT NULL,
  manifest BYTEA NOT NULL,           -- StoredBundle
  PRIMARY KEY (org_id, bundle_id)
);

CREATE TABLE user_mappings (
  org_id TEXT NOT NULL,
  email TEXT NOT NULL,
  compute_id TEXT NOT NULL,          -- '': every compute
  scheduler_user TEXT NOT NULL,
  PRIMARY KEY (org_id, email, compute_id, scheduler_user)
);
