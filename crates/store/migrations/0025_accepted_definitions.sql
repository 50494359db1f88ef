-- Definitions that differ from the lock and that an operator has accepted. A row accepts exactly one hash.
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
