-- What the role of a service needs on the runtime's schema, `saga` where no other was chosen. The schema's owner applies
-- migrations by opening the store once; a service whose schema is as it should be only looks at it.
GRANT USAGE ON SCHEMA saga TO :role;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA saga TO :role;
REVOKE INSERT, UPDATE, DELETE ON saga.migrations FROM :role;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA saga TO :role;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA saga TO :role;
-- What later versions add is created by the owner, who runs this.
ALTER DEFAULT PRIVILEGES IN SCHEMA saga GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :role;
ALTER DEFAULT PRIVILEGES IN SCHEMA saga GRANT USAGE, SELECT ON SEQUENCES TO :role;
