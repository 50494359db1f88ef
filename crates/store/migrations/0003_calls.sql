-- One row for each call. The writer redacts and truncates parameters, result and error.
CREATE TABLE calls (
    request_id TEXT PRIMARY KEY,
    thread_id TEXT,
    source TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    parameters TEXT NOT NULL,
    execution_start BIGINT NOT NULL,
    execution_duration_ms DOUBLE PRECISION NOT NULL,
    status TEXT NOT NULL,
    result TEXT,
    error TEXT,
    error_type TEXT,
    door TEXT
);

-- Newest first, alone and within each selective filter.
CREATE INDEX calls_by_start ON calls (execution_start, request_id);
CREATE INDEX calls_by_source ON calls (source, execution_start, request_id);
CREATE INDEX calls_by_tool ON calls (tool_name, execution_start, request_id);
CREATE INDEX calls_by_thread ON calls (thread_id, execution_start, request_id) WHERE thread_id IS NOT NULL;
CREATE INDEX calls_by_trouble ON calls (status, execution_start, request_id) WHERE status <> 'success';
