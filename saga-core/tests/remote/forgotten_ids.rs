//! The ids of received messages are forgotten as fast as they come.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::{
    Changes, Condition, Headers, Inbox as _, Message, MessageId, MessageKind, NewReceived, Records as _, Timestamp,
    WorkId, WorkRef,
};
use saga_core::{Runtime, Service, StepError, saga_step};
use uuid::Uuid;

/// More than twice as many as are forgotten by one call.
const IDS: i64 = 25_000;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "shop", no_compensation)]
    pub async fn wave(number: u32) -> Result<(), StepError>;
}

#[saga_step(implements = contracts::wave, no_compensation)]
async fn wave(_number: u32) -> Result<(), StepError> {
    Ok(())
}

fn received() -> Vec<NewReceived> {
    let message = |number: i64| Message {
        id: MessageId(Uuid::from_u128(u128::from(number.unsigned_abs()))),
        kind: MessageKind::Event,
        tenant: Tenant::default(),
        topic: "service:shop".to_owned(),
        key: "k".to_owned(),
        event_type: "e".to_owned(),
        payload: Vec::new(),
        committed_at: Timestamp(0),
        headers: Headers::default(),
    };
    (1..=IDS).map(|number| NewReceived { work: WorkId(number), message: message(number), lease: None }).collect()
}

#[tokio::test(start_paused = true)]
async fn all_that_is_old_is_forgotten_however_much_it_is() {
    let store = MemoryStore::new();
    assert!(store.receive(received()).await.unwrap().new.iter().all(|is_new| *is_new));
    let handled = |id| (WorkRef { id: WorkId(id), epoch: 1 }, Condition::Held);
    let handled = Changes { finished: (1..=IDS).map(handled).collect(), ..Changes::default() };
    store.record(vec![handled]).await.unwrap()[0].clone().unwrap();
    tokio::time::sleep(Duration::from_hours(31 * 24)).await;
    let service = Service::named("shop").host::<wave>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).service(&service).transport(MemoryTransport::new());
    let runtime = runtime.start().await.unwrap();
    // They are looked for every ten minutes.
    tokio::time::sleep(Duration::from_mins(90)).await;
    runtime.shutdown().await;
    let again = store.receive(received()).await.unwrap();
    assert_eq!(again.new.iter().filter(|is_new| !**is_new).count(), 0, "ids that are kept for ever");
}
