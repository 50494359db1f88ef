-- The editions of each tool's definition, the latest 20. An edition is valid until the next one.
CREATE TABLE tool_definitions (
    source TEXT NOT NULL,
    wire_name TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    definition_hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (source, wire_name, first_seen)
);

INSERT INTO tool_definitions (source, wire_name, first_seen, definition_hash, definition)
SELECT source, wire_name, first_seen, definition_hash, definition FROM tools;
