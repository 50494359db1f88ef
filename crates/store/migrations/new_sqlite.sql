-- Written by `UPDATE=1 cargo test -p wharf-store new_database`. The other files are the source.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
CREATE TABLE todos (
    id BIGSERIAL PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    priority BIGINT,
    tags TEXT NOT NULL,
    due_date TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    title_key TEXT NOT NULL,
    description_key TEXT NOT NULL,
    tags_key TEXT NOT NULL
);
CREATE INDEX todos_by_status ON todos (status, id);
CREATE INDEX todos_by_change ON todos (updated_at);
CREATE TABLE sources (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL,
    origin TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    lifecycle TEXT NOT NULL,
    health TEXT NOT NULL,
    consecutive_failures BIGINT NOT NULL,
    inventory_hash TEXT,
    secrets BYTEA,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    epoch BIGINT NOT NULL
);
CREATE TABLE tools (
    source TEXT NOT NULL,
    wire_name TEXT NOT NULL,
    definition TEXT NOT NULL,
    definition_hash TEXT NOT NULL,
    status TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    reason TEXT,
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL, disabled_by TEXT, disabled_at BIGINT, vanished_at BIGINT,
    PRIMARY KEY (source, wire_name)
);
CREATE TABLE calls (
    request_id TEXT PRIMARY KEY,
    thread_id TEXT,
    source TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    parameters TEXT NOT NULL,
    execution_start BIGINT NOT NULL,
    execution_duration_ms DOUBLE PRECISION NOT NULL,
    status TEXT NOT NULL,
    result TEXT,
    error TEXT,
    error_type TEXT,
    via TEXT
, principal TEXT, details TEXT);
CREATE INDEX calls_by_start ON calls (execution_start, request_id);
CREATE INDEX calls_by_source ON calls (source, execution_start, request_id);
CREATE INDEX calls_by_thread ON calls (thread_id, execution_start, request_id) WHERE thread_id IS NOT NULL;
CREATE INDEX calls_by_trouble ON calls (status, execution_start, request_id) WHERE status <> 'success';
CREATE TABLE promises (
    principal TEXT NOT NULL,
    promise_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    request_id TEXT,
    status BIGINT,
    answer TEXT,
    PRIMARY KEY (principal, promise_key)
);
CREATE INDEX promises_by_age ON promises (begun_at);
CREATE TABLE breakers (
    source TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    prober TEXT
);
CREATE TABLE sessions (
    session_key TEXT PRIMARY KEY,
    principal TEXT,
    version TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    client_info TEXT,
    log_level TEXT,
    watched TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_age ON sessions (expires_at);
CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE console_credentials (
    credential_key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    principal TEXT NOT NULL,
    binding TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX console_credentials_by_principal ON console_credentials (principal, kind, expires_at);
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    run_id TEXT,
    epoch BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_micros BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX conversations_by_principal ON conversations (principal, updated_at);
CREATE INDEX conversations_by_age ON conversations (updated_at);
CREATE TABLE entries (
    conversation_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    call_id TEXT,
    body TEXT NOT NULL,
    native TEXT,
    native_for TEXT,
    tokens BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, seq)
);
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    question TEXT NOT NULL,
    digest TEXT NOT NULL,
    decision TEXT,
    scope TEXT,
    reason TEXT,
    decided_by TEXT,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT
);
CREATE INDEX approvals_by_conversation ON approvals (conversation_id, run_id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at);
CREATE TABLE accepted_definitions (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    principal TEXT NOT NULL,
    reason TEXT,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (source, kind, name)
);
CREATE TABLE tool_definitions (
    source TEXT NOT NULL,
    wire_name TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    definition_hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (source, wire_name, first_seen)
);
CREATE TABLE results (
    id TEXT PRIMARY KEY,
    conversation_id TEXT,
    number BIGINT,
    principal TEXT NOT NULL,
    request_id TEXT NOT NULL,
    source TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX results_by_owner ON results (principal, created_at);
CREATE INDEX results_by_age ON results (expires_at);
CREATE UNIQUE INDEX results_by_number ON results (conversation_id, number);
CREATE TABLE result_chunks (
    id TEXT NOT NULL,
    part BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (id, part)
);
INSERT INTO counters (name, value) VALUES ('todos', 0);
