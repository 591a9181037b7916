//! A hold lasts as long as the work under it, in virtual time.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use saga_reservations::{
    MemoryReservations, Operation, Reason, Reservation, ReservationKey, Reservations, ReservationsClient,
    ReservationsError, Reserve, Resource, ResourceName, State,
};

/// Reservations that do not answer when the test says so.
#[derive(Clone)]
struct Unreachable {
    inner: MemoryReservations,
    is_unreachable: Arc<AtomicBool>,
}

#[async_trait]
impl Reservations for Unreachable {
    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        if self.is_unreachable.load(Ordering::SeqCst) {
            return Err(ReservationsError::Unavailable { operation: "extend", source: "no route".into() });
        }
        self.inner.perform(operation).await
    }

    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        self.inner.find(key).await
    }

    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError> {
        self.inner.set_capacity(resource, capacity).await
    }

    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        self.inner.resource(name).await
    }
}

fn signup() -> Reserve {
    Reserve::unique("signup", "ada").key("session").ttl_secs(30)
}

async fn work(seconds: u64) -> &'static str {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    "done"
}

#[tokio::test(start_paused = true)]
async fn a_hold_lasts_as_long_as_the_work_under_it() {
    let client = ReservationsClient::new(MemoryReservations::current().unwrap());
    let held = client.reserve(signup()).await.unwrap();
    assert_eq!(held.keep_while(work(600)).await.unwrap(), "done");
    assert_eq!(held.confirm().await.unwrap().state, State::Confirmed);
}

#[tokio::test(start_paused = true)]
async fn without_a_heartbeat_it_ends() {
    let client = ReservationsClient::new(MemoryReservations::current().unwrap());
    let held = client.reserve(signup()).await.unwrap();
    work(600).await;
    assert_eq!(held.confirm().await.unwrap_err().refusal().unwrap().reason(), Reason::Expired);
    let lost = held.keep_while(work(600)).await.unwrap_err();
    assert!(lost.to_string().contains("the hold session is lost"), "{lost}");
}

/// A repeated request finds a hold that is older than the client knows.
#[tokio::test(start_paused = true)]
async fn an_old_hold_is_extended_at_once() {
    let client = ReservationsClient::new(MemoryReservations::current().unwrap());
    client.reserve(signup()).await.unwrap();
    work(25).await;
    let held = client.reserve(signup()).await.unwrap();
    assert_eq!(held.keep_while(work(600)).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_when_its_hold_is_released_or_cannot_be_extended() {
    let is_unreachable = Arc::new(AtomicBool::new(false));
    let inner = MemoryReservations::current().unwrap();
    let client = ReservationsClient::new(Unreachable { inner, is_unreachable: Arc::clone(&is_unreachable) });
    let held = client.reserve(signup()).await.unwrap();
    let began = tokio::time::Instant::now();
    // It comes back in time.
    let back = async {
        is_unreachable.store(true, Ordering::SeqCst);
        work(15).await;
        is_unreachable.store(false, Ordering::SeqCst);
        work(100).await
    };
    assert_eq!(held.keep_while(back).await.unwrap(), "done");
    is_unreachable.store(true, Ordering::SeqCst);
    let lost = held.keep_while(work(600)).await.unwrap_err();
    assert!(lost.source().unwrap().to_string().contains("do not answer"), "{lost:?}");
    // No later than the hold ends at the server.
    assert!(began.elapsed() <= Duration::from_secs(115 + 30 + 10), "{:?}", began.elapsed());

    is_unreachable.store(false, Ordering::SeqCst);
    let held = client.reserve(Reserve::unique("signup", "ben").key("other").ttl_secs(30)).await.unwrap();
    let released = async {
        work(60).await;
        held.release().await.unwrap();
        work(600).await
    };
    let lost = held.keep_while(released).await.unwrap_err();
    assert!(lost.source().unwrap().to_string().contains("was released"), "{lost:?}");
}
