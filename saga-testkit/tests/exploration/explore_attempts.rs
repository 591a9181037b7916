//! Crash exploration of a saga whose second step has one attempt: an error makes the saga compensate.

use std::sync::Arc;

use async_trait::async_trait;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{DeadLetterId, DeadLetterReason, DeadLetters as _, NewDeadLetter};
use saga_core::{Migration, Saga, StepError, Tenant, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, explore};

#[saga_step(compensate = put_back)]
async fn take_out(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("stock", -count)?;
    Ok(())
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("stock", count)?;
    Ok(())
}

#[saga_step(compensate = unsell, retry(attempts = 1), on_exhausted = "compensate")]
async fn sell(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("sold", count)?;
    Ok(())
}

#[saga_compensation]
async fn unsell(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("sold", -count)?;
    Ok(())
}

/// Only the second version does this.
#[saga_step(no_compensation)]
async fn note(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.log(format!("{count}"));
    Ok(())
}

struct Sale {
    /// Whether a message cannot be handled.
    has_dead_letter: bool,
}

#[async_trait]
impl Explore for Sale {
    type Store = MemoryStore;
    type Input = i64;
    type World = Arc<MemoryStore>;

    fn saga(&self) -> Saga<MemoryStore, i64> {
        let saga = Saga::named("sale").input().step::<take_out>().step::<sell>().build();
        saga.unwrap_or_else(|error| panic!("{error}"))
    }

    fn input(&self) -> i64 {
        7
    }

    async fn fresh(&self, time: &VirtualTime) -> Arc<MemoryStore> {
        let store = MemoryStore::with_environment(time.environment());
        if self.has_dead_letter {
            store.add_dead_letters(vec![letter()]).await.expect("the memory has room");
        }
        Arc::new(store)
    }

    fn store(&self, world: &Arc<MemoryStore>) -> Arc<MemoryStore> {
        Arc::clone(world)
    }

    fn migration(&self) -> Option<Migration<MemoryStore>> {
        let second = Saga::named("sale").input::<i64>().version(2).step::<note>().step::<take_out>().step::<sell>();
        let second = second.build().expect("sale is a valid saga");
        let migration = Migration::between(&self.saga(), &second).assume_done::<note>().build();
        Some(migration.expect("the versions fit together"))
    }

    async fn audit(&self, world: &Arc<MemoryStore>, ended: &Ended) -> Result<(), String> {
        let left = world.read(|table| (table.counter("stock"), table.counter("sold")));
        let expected = if *ended == Ended::Completed { (-7, 7) } else { (0, 0) };
        if left == expected { Ok(()) } else { Err(format!("{ended:?}, and {left:?} instead of {expected:?}")) }
    }
}

fn letter() -> NewDeadLetter {
    NewDeadLetter {
        id: DeadLetterId(1),
        fingerprint: [1; 32],
        tenant: Tenant::default(),
        reason: DeadLetterReason::Undecodable,
        detail: "the field `cents` is missing".to_owned(),
        source: "payments".to_owned(),
        headers: Vec::new(),
        payload: Vec::new(),
        message: None,
        attempts: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_with_one_attempt_may_fail_amid_crashes() {
    let report = explore(Sale { has_dead_letter: false }).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    assert!(report.completed() > 0 && report.compensated() > 0 && report.unreached() == 0, "{report}");
    assert!(report.moves().is_some_and(|moves| moves.moved() > 0), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_that_is_left_is_found() {
    let failures = explore(Sale { has_dead_letter: true }).await.expect_err("a message could not be handled");
    assert!(failures.broken.iter().any(|broken| broken.problem.contains("a dead letter is left")), "{failures}");
}
