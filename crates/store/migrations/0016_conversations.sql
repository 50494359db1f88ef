-- Conversations of the agent. `state` is `idle`, `running` or `waiting`. `epoch` counts the runs, and a run writes only
-- while the conversation has its epoch. A running conversation whose lease has expired was interrupted.
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

-- Entries of conversations. They are only added. `native` is data of the provider and model that `native_for` names.
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

-- Questions to people about calls. `question` is JSON. Without a `decision` the run waits, until `expires_at`.
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
