-- Calls that their callers have given a key, so that the same call is not made twice. `answer` is redacted and bounded by
-- whoever writes it; without a status nobody has heard how the call ended.
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
