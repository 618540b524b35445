-- Identity, registration and audit. No column here can hold workload data: what jobs run, use or
-- print is the data plane's (src/control_plane/boundary_test.cc walks this schema). Every table
-- begins with the organisation's id. Credentials are stored as keyed hashes only.

CREATE TABLE organisation (
  org_id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at_ms BIGINT NOT NULL
);

-- permissions: ids separated by single spaces.
CREATE TABLE role (
  org_id TEXT NOT NULL REFERENCES organisation (org_id) ON DELETE CASCADE,
  role_id TEXT NOT NULL,
  name TEXT NOT NULL,
  permissions TEXT NOT NULL,
  is_protected BIGINT NOT NULL CHECK (is_protected IN (0, 1)),
  is_default BIGINT NOT NULL CHECK (is_default IN (0, 1)),
  PRIMARY KEY (org_id, role_id),
  UNIQUE (org_id, name)
);

-- A person in an organisation. The same user_id in two organisations is the same person; only the
-- operator of this plane can say so.
CREATE TABLE member (
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  email TEXT NOT NULL,
  name TEXT NOT NULL,
  role_id TEXT NOT NULL,
  created_at_ms BIGINT NOT NULL,
  PRIMARY KEY (org_id, user_id),
  UNIQUE (org_id, email),
  FOREIGN KEY (org_id, role_id) REFERENCES role (org_id, role_id)
);
CREATE INDEX member_by_user ON member (user_id);

CREATE TABLE team (
  org_id TEXT NOT NULL REFERENCES organisation (org_id) ON DELETE CASCADE,
  team_id TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at_ms BIGINT NOT NULL,
  PRIMARY KEY (org_id, team_id),
  UNIQUE (org_id, name)
);

CREATE TABLE team_member (
  org_id TEXT NOT NULL,
  team_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  team_role TEXT NOT NULL CHECK (team_role IN ('Owner', 'Admin', 'Member')),
  PRIMARY KEY (org_id, team_id, user_id),
  FOREIGN KEY (org_id, team_id) REFERENCES team (org_id, team_id) ON DELETE CASCADE,
  FOREIGN KEY (org_id, user_id) REFERENCES member (org_id, user_id) ON DELETE CASCADE
);
CREATE INDEX team_member_by_user ON team_member (org_id, user_id);

-- may_switch: made by the operator of this plane for the person, so it can mint sessions for every
-- organisation of that person. A key made inside an organisation acts in that organisation only:
-- whoever manages its members could otherwise act as them elsewhere.
CREATE TABLE api_key (
  org_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  label TEXT NOT NULL,
  key_hash TEXT NOT NULL UNIQUE,
  hint TEXT NOT NULL,
  may_switch BIGINT NOT NULL CHECK (may_switch IN (0, 1)),
  created_by TEXT NOT NULL,
  created_at_ms BIGINT NOT NULL,
  revoked_at_ms BIGINT,
  last_used_at_ms BIGINT,
  PRIMARY KEY (org_id, key_id),
  FOREIGN KEY (org_id, user_id) REFERENCES member (org_id, user_id) ON DELETE CASCADE
);
CREATE INDEX api_key_by_user ON api_key (org_id, user_id);

-- compute_type: number of expanse.control.v1.ComputeType. pending_since_ms is set from
-- registration until the first heartbeat after it. The state is not stored: it follows from these
-- columns and the clock.
CREATE TABLE compute (
  org_id TEXT NOT NULL REFERENCES organisation (org_id) ON DELETE CASCADE,
  compute_id TEXT NOT NULL,
  name TEXT NOT NULL,
  compute_type BIGINT NOT NULL,
  team_id TEXT,
  scheduler_identity TEXT NOT NULL,
  daemon_version TEXT NOT NULL,
  nodes BIGINT,
  gpus BIGINT,
  registered_at_ms BIGINT NOT NULL,
  registered_by TEXT NOT NULL,
  pending_since_ms BIGINT,
  last_heartbeat_ms BIGINT,
  revoked_at_ms BIGINT,
  PRIMARY KEY (org_id, compute_id),
  FOREIGN KEY (org_id, team_id) REFERENCES team (org_id, team_id)
);
CREATE INDEX compute_by_identity ON compute (org_id, compute_type, scheduler_identity);

-- closed_at_ms: dead from then on, by the first heartbeat after its exchange, by a newer token or
-- by a revocation (closed_because).
CREATE TABLE install_token (
  org_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  created_by TEXT NOT NULL,
  created_at_ms BIGINT NOT NULL,
  expires_at_ms BIGINT NOT NULL,
  exchanged_at_ms BIGINT,
  closed_at_ms BIGINT,
  closed_because TEXT,
  PRIMARY KEY (org_id, token_id),
  FOREIGN KEY (org_id, compute_id) REFERENCES compute (org_id, compute_id) ON DELETE CASCADE
);
CREATE INDEX install_token_by_compute ON install_token (org_id, compute_id);

CREATE TABLE compute_credential (
  org_id TEXT NOT NULL,
  credential_id TEXT NOT NULL,
  compute_id TEXT NOT NULL,
  credential_hash TEXT NOT NULL UNIQUE,
  created_at_ms BIGINT NOT NULL,
  revoked_at_ms BIGINT,
  PRIMARY KEY (org_id, credential_id),
  FOREIGN KEY (org_id, compute_id) REFERENCES compute (org_id, compute_id) ON DELETE CASCADE
);
CREATE INDEX compute_credential_by_compute ON compute_credential (org_id, compute_id);

CREATE TABLE plane_credential (
  org_id TEXT NOT NULL REFERENCES organisation (org_id) ON DELETE CASCADE,
  credential_id TEXT NOT NULL,
  credential_hash TEXT NOT NULL UNIQUE,
  created_at_ms BIGINT NOT NULL,
  revoked_at_ms BIGINT,
  PRIMARY KEY (org_id, credential_id)
);

-- details: a JSON object of short strings, keys from the closed list of store/audit.cc.
CREATE TABLE audit_event (
  org_id TEXT NOT NULL REFERENCES organisation (org_id) ON DELETE CASCADE,
  event_id TEXT NOT NULL,
  at_ms BIGINT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL,
  PRIMARY KEY (org_id, event_id)
);
CREATE INDEX audit_event_by_time ON audit_event (org_id, at_ms);
