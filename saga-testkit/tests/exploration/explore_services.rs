//! Crash exploration of a saga whose steps another service does: the functions there are disturbed as well, and so are the
//! messages between them.

use std::sync::Arc;

use async_trait::async_trait;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Saga, Service, StepContext, StepError, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, explore};

const CENTS: i64 = 12;
const PARCELS: i64 = 2;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "bank", compensated)]
    pub async fn charge(cents: i64) -> Result<i64, StepError>;

    #[saga_step(service = "carrier", compensated)]
    pub async fn send_parcel(number: i64) -> Result<i64, StepError>;
}

#[saga_step(implements = contracts::charge, compensate = refund)]
async fn charge(conn: &mut MemoryConn, cents: i64) -> Result<i64, StepError> {
    conn.add("charged", cents)?;
    Ok(cents)
}

#[saga_compensation]
async fn refund(conn: &mut MemoryConn, _cents: i64, charged: i64) -> Result<(), StepError> {
    conn.add("charged", -charged)?;
    Ok(())
}

#[saga_step(implements = contracts::send_parcel, compensate = call_back)]
async fn send_parcel(conn: &mut MemoryConn, ctx: &StepContext, number: i64) -> Result<i64, StepError> {
    conn.put(ctx.key(), "sent")?;
    conn.add("sent", 1)?;
    Ok(number)
}

#[saga_compensation]
async fn call_back(conn: &mut MemoryConn, _number: i64) -> Result<(), StepError> {
    conn.add("sent", -1)?;
    Ok(())
}

/// The same by a carrier that calls only the first parcel back.
#[saga_step(implements = contracts::send_parcel, compensate = call_back_first)]
async fn send_carelessly(conn: &mut MemoryConn, number: i64) -> Result<i64, StepError> {
    conn.add("sent", 1)?;
    Ok(number)
}

#[saga_compensation]
async fn call_back_first(conn: &mut MemoryConn, number: i64, _sent: i64) -> Result<(), StepError> {
    conn.add("sent", if number == 1 { -1 } else { 0 })?;
    Ok(())
}

#[saga_step]
async fn confirm(conn: &mut MemoryConn, _cents: i64) -> Result<(), StepError> {
    conn.add("confirmed", 1)?;
    Ok(())
}

/// A payment, and parcels side by side, all done by others.
struct Order {
    is_careless: bool,
}

#[async_trait]
impl Explore for Order {
    type Store = MemoryStore;
    type Input = i64;
    type World = Arc<MemoryStore>;

    fn saga(&self) -> Saga<MemoryStore, i64> {
        let parcels = |_: &i64| (1..=PARCELS).collect::<Vec<i64>>();
        let saga = Saga::named("order").input::<i64>().step::<contracts::charge>();
        let saga = saga.for_each::<contracts::send_parcel, _>(2, parcels).step::<confirm>();
        saga.build().expect("order is a valid saga")
    }

    fn services(&self) -> Vec<Service<MemoryStore>> {
        let bank = Service::named("bank").host::<charge>().build().expect("a valid service");
        let carrier = Service::named("carrier");
        let carrier = if self.is_careless { carrier.host::<send_carelessly>() } else { carrier.host::<send_parcel>() };
        vec![bank, carrier.build().expect("a valid service")]
    }

    fn input(&self) -> i64 {
        CENTS
    }

    async fn fresh(&self, time: &VirtualTime) -> Arc<MemoryStore> {
        Arc::new(MemoryStore::with_environment(time.environment()))
    }

    fn store(&self, world: &Arc<MemoryStore>) -> Arc<MemoryStore> {
        Arc::clone(world)
    }

    async fn audit(&self, world: &Arc<MemoryStore>, ended: &Ended) -> Result<(), String> {
        let books = world.read(|table| ["charged", "sent", "confirmed"].map(|name| table.counter(name)));
        let expected = match ended {
            Ended::Completed => [CENTS, PARCELS, 1],
            Ended::Compensated => [0, 0, 0],
        };
        if books == expected { Ok(()) } else { Err(format!("{ended:?}, and {books:?} instead of {expected:?}")) }
    }
}

/// G5: whatever crashes or fails, here or there, all of it is done or nothing stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_what_other_services_do_survives_everything_with_its_saga() {
    let report = explore(Order { is_careless: false }).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in ["before charge", "behind charge:undo", "before send-parcel", "behind send-parcel:undo"] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_does_not_undo_an_item_is_found() {
    let failures = explore(Order { is_careless: true }).await.expect_err("parcels are left").to_string();
    println!("{failures}");
    assert!(failures.contains("Compensated, and [0, 1, 0] instead of [0, 0, 0]"), "{failures}");
}
