-- The epoch under which nobody has begun the row yet, nor any owner that vanished before. It says nothing under another one.
ALTER TABLE saga_work ADD COLUMN waiting INTEGER;
