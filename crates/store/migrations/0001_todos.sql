-- Valid on both engines. PostgreSQL generates ids itself (BIGSERIAL). SQLite ignores that type, so its ids come from
-- `counters`; the id of a deleted todo is never reused.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('todos', 0);

-- Times are microseconds since 1970, dates are YYYY-MM-DD, tags are a JSON array.
-- The columns that end in `_key` contain the folded text that searches compare: see fold.rs.
CREATE TABLE todos (
    id BIGSERIAL PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    priority BIGINT,
    tags TEXT NOT NULL,
    due_date TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    title_key TEXT NOT NULL,
    description_key TEXT NOT NULL,
    tags_key TEXT NOT NULL
);

CREATE INDEX todos_by_status ON todos (status, id);
CREATE INDEX todos_by_change ON todos (updated_at);
