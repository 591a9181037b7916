-- What a role needs that only looks, with a store that was opened by `PostgresOptions::read_only`.
GRANT USAGE ON SCHEMA saga TO :role;
GRANT SELECT ON ALL TABLES IN SCHEMA saga TO :role;
ALTER DEFAULT PRIVILEGES IN SCHEMA saga GRANT SELECT ON TABLES TO :role;
