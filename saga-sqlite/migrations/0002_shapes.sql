-- What a definition was when a process first knew it. Nothing is known of those that were used before this was kept.
ALTER TABLE saga_definitions ADD COLUMN digest BLOB;
ALTER TABLE saga_definitions ADD COLUMN shape TEXT;
