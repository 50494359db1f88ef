-- Valid on both engines. PostgreSQL hands out ids by itself (BIGSERIAL); for SQLite that word is only a name, and the
-- ids come from `counters`, so that the id of a deleted todo is never given to another one.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('todos', 0);

-- Times are microseconds since 1970, dates are YYYY-MM-DD, tags are a JSON array.
-- The columns that end in `_key` hold what is compared in a search: see fold.rs.
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
