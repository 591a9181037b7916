//! Looks up the responses of repeated requests, those of many by one statement.

use saga_core::store::{Admission, KeyedRequest, StoreError};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::error::store_error;
use crate::requests::kept_responses::{Entered, KeptResponses, Turn};
use crate::requests::keyed_transaction::OPERATION;
use crate::rows::arrays::column;
use crate::store::store::PostgresStore;

/// How many requests are looked up by one statement. Each response has 256 KiB at most.
const TOGETHER_MAX: usize = 64;

impl PostgresStore {
    /// The answer to a request whose response is kept under its key.
    ///
    /// # Cancel safety
    /// A caller that is dropped while it reads for others lets them read for themselves.
    pub(crate) async fn kept_response(&self, request: &KeyedRequest) -> Result<Option<Admission<()>>, StoreError> {
        let reading = match KeptResponses::enter(&self.shared().kept_responses, request) {
            Entered::Reads(reading) => reading,
            Entered::Waits(turn) => match turn.await {
                Ok(Turn::Answered(answer)) => return Ok(answer),
                Ok(Turn::Reads(reading)) => reading,
                // The statement of the other one failed.
                Err(_) => return Ok(self.kept_responses(&[request]).await?.pop().flatten()),
            },
        };
        let others = reading.take(TOGETHER_MAX - 1);
        let together = std::iter::once(request).chain(others.iter().map(|other| &other.request));
        let mut answers = self.kept_responses(&together.collect::<Vec<_>>()).await?.into_iter();
        drop(reading);
        let own = answers.next().flatten();
        others.into_iter().zip(answers).for_each(|(other, answer)| other.answer(answer));
        Ok(own)
    }

    /// The answers to these requests, in their order.
    async fn kept_responses(&self, requests: &[&KeyedRequest]) -> Result<Vec<Option<Admission<()>>>, StoreError> {
        let sql = "SELECT r.place, k.is_same, k.kept \
             FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) WITH ORDINALITY \
                 AS r (tenant, principal, key, fingerprint, place) \
             CROSS JOIN LATERAL {schema}.kept_response(r.tenant, r.principal, r.key, r.fingerprint) k";
        let text = |of: for<'a> fn(&'a KeyedRequest) -> &'a str| -> Option<Vec<String>> {
            column(requests, |request| of(request).to_owned())
        };
        let query = sqlx::query(self.sql(sql))
            .bind(text(|request| request.key.tenant().as_str()))
            .bind(text(|request| request.key.principal()))
            .bind(text(|request| request.key.as_str()))
            .bind(column(requests, |request| request.fingerprint.to_vec()));
        let mut answers: Vec<Option<Admission<()>>> = requests.iter().map(|_| None).collect();
        for row in self.call_rows(OPERATION, query).await? {
            let (place, answer) = kept(&row).map_err(|error| store_error(OPERATION, error))?;
            if let Some(kept) = usize::try_from(place - 1).ok().and_then(|place| answers.get_mut(place)) {
                *kept = Some(answer);
            }
        }
        Ok(answers)
    }
}

fn kept(row: &PgRow) -> Result<(i64, Admission<()>), sqlx::Error> {
    let is_same: bool = row.try_get(1)?;
    let answer = if is_same { Admission::Replay(row.try_get(2)?) } else { Admission::OtherRequest };
    Ok((row.try_get(0)?, answer))
}
