-- Every index slows down every call. The calls of one tool are found among those of its source or of the requested
-- time range.
DROP INDEX calls_by_tool;
