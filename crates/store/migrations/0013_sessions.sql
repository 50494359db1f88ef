-- Sessions of the handshake era, so that a client can continue at any gateway. `session_key` is a hash of the session id,
-- which only the client knows. `watched` is a JSON array of resource URIs.
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
