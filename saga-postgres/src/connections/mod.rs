//! Connections: the pool, the pooler and the server behind it, and what is kept for each connection.

pub(super) mod connection_cache;
pub(super) mod first_statement;
pub(super) mod hint_connection;
pub(super) mod pool;
pub(super) mod pooler;
pub(super) mod server;
pub(super) mod statement_cache;
pub(super) mod timeline;
