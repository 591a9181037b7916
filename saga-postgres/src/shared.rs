//! The state that the handles of a store share.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use saga_core::store::Durability;
use sqlx::PgPool;

use crate::connections::connection_cache::ConnectionCache;
use crate::connections::hint_connection::HintConnection;
use crate::connections::pool::IDLE_UNCHECKED_MAX;
use crate::connections::server::Server;
use crate::connections::statement_cache::StatementCache;
use crate::fault_injection::Mutant;
use crate::options::PostgresOptions;
use crate::requests::kept_keys::KeptKeys;
use crate::requests::kept_responses::KeptResponses;
use crate::requests::request_statements::RequestStatements;
use crate::rows::definition_numbers::DefinitionNumbers;
use crate::rows::id_counter::IdCounter;
use crate::statistics::Counters;

/// The state that all handles share.
pub(crate) struct Shared {
    pub(crate) options: PostgresOptions,
    /// The schema's name, quoted.
    pub(crate) quoted_schema: String,
    pub(crate) pool: PgPool,
    /// Whether only this store uses the pool, so that it knows the state of each connection.
    pub(crate) owns_pool: bool,
    /// The idle connections of a pool that only this store uses.
    pub(crate) cache: Option<Arc<ConnectionCache>>,
    pub(crate) durability: Durability,
    /// Whether the server can check that its client is still there while a statement runs.
    pub(crate) checks_clients: bool,
    pub(crate) ids: IdCounter,
    pub(crate) definitions: Arc<DefinitionNumbers>,
    pub(crate) statements: StatementCache,
    pub(crate) statistics: Counters,
    /// Keys of requests whose response is kept.
    pub(crate) kept_keys: KeptKeys,
    pub(crate) kept_responses: Arc<KeptResponses>,
    pub(crate) hints: HintConnection,
    /// The name of the savepoint in front of a handler. It differs in each process, so that no step uses it.
    pub(crate) savepoint: String,
    pub(crate) request_statements: RequestStatements,
}

impl Shared {
    /// `definitions` is set where only this store uses the pool: each new connection notes the timeline there.
    pub(crate) fn new(
        options: PostgresOptions,
        pool: PgPool,
        server: Server,
        definitions: Option<Arc<DefinitionNumbers>>,
    ) -> Self {
        let owns_pool = definitions.is_some();
        let savepoint = handler_savepoint(&options);
        Self {
            hints: HintConnection::new(&options),
            cache: owns_pool.then(|| Arc::new(ConnectionCache::new(options.connections_max, IDLE_UNCHECKED_MAX))),
            statements: StatementCache::new(&options),
            request_statements: RequestStatements::new(&options, &format!("{savepoint}_guard")),
            savepoint,
            quoted_schema: options.quoted_schema(),
            options,
            pool,
            owns_pool,
            durability: server.durability,
            checks_clients: server.checks_clients,
            ids: IdCounter::default(),
            definitions: definitions.unwrap_or_default(),
            statistics: Counters::default(),
            kept_keys: KeptKeys::default(),
            kept_responses: Arc::default(),
        }
    }
}

/// A name that a step cannot guess. One for each process and not for each transaction, since `pg_stat_statements` would
/// have an entry for each.
fn handler_savepoint(options: &PostgresOptions) -> String {
    if options.broken_rule.is(Mutant::FixedSavepointName) {
        return "saga_handler".to_owned();
    }
    // Its keys are random.
    format!("saga_handler_{:016x}", RandomState::new().hash_one(0))
}
