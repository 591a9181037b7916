//! A runtime has started when its services are subscribed, or when the transport does not let them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::ComponentHealth;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError};
use saga_core::{Runtime, Service, Settings, StepError, saga_step};
use tokio::time::Instant;

/// The memory transport; each subscription takes so long, or only that of one service.
#[derive(Clone)]
struct Slow {
    inner: MemoryTransport,
    takes: Duration,
    only: Option<&'static str>,
    subscribed: Arc<AtomicU32>,
}

#[async_trait]
impl Transport for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        if self.only.is_none_or(|service| subscription.name.ends_with(service)) {
            tokio::time::sleep(self.takes).await;
        }
        let incoming = self.inner.subscribe(subscription).await?;
        self.subscribed.fetch_add(1, Ordering::Relaxed);
        Ok(incoming)
    }
}

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "packing", no_compensation)]
    pub async fn pack(number: u32) -> Result<(), StepError>;

    #[saga_step(service = "shipping", no_compensation)]
    pub async fn ship(number: u32) -> Result<(), StepError>;
}

#[saga_step(implements = contracts::pack, no_compensation)]
async fn pack(_number: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(implements = contracts::ship, no_compensation)]
async fn ship(_number: u32) -> Result<(), StepError> {
    Ok(())
}

impl Slow {
    fn new(takes: Duration) -> Self {
        Self { inner: MemoryTransport::new(), takes, only: None, subscribed: Arc::default() }
    }
}

async fn start(takes: Duration) -> (Runtime<MemoryStore>, Slow) {
    let transport = Slow::new(takes);
    let service = |settings: &mut Settings| settings.service = Some("payments".to_owned());
    let builder = Runtime::builder(MemoryStore::new()).transport(transport.clone()).settings(service);
    (builder.start().await.unwrap(), transport)
}

/// A new consumer group of Kafka takes some seconds, and events that were published before are lost to it.
#[tokio::test(start_paused = true)]
async fn a_start_waits_for_a_slow_subscription() {
    let (runtime, transport) = start(Duration::from_secs(25)).await;
    assert_eq!(transport.subscribed.load(Ordering::Relaxed), 1);
    assert_eq!(runtime.health().transport, ComponentHealth::Healthy);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_subscription_the_transport_is_failing_until_there_is_one() {
    let began = Instant::now();
    let (runtime, transport) = start(Duration::from_secs(45)).await;
    assert_eq!(began.elapsed().as_secs(), 30);
    let health = runtime.health().transport;
    let ComponentHealth::Failing { last_error, .. } = health else { panic!("not subscribed, and {health:?}") };
    assert!(last_error.contains("no answer within 30s"), "{last_error}");

    while runtime.health().transport != ComponentHealth::Healthy {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(transport.subscribed.load(Ordering::Relaxed), 1);
    runtime.shutdown().await;
}

async fn start_two(transport: Slow) -> Runtime<MemoryStore> {
    let packing = Service::named("packing").host::<pack>().build().unwrap();
    let shipping = Service::named("shipping").host::<ship>().build().unwrap();
    let builder = Runtime::builder(MemoryStore::new()).transport(transport);
    builder.service(&packing).service(&shipping).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_services_of_a_process_subscribe_at_the_same_time() {
    let transport = Slow::new(Duration::from_secs(25));
    let began = Instant::now();
    let runtime = start_two(transport.clone()).await;
    assert_eq!(began.elapsed().as_secs(), 25);
    assert_eq!(transport.subscribed.load(Ordering::Relaxed), 2);
    assert_eq!(runtime.health().transport, ComponentHealth::Healthy);
    runtime.shutdown().await;
}

/// The subscription of the other service ended the failure, so the health was good while one service received nothing.
#[tokio::test(start_paused = true)]
async fn a_service_without_a_subscription_is_seen_beside_one_that_has_its_own() {
    for only in ["packing", "shipping"] {
        let transport = Slow { only: Some(only), ..Slow::new(Duration::from_secs(45)) };
        let runtime = start_two(transport.clone()).await;
        while transport.subscribed.load(Ordering::Relaxed) < 2 {
            let health = runtime.health().transport;
            assert!(matches!(health, ComponentHealth::Failing { .. }), "{only} is not subscribed, and {health:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(runtime.health().transport, ComponentHealth::Healthy);
        runtime.shutdown().await;
    }
}
