-- What a definition was when a process first knew it. Nothing is known of those that were used before this was kept.
ALTER TABLE {schema}.definitions ADD COLUMN digest bytea, ADD COLUMN shape text;
