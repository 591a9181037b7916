//! Rows as arrays, the arguments of the schema's functions.

use saga_core::store::{NewSaga, NewWork, StoreError};
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use crate::clock::micros;
use crate::rows::definition_numbers::Numbers;
use crate::rows::expiry::Term;
use crate::store::lock_wait::LockWait;
use crate::store::store::PostgresStore;

/// A query of the store.
pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// One column of some rows. Without rows it is NULL, which the server neither reads nor copies, unlike an empty array.
pub(crate) fn column<'a, R, T>(rows: &'a [R], of: impl Fn(&'a R) -> T) -> Option<Vec<T>> {
    (!rows.is_empty()).then(|| rows.iter().map(of).collect())
}

/// `$1, $2, .., $count`
pub(crate) fn placeholders(count: usize) -> String {
    (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

/// A command, the number of its definition, and the index of its change.
pub(crate) struct Command<'a> {
    pub(crate) change: i32,
    pub(crate) definition: i32,
    pub(crate) new: &'a NewWork,
}

/// Binds the columns of commands, in the argument order of both functions.
pub(crate) fn bind_commands<'q>(query: Statement<'q>, commands: &[Command<'_>]) -> Statement<'q> {
    query
        .bind(column(commands, |command| command.new.id.0))
        .bind(column(commands, |command| command.new.saga.0))
        .bind(column(commands, |command| command.new.tenant.as_str()))
        .bind(column(commands, |command| command.new.key.as_str()))
        .bind(column(commands, |command| command.new.kind.as_str()))
        .bind(column(commands, |command| command.new.step.as_str()))
        .bind(column(commands, |command| command.definition))
        .bind(column(commands, |command| command.new.payload.as_deref()))
        .bind(column(commands, |command| micros(command.new.due_in)))
        .bind(column(commands, |command| command.new.lease.map(|lease| lease.owner.0)))
        .bind(column(commands, |command| command.new.lease.map(|lease| micros(lease.ttl))))
}

/// Binds the terms of sagas as three arrays. Where no saga has one, they are NULL.
pub(crate) fn bind_terms<'q, R>(query: Statement<'q>, rows: &[R], of: impl Fn(&R) -> Term) -> Statement<'q> {
    let has_terms = rows.iter().any(|row| of(row).expire.is_some());
    let terms: Vec<Term> = if has_terms { rows.iter().map(of).collect() } else { Vec::new() };
    query
        .bind(column(&terms, |term| term.expire))
        .bind(column(&terms, |term| term.delete))
        .bind(column(&terms, |term| term.hosts.clone()))
}

/// The arguments of `start_dated_sagas`.
pub(crate) struct StartArrays<'a> {
    sagas: Vec<(&'a NewSaga, i32)>,
    commands: Vec<Command<'a>>,
}

impl<'a> StartArrays<'a> {
    pub(crate) fn new(
        sagas: impl Iterator<Item = &'a NewSaga>,
        operation: &'static str,
        numbers: &Numbers,
    ) -> Result<Self, StoreError> {
        let mut arrays = Self { sagas: Vec::new(), commands: Vec::new() };
        for saga in sagas {
            arrays.sagas.push((saga, numbers.of(operation, &saga.definition)?));
            for new in &saga.commands {
                let definition = numbers.of(operation, &new.definition)?;
                arrays.commands.push(Command { change: 0, definition, new });
            }
        }
        Ok(arrays)
    }

    /// `waits`: how long it waits for keys that other transactions are about to take.
    pub(crate) fn query(&self, store: &PostgresStore, lock_wait: LockWait) -> Statement<'static> {
        let sagas = &self.sagas;
        let from = match lock_wait {
            LockWait::Short => format!(" FROM {}", store.short_wait()),
            LockWait::AsInTransaction => String::new(),
        };
        let sql = store.sql(&format!("SELECT {{schema}}.start_dated_sagas({}){from}", placeholders(24)));
        let query = sqlx::query(sql)
            .bind(column(sagas, |(saga, _)| saga.id.0))
            .bind(column(sagas, |(saga, _)| saga.tenant.as_str()))
            .bind(column(sagas, |(saga, _)| saga.key.as_str()))
            .bind(column(sagas, |(_, definition)| *definition))
            .bind(column(sagas, |(saga, _)| &saga.digest[..]))
            .bind(column(sagas, |(saga, _)| &*saga.input))
            .bind(column(sagas, |(saga, _)| &*saga.input_hash))
            .bind(column(sagas, |(saga, _)| &*saga.state))
            .bind(column(sagas, |(saga, _)| saga.status.as_str()))
            .bind(column(sagas, |(saga, _)| saga.status.is_ended()));
        bind_commands(bind_terms(query, sagas, |(saga, _)| Term::of_start(saga)), &self.commands)
    }
}
