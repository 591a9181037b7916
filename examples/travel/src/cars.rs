//! The rental of a car: a saga of its own, which is a step of a trip.

use saga_core::{Output, State, StepContext, StepError, SubSaga, saga_compensation, saga_step};
use saga_sql::SqlConn;

use crate::providers::{POLICIES, Providers};

/// The step that rents a car: it takes the city and returns the number plate.
pub struct CarRental;

impl SubSaga for CarRental {
    const NAME: &'static str = "rent-car";
    type Input = String;
    type Output = String;
}

/// Takes a free car of our own.
#[saga_step(compensate = return_car)]
pub async fn pick_car(tx: &mut impl SqlConn, ctx: &StepContext, city: String) -> Result<String, StepError> {
    // Until this transaction ends, others wait here for the cars of the city, so that no two take the same one.
    tx.execute("UPDATE cars SET city = city WHERE city = $1", &[&city]).await?;
    let sql = "UPDATE cars SET trip = $1 WHERE plate =
                   (SELECT plate FROM cars WHERE city = $2 AND trip IS NULL ORDER BY plate LIMIT 1)
               RETURNING plate";
    let plate: Option<String> = tx.query_opt(sql, &[&ctx.saga_key(), &city]).await?;
    plate.ok_or_else(|| StepError::reject(format!("no car is free in {city}")))
}

/// Undoes `pick_car`.
#[saga_compensation]
pub async fn return_car(tx: &mut impl SqlConn, ctx: &StepContext, _city: String) -> Result<(), StepError> {
    tx.execute("UPDATE cars SET trip = NULL WHERE trip = $1", &[&ctx.saga_key()]).await?;
    Ok(())
}

/// Insures the car.
#[saga_step(compensate = end_insurance)]
pub async fn insure_car(
    ctx: &StepContext,
    _city: String,
    Output(plate): Output<pick_car>,
    State(outside): State<Providers>,
) -> Result<String, StepError> {
    outside.book(POLICIES, ctx).await?;
    Ok(format!("policy of {plate}"))
}

/// Undoes `insure_car`, by the key of its call.
#[saga_compensation]
pub async fn end_insurance(
    ctx: &StepContext,
    _city: String,
    _policy: Option<String>,
    State(outside): State<Providers>,
) -> Result<(), StepError> {
    outside.cancel(POLICIES, ctx).await
}
