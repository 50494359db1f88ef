-- Who made a call, as the door knows them that they came in by.
ALTER TABLE calls ADD COLUMN principal TEXT;
