-- Sources that were registered at run time. `definition` is JSON. The writer encrypts `secrets`. `epoch` counts the
-- changes, so that only one of two concurrent writers succeeds.
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

-- The tools of each source, including sources of the agent file, which is why sources are identified by name.
-- A tool that is no longer listed stays as `deprecated`.
CREATE TABLE tools (
    source TEXT NOT NULL,
    wire_name TEXT NOT NULL,
    definition TEXT NOT NULL,
    definition_hash TEXT NOT NULL,
    status TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    reason TEXT,
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (source, wire_name)
);
