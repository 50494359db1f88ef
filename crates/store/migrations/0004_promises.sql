-- Idempotency keys of calls, so that the same call is not made twice. The writer redacts and limits `answer`. Without a
-- status, the outcome of the call is unknown.
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
