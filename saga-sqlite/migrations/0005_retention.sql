-- When the time of an ended saga is over, and when it is deleted if it becomes a tombstone before that. The services that
-- did steps of it, with commas between them.
ALTER TABLE saga_progress ADD COLUMN expires_at INTEGER;
ALTER TABLE saga_progress ADD COLUMN delete_at INTEGER;
ALTER TABLE saga_progress ADD COLUMN hosts TEXT;

CREATE INDEX saga_progress_expiring ON saga_progress (expires_at) WHERE expires_at IS NOT NULL;

-- When a message was last published under the ordering key, to within an hour. Of older ones it is not known.
ALTER TABLE saga_published ADD COLUMN published_at INTEGER;
UPDATE saga_published SET published_at = unixepoch() * 1000000;

CREATE INDEX saga_published_at ON saga_published (published_at);

-- The key of the saga that caused the message, as its headers have it: pairs of texts, each after its length in bytes.
ALTER TABLE saga_dead_letters ADD COLUMN saga_key TEXT;

WITH RECURSIVE parts (id, number, size, part, rest) AS (
    SELECT id, 0, 0, x'', CAST(headers AS BLOB) FROM saga_dead_letters WHERE state = 'open'
    UNION ALL
    -- By turns the length of the next part, and that part.
    SELECT id, number + 1,
        CASE WHEN number % 2 THEN 0 ELSE CAST(CAST(substr(rest, 1, instr(rest, x'3A') - 1) AS TEXT) AS INTEGER) END,
        CASE WHEN number % 2 THEN substr(rest, 1, size) ELSE x'' END,
        CASE WHEN number % 2 THEN substr(rest, size + 1) ELSE substr(rest, instr(rest, x'3A') + 1) END
    FROM parts WHERE number % 2 OR instr(rest, x'3A') > 0
)
UPDATE saga_dead_letters SET saga_key = CAST(text.part AS TEXT)
FROM parts name JOIN parts text ON text.id = name.id AND text.number = name.number + 2
WHERE name.id = saga_dead_letters.id AND name.number % 4 = 2 AND name.part = CAST('saga-cause' AS BLOB);

CREATE INDEX saga_dead_letters_saga ON saga_dead_letters (tenant, saga_key) WHERE state = 'open';
CREATE INDEX saga_dead_letters_decided ON saga_dead_letters (decided_at) WHERE decided_at IS NOT NULL;

-- The member that does the maintenance.
CREATE TABLE saga_maintenance (
    name         TEXT PRIMARY KEY,
    epoch        INTEGER NOT NULL,
    owner        INTEGER,
    leased_until INTEGER
) STRICT, WITHOUT ROWID;

INSERT INTO saga_maintenance (name, epoch) VALUES ('purge', 0);
