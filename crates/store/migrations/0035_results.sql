-- Results of calls that were too large for their readers. `number` counts the results of a conversation; others have none.
-- `expires_at` is null while the conversation is kept.
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

-- The content of results, in parts of at most one MiB.
CREATE TABLE result_chunks (
    id TEXT NOT NULL,
    part BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (id, part)
);
