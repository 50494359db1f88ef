-- Random keys that all gateways on this database share. `tasks` signs the ids of tasks that clients get.
CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
