-- Circuit breakers of sources, shared by several gateways. `state` is `closed`, `open` or `half-open`. `due_at` is the time
-- when an open source may be probed, or when the lease of a probe expires. `epoch` counts the state changes, so that only
-- one of two concurrent changes succeeds.
CREATE TABLE breakers (
    source TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    prober TEXT
);
