-- Who disabled a tool and when, and since when its source no longer lists it.
ALTER TABLE tools ADD COLUMN disabled_by TEXT;
ALTER TABLE tools ADD COLUMN disabled_at BIGINT;
ALTER TABLE tools ADD COLUMN vanished_at BIGINT;
