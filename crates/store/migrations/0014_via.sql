-- The interface that received a call, by the name that the REST API uses for it.
ALTER TABLE calls RENAME COLUMN door TO via;
