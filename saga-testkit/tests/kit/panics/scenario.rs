//! A little of everything that a runtime does, which all ends whatever panics once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use saga_core::engine::Health;
use saga_core::env::{BoxFuture, Environment, TokioEnvironment};
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{Sagas as _, Status, Store};
use saga_core::{Runtime, Saga, Service, StepContext, StepError, Tenant, saga_compensation, saga_step};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", no_compensation)]
    pub(crate) async fn charge_card(cents: u32) -> Result<String, StepError>;
}

#[saga_step(implements = contracts::charge_card)]
async fn charge_card(conn: &mut MemoryConn, ctx: &StepContext, cents: u32) -> Result<String, StepError> {
    conn.put(ctx.key(), "charged")?;
    Ok(format!("payment of {cents}"))
}

#[saga_step(compensate = uncall, timeout = "30s", retry(attempts = 20, base = "1ms"), on_exhausted = "compensate")]
async fn call(_ctx: &StepContext, seconds: u32) -> Result<u32, StepError> {
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    Ok(seconds)
}

#[saga_compensation(retry(attempts = 20, base = "1ms"))]
async fn uncall(_ctx: &StepContext, _seconds: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = unwrite, retry(attempts = 20, base = "1ms"), on_exhausted = "compensate")]
async fn write(conn: &mut MemoryConn, ctx: &StepContext, _seconds: u32) -> Result<(), StepError> {
    conn.put(ctx.key(), "written")?;
    Ok(())
}

#[saga_compensation(retry(attempts = 20, base = "1ms"))]
async fn unwrite(_conn: &mut MemoryConn, _seconds: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 20, base = "1ms"), on_exhausted = "compensate")]
async fn reject(_conn: &mut MemoryConn, _seconds: u32) -> Result<(), StepError> {
    Err(StepError::reject("sold out"))
}

struct Definitions<S: Store<Conn = MemoryConn>> {
    call: Saga<S, u32>,
    write: Saga<S, u32>,
    undo: Saga<S, u32>,
    sleep: Saga<S, u32>,
    remote: Saga<S, u32>,
}

impl<S: Store<Conn = MemoryConn>> Definitions<S> {
    fn new() -> Self {
        let named = |name| Saga::named(name).input::<u32>();
        Self {
            call: named("call").step::<call>().build().unwrap(),
            write: named("write").step::<write>().build().unwrap(),
            undo: named("turn-round").step::<call>().step::<write>().step::<reject>().build().unwrap(),
            sleep: named("sleep").sleep("nap", Duration::from_secs(2)).step::<write>().build().unwrap(),
            remote: named("remote").step::<contracts::charge_card>().build().unwrap(),
        }
    }
}

/// An environment whose `now` or `sleep` panics once, in a call that is told by its number.
pub(crate) struct Brittle {
    inner: TokioEnvironment,
    calls: AtomicU64,
    panics_in: u64,
}

impl Brittle {
    pub(crate) fn new(panics_in: u64) -> Arc<Self> {
        Arc::new(Self { inner: TokioEnvironment::current().unwrap(), calls: AtomicU64::new(0), panics_in })
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn call(&self) {
        assert_ne!(self.calls.fetch_add(1, Ordering::SeqCst), self.panics_in, "the clock is broken");
    }
}

impl Environment for Brittle {
    fn now(&self) -> Duration {
        self.call();
        self.inner.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.call();
        self.inner.sleep(duration)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.inner.spawn(task);
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}

/// What came of the scenario.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) took: Duration,
    pub(crate) health: Health,
}

async fn started<S>(
    store: &S,
    env: Arc<dyn Environment>,
    transport: &MemoryTransport,
    definitions: &Definitions<S>,
) -> Runtime<S>
where
    S: Store<Conn = MemoryConn> + Clone,
{
    let payments = Service::named("payments").host::<charge_card>().build().unwrap();
    let Definitions { call, write, undo, sleep, remote } = definitions;
    Runtime::builder(store.clone())
        .environment(env)
        .transport(transport.clone())
        .saga(call)
        .saga(write)
        .saga(undo)
        .saga(sleep)
        .saga(remote)
        .service(&payments)
        .settings(|settings| {
            settings.service = Some("orders".into());
            // An idle runtime calls for the time less often.
            settings.poll_interval = Duration::from_secs(1);
        })
        .start()
        .await
        .unwrap()
}

/// Runs it on `store`, which keeps its data in `inner`. A dead process has left a call and a transaction there.
pub(crate) async fn run<S>(store: &S, inner: &MemoryStore, env: Arc<dyn Environment>) -> Ran
where
    S: Store<Conn = MemoryConn> + Clone,
{
    let transport = MemoryTransport::new();
    let old = Definitions::<MemoryStore>::new();
    let own = Arc::new(TokioEnvironment::current().unwrap());
    let dead = started(inner, own, &transport, &old).await;
    dead.start(&old.call, "left-0", 5).await.unwrap();
    dead.start(&old.undo, "left-1", 5).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(dead);

    let definitions = Definitions::<S>::new();
    // A panic in the call of the user is the user's to catch.
    let runtime = loop {
        let (store, env, transport) = (store.clone(), Arc::clone(&env), transport.clone());
        let starting = async move { started(&store, env, &transport, &Definitions::new()).await };
        if let Ok(runtime) = tokio::spawn(starting).await {
            break runtime;
        }
    };
    let began = tokio::time::Instant::now();
    let Definitions { call, write, undo, sleep, remote } = &definitions;
    for (key, saga) in [("o-0", call), ("o-1", write), ("o-2", undo), ("o-3", sleep), ("o-4", remote), ("o-5", write)] {
        loop {
            let (runtime, saga) = (runtime.clone(), saga.clone());
            if matches!(tokio::spawn(async move { runtime.start(&saga, key, 1).await }).await, Ok(Ok(_))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let count = async |status| {
        let all = inner.count(&Tenant::default()).await.unwrap();
        all.into_iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| count)
    };
    while (count(Status::Completed).await, count(Status::Compensated).await) != (6 + 1, 2) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(
            began.elapsed() < Duration::from_mins(10),
            "{:?}: {:?}",
            inner.count(&Tenant::default()).await,
            runtime.health()
        );
    }
    let took = began.elapsed();
    let health = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.health()));
    let ran = Ran { took, health: health.unwrap_or_else(|_| runtime.health()) };
    // So is a panic in a shutdown, which is called again.
    while tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.shutdown().await }
    })
    .await
    .is_err()
    {}
    ran
}
