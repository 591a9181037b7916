//! A message whose process ended while it had it.

use std::sync::Arc;
use std::time::Duration;

use saga_core::env::TokioEnvironment;
use saga_core::key::Tenant;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::{
    DeadLetterFilter, Headers, Inbox as _, Lease, Members as _, Message, MessageId, MessageKind, NewReceived,
    Timestamp, Work as _, WorkId,
};
use saga_core::{Runtime, Saga, Service, StepError, saga_step};
use uuid::Uuid;

#[saga_step(no_compensation)]
async fn greet(_number: u32) -> Result<(), StepError> {
    Ok(())
}

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "shop", no_compensation)]
    pub async fn bow(number: u32) -> Result<(), StepError>;
}

#[saga_step(implements = contracts::bow, no_compensation)]
async fn bow(_number: u32) -> Result<(), StepError> {
    Ok(())
}

fn reply_to(saga: &str) -> Message {
    let correlation = Some(MessageId(Uuid::from_u128(1)));
    Message {
        id: MessageId(Uuid::from_u128(2)),
        kind: MessageKind::Reply,
        tenant: Tenant::default(),
        topic: "service:shop".to_owned(),
        key: saga.to_owned(),
        event_type: String::new(),
        payload: Vec::new(),
        committed_at: Timestamp(0),
        headers: Headers {
            saga_key: Some(saga.to_owned()),
            step: Some("greet".to_owned()),
            correlation,
            ..Headers::default()
        },
    }
}

/// A deployment may take longer than the attempts of a message: an earlier version of a program leaves a reply to the processes that know
/// the saga, however often it claims the reply.
#[tokio::test(start_paused = true)]
async fn one_vanished_process_does_not_use_up_the_attempts_of_a_message() {
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    let errand = Saga::named("errand").input::<u32>().step::<greet>().build().unwrap();
    let newer = Runtime::builder(store.clone()).saga(&errand).start().await.unwrap();
    newer.start(&errand, "e-1", 1).await.unwrap().outcome().await.unwrap();
    newer.shutdown().await;
    let second = Duration::from_secs(1);
    let vanished = store.join(second).await.unwrap().member;
    let lease = Some(Lease { owner: vanished, ttl: second });
    let received = vec![NewReceived { work: WorkId(1_000_000), message: reply_to("e-1"), lease }];
    assert_eq!(store.receive(received).await.unwrap().new, [true]);

    let service = Service::named("shop").host::<bow>().build().unwrap();
    let older = Runtime::builder(store.clone()).service(&service).transport(MemoryTransport::new());
    let older = older.start().await.unwrap();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let letters = older.admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap();
    assert!(letters.is_empty(), "{letters:?}");
    assert_eq!(store.backlog().await.unwrap().0, 1, "the reply waits");
    older.shutdown().await;
}
