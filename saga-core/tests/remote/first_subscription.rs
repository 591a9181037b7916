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

/// The memory transport; each subscription takes so long.
#[derive(Clone)]
struct Slow {
    inner: MemoryTransport,
    takes: Duration,
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
        tokio::time::sleep(self.takes).await;
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

async fn start(takes: Duration) -> (Runtime<MemoryStore>, Slow) {
    let transport = Slow { inner: MemoryTransport::new(), takes, subscribed: Arc::default() };
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

#[tokio::test(start_paused = true)]
async fn the_services_of_a_process_subscribe_at_the_same_time() {
    let transport = Slow { inner: MemoryTransport::new(), takes: Duration::from_secs(25), subscribed: Arc::default() };
    let packing = Service::named("packing").host::<pack>().build().unwrap();
    let shipping = Service::named("shipping").host::<ship>().build().unwrap();
    let builder = Runtime::builder(MemoryStore::new()).transport(transport.clone());
    let builder = builder.service(&packing).service(&shipping);
    let began = Instant::now();
    let runtime = builder.start().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 25);
    assert_eq!(transport.subscribed.load(Ordering::Relaxed), 2);
    assert_eq!(runtime.health().transport, ComponentHealth::Healthy);
    runtime.shutdown().await;
}
