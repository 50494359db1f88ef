-- Sessions of the handshake era, for whichever gateway their client comes to next. What a session is called is known to
-- its client alone: here stands a hash of it. `watched` is a JSON array of addresses of resources.
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
