-- How the breakers of sources stand that several gateways share. `state` is `closed`, `open` or `half-open`; `due_at` says
-- when somebody may try a source that is open, and when a try counts as lost. `epoch` counts the turns, so that of two
-- who turn a breaker at the same time only one does.
CREATE TABLE breakers (
    source TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    prober TEXT
);
