-- Every index costs every call. Those of one tool are found among those of its source, or among all of the time that
-- is asked for.
DROP INDEX calls_by_tool;
