//! The tables of the business, and the count of what a run left in them.

use std::ops::Range;

use anyhow::{Result, ensure};
use sqlx::{Connection as _, PgConnection, Row as _};

use super::work::Work;

/// The steps of one saga.
pub(crate) const STEPS_PER_SAGA: u32 = 3;
/// How many rows the steps of the hot work share.
pub(crate) const HOT_ROWS: u32 = 77;
/// Every so many orders one is refused at its last step.
pub(crate) const REFUSED_EACH: u32 = 5;
/// Every so many orders one can never be paid.
pub(crate) const FAILING_EACH: u32 = 20;

/// One a step, then one a compensation. A row's key is random, as identifiers in such tables are.
const TABLES: [&str; 5] = ["reservations", "payments", "confirmations", "releases", "refunds"];

/// Whether this order is refused, where the work has such.
pub(crate) fn is_refused(number: u32) -> bool {
    number % REFUSED_EACH == REFUSED_EACH / 2
}

/// Whether this order's payment fails each time, where the work has such.
pub(crate) fn is_failing(number: u32) -> bool {
    number % FAILING_EACH == FAILING_EACH / 2
}

/// The rows that the hot work updates for a step of an order: they look random, and each is as likely as any other.
pub(crate) fn hot_row(order: i64, step: i64) -> i64 {
    let mixed = (order * i64::from(STEPS_PER_SAGA) + step).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed());
    (mixed >> 33).rem_euclid(i64::from(HOT_ROWS))
}

/// Makes the tables of the business.
pub(crate) async fn create(url: &str) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    let columns = "id uuid PRIMARY KEY DEFAULT gen_random_uuid(), order_id bigint NOT NULL, amount bigint NOT NULL";
    let tables: Vec<String> = TABLES.iter().map(|table| format!("CREATE TABLE {table} ({columns});")).collect();
    let sql = format!(
        "{} CREATE TABLE hot (id bigint PRIMARY KEY, amount bigint NOT NULL) WITH (fillfactor = 50); \
         INSERT INTO hot SELECT id, 0 FROM generate_series(0, {}) id",
        tables.concat(),
        HOT_ROWS - 1
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await?;
    Ok(conn.close().await?)
}

/// Empties the tables again.
pub(crate) async fn clear(url: &str) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    let sql = format!("TRUNCATE {}", TABLES.join(", "));
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await?;
    Ok(conn.close().await?)
}

/// How many steps and undos with an effect the sagas with these numbers make.
pub(crate) fn steps(work: Work, numbers: Range<u32>) -> u32 {
    let sagas = numbers.end - numbers.start;
    let count = |of: fn(u32) -> bool| numbers.clone().map(|number| u32::from(of(number))).sum::<u32>();
    match work {
        // Two steps are done and undone; the refusal of the third has no effect.
        Work::Undo => sagas * STEPS_PER_SAGA + count(is_refused),
        // Those that never end are not counted.
        Work::Retrying => (sagas - count(is_failing)) * STEPS_PER_SAGA,
        _ => sagas * STEPS_PER_SAGA,
    }
}

/// Counts what the sagas left: every step and every undo exactly once.
pub(crate) async fn verify(url: &str, work: Work, sagas: u32) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    if work.is_hot() {
        let updates: i64 = sqlx::query_scalar("SELECT sum(amount)::bigint FROM hot").fetch_one(&mut conn).await?;
        let steps = i64::from(steps(work, 0..sagas));
        ensure!(updates == steps, "{updates} updates of the hot rows for {steps} steps");
        return Ok(conn.close().await?);
    }
    let number = |of: fn(u32) -> bool| (0..sagas).filter(|number| of(*number)).count();
    let (all, refused, failing) = (sagas as usize, number(is_refused), number(is_failing));
    // Whether an order that cannot be paid has its reservation by now depends on when it is tried.
    let expected: [(usize, usize); 5] = match work {
        Work::Undo => [(all, all), (all, all), (all - refused, all - refused), (refused, refused), (refused, refused)],
        Work::Retrying => {
            [(all - failing, all), (all - failing, all - failing), (all - failing, all - failing), (0, 0), (0, 0)]
        }
        _ => [(all, all), (all, all), (all, all), (0, 0), (0, 0)],
    };
    for (table, (least, most)) in TABLES.into_iter().zip(expected) {
        let (rows, orders) = count(&mut conn, table).await?;
        let counted = usize::try_from(rows).unwrap_or_default();
        ensure!(
            rows == orders && (least..=most).contains(&counted),
            "{table} has {rows} rows of {orders} orders after {sagas} sagas of {work}; {least} to {most} were to be there"
        );
    }
    Ok(conn.close().await?)
}

/// Counts the rows of sagas, some of which have not ended: no step is there twice or before its time, and all are at least `steps`.
pub(crate) async fn verify_some(url: &str, steps: u32) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    let mut counted = Vec::new();
    for table in TABLES.into_iter().take(STEPS_PER_SAGA as usize) {
        counted.push(count(&mut conn, table).await?);
    }
    check_some(&counted, steps)?;
    Ok(conn.close().await?)
}

/// The rows and the orders of each step's table, in the order of the steps.
fn check_some(counted: &[(i64, i64)], steps: u32) -> Result<()> {
    for (table, (rows, orders)) in TABLES.iter().zip(counted) {
        ensure!(rows == orders, "{table} has {rows} rows of {orders} orders");
    }
    let is_in_order = counted.is_sorted_by(|(before, _), (after, _)| before >= after);
    ensure!(is_in_order, "a step has more rows than the one before it: {counted:?}");
    let rows: i64 = counted.iter().map(|(rows, _)| rows).sum();
    ensure!(rows >= i64::from(steps), "{steps} steps were reported, and there are {rows} rows");
    Ok(())
}

/// How many rows a table has, and of how many orders.
async fn count(conn: &mut PgConnection, table: &str) -> Result<(i64, i64)> {
    let sql = format!("SELECT count(*), count(DISTINCT order_id) FROM {table}");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(conn).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sagas_of_which_some_have_not_ended_do_no_step_twice() {
        assert!(check_some(&[(5, 5), (4, 4), (3, 3)], 12).is_ok());
        assert!(check_some(&[(5, 5), (4, 3), (3, 3)], 12).is_err(), "a step was done twice");
        assert!(check_some(&[(5, 5), (3, 3), (4, 4)], 12).is_err(), "a step was done before its time");
        assert!(check_some(&[(5, 5), (4, 4), (3, 3)], 13).is_err(), "a step is missing");
    }

    #[test]
    fn the_hot_rows_are_equally_likely() {
        let mut hits = vec![0_u32; HOT_ROWS as usize];
        for order in 0..7_700 {
            for step in 0..3 {
                hits[usize::try_from(hot_row(order, step)).expect("a row's number is small")] += 1;
            }
        }
        assert!(hits.iter().all(|hits| (200..400).contains(hits)), "{hits:?}");
    }

    #[test]
    fn a_fifth_is_refused_and_a_twentieth_fails() {
        assert_eq!(steps(Work::Undo, 0..1_000), 3_200);
        assert_eq!(steps(Work::Retrying, 0..1_000), 2_850);
        assert_eq!(steps(Work::Orders, 0..1_000), 3_000);
    }
}
