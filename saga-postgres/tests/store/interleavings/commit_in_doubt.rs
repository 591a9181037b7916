//! A commit in doubt while another replica claims: absence is proved only by a write that would conflict.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{Claim, ClaimRequest, Records as _, Work as _};
use saga_postgres::PostgresStore;
use saga_postgres::fault_injection::Mutant;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::support::{Body, Notes as _, Place, begun, definition, member};

/// Makes every commit of a note wait until this lock is free.
const WAITS_AT_COMMIT: &str = "CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
     PERFORM pg_advisory_xact_lock_shared(hashtext(TG_TABLE_SCHEMA)); RETURN NULL; END $$; \
     CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED \
     FOR EACH ROW EXECUTE FUNCTION wait_at_commit()";

/// Waits until so many sessions wait for a lock of this kind.
async fn waiting(conn: &mut PgConnection, kind: &str, place: &Place) {
    let sql = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid \
         WHERE NOT l.granted AND l.locktype = $1 AND a.query LIKE '%' || $2 || '%'";
    let query = if kind == "advisory" { "COMMIT" } else { &place.schema };
    while sqlx::query_scalar::<_, i64>(sql).bind(kind).bind(query).fetch_one(&mut *conn).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
}

/// A commit that takes its time, and what another process is told that gives its row back meanwhile.
struct InDoubt {
    gate: PgConnection,
    claim: Claim,
    committing: tokio::task::JoinHandle<()>,
}

async fn in_doubt(place: &Place, one: &PostgresStore) -> InDoubt {
    let mut gate = place.connection().await;
    gate.execute(sqlx::raw_sql(WAITS_AT_COMMIT)).await.unwrap();
    gate.execute("SELECT pg_advisory_lock(hashtext(current_schema()))").await.unwrap();
    let claim = begun(one, "k-1").await;
    let body = Body::new(std::slice::from_ref(&claim)).note("one");
    let one = one.clone();
    let committing = tokio::spawn(async move { body.transact(&one).await.unwrap() });
    waiting(&mut gate, "advisory", place).await;
    InDoubt { gate, claim, committing }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giving_back_waits_for_the_commit_in_doubt_and_learns_the_truth() {
    let place = Place::new().await;
    let (one, other) = (place.open().await, place.open().await);
    let InDoubt { mut gate, claim, committing } = in_doubt(&place, &one).await;
    // The server commits and has not answered. Reading finds nothing, and proves nothing.
    assert_eq!(other.record_of(&Tenant::default(), &claim.key, &claim.step).await.unwrap(), None);
    let lease = member(&other, Duration::from_mins(1)).await;
    let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
    assert!(other.claim(request).await.unwrap().work.is_empty(), "the row is nobody's until the commit has ended");
    // Taking the row under its next epoch waits for the commit.
    let truth = tokio::spawn({
        let (other, work) = (other.clone(), claim.work);
        async move { other.release_work(&[work]).await.unwrap() }
    });
    waiting(&mut gate, "transactionid", &place).await;
    assert!(!truth.is_finished());
    gate.execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    assert_eq!(truth.await.unwrap(), [false], "the commit took place, so that nothing was freed");
    committing.await.unwrap();
    assert_eq!(place.notes().await, ["one"]);
    gate.close().await.unwrap();
    one.close().await;
    other.close().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_write_that_conflicts_what_was_committed_counts_as_undone() {
    let place = Place::new().await;
    let one = place.open().await;
    let other = PostgresStore::connect_with(place.options().mutant(Mutant::ReadsEpochWithoutWriting)).await.unwrap();
    let InDoubt { mut gate, claim, committing } = in_doubt(&place, &one).await;
    let guess = other.release_work(&[claim.work]).await.unwrap();
    assert_eq!(guess, [true], "the step is taken for one that certainly did not commit");
    gate.execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    committing.await.unwrap();
    assert_eq!(place.notes().await, ["one"], "and it did");
    gate.close().await.unwrap();
    one.close().await;
    other.close().await;
    place.remove().await;
}
