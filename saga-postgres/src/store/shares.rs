//! Claims of a part of the work.

use saga_core::store::{Claimed, DefinitionId, ShareRequest, StoreError};
use sqlx::PgConnection;

use crate::clock::micros;
use crate::rows::definition_numbers::Numbers;
use crate::rows::rows;
use crate::store::store::PostgresStore;

/// The shares as the arrays of one statement.
#[derive(Default)]
struct ShareArrays<'a> {
    definitions: Vec<i32>,
    limits: Vec<i64>,
    are_whole: Vec<bool>,
    /// For each step the share that it belongs to, counted from 1.
    of_shares: Vec<i32>,
    kinds: Vec<&'static str>,
    steps: Vec<&'a str>,
}

impl<'a> ShareArrays<'a> {
    fn new(request: &'a ShareRequest, number_of: impl Fn(&DefinitionId) -> Option<i32>) -> Self {
        let mut arrays = Self::default();
        for share in &request.shares {
            // A definition that the store does not know has no work.
            let Some(definition) = number_of(&share.definition) else { continue };
            arrays.definitions.push(definition);
            arrays.limits.push(rows::limit(share.limit));
            arrays.are_whole.push(share.steps.is_none());
            let number = i32::try_from(arrays.definitions.len()).unwrap_or(i32::MAX);
            for step in share.steps.iter().flat_map(|steps| steps.iter()) {
                arrays.of_shares.push(number);
                arrays.kinds.push(step.kind.as_str());
                arrays.steps.push(step.step);
            }
        }
        arrays
    }
}

impl PostgresStore {
    pub(crate) async fn claim_shares_on(
        &self,
        conn: &mut PgConnection,
        request: &ShareRequest,
        failed: fn(&'static str, sqlx::Error) -> StoreError,
    ) -> Result<Claimed, StoreError> {
        let wanted = request.shares.iter().map(|share| share.definition.clone());
        let numbers: Numbers = self.known_definitions(conn, "claim_shares", wanted).await?;
        let arrays = ShareArrays::new(request, |definition| numbers.get(definition));
        let rows =
            sqlx::query(self.sql("SELECT * FROM {schema}.claim_shares($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"))
                .bind(arrays.definitions)
                .bind(arrays.limits)
                .bind(arrays.are_whole)
                .bind(arrays.of_shares)
                .bind(arrays.kinds)
                .bind(arrays.steps)
                .bind(request.lease.owner.0)
                .bind(micros(request.lease.ttl))
                .bind(rows::limit(request.limit))
                .bind(request.takes_over)
                .persistent(self.prepares_statements())
                .fetch_all(&mut *conn)
                .await
                .map_err(|error| failed("claim_shares", error))?;
        self.read_claimed(conn, "claim_shares", &rows).await
    }
}
