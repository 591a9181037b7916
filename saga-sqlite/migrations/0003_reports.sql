-- What a call reported last of how far it is, when, and the number of that report.
ALTER TABLE saga_work ADD COLUMN report INTEGER;
ALTER TABLE saga_work ADD COLUMN reported_at INTEGER;
ALTER TABLE saga_work ADD COLUMN progress BLOB;
