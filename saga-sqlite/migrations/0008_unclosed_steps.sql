-- How far the walk has come that looks for hosted steps that no message has closed, and when the last one ended.
ALTER TABLE saga_maintenance ADD COLUMN walked_to INTEGER;
ALTER TABLE saga_maintenance ADD COLUMN walk_ended_at INTEGER;
