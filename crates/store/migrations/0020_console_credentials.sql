-- Sign-ins of the console: one-time tickets and sessions. `credential_key` is a hash of the credential. `binding` is a hash
-- of the credential and the token it was issued for, so that it ends with that token.
CREATE TABLE console_credentials (
    credential_key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    principal TEXT NOT NULL,
    binding TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX console_credentials_by_principal ON console_credentials (principal, kind, expires_at);
