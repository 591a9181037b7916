-- How far the walk has come that looks for hosted steps that no message has closed, and when the last one ended. The table
-- has one row.
ALTER TABLE {schema}.maintenance ADD COLUMN walked_to bigint, ADD COLUMN walk_ended_at timestamptz;
