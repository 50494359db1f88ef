-- The authenticated principal that made a call.
ALTER TABLE calls ADD COLUMN principal TEXT;
