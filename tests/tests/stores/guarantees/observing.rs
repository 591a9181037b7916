//! What an observer sees of a saga: spans, events, the trace context.

use std::io::Write;
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Event, Runtime, Saga, State, StepContext, StepError, SubSaga, Tenant, saga_compensation, saga_step};
use saga_tests::{Mail, eventually, quick};
use serde::{Deserialize, Serialize};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use crate::guarantees::{is_compensated, is_completed};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The log as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Its lines with this text.
    fn lines(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[derive(Serialize, Deserialize)]
struct Packed;

impl Event for Packed {
    const NAME: &'static str = "packed";
}

/// What the steps read in their contexts.
type Seen = Arc<Mutex<Vec<(String, String, Option<String>)>>>;

fn see(seen: &Seen, ctx: &StepContext) {
    let traceparent = ctx.traceparent().map(str::to_owned);
    seen.lock().unwrap().push((ctx.saga().to_owned(), ctx.tenant().to_string(), traceparent));
}

#[saga_step(compensate = unpack)]
async fn pack(tx: &mut MemoryConn, ctx: &StepContext, n: u32, State(seen): State<Seen>) -> Result<(), StepError> {
    tracing::info!("packing");
    see(&seen, ctx);
    ctx.emit(&Packed)?;
    tx.add("packed", i64::from(n))?;
    Ok(())
}

#[saga_compensation]
async fn unpack(tx: &mut MemoryConn, n: u32) -> Result<(), StepError> {
    tracing::info!("unpacking");
    tx.add("packed", -i64::from(n))?;
    Ok(())
}

#[saga_step(no_compensation, retry(base = "1ms"))]
async fn call(ctx: &StepContext, n: u32, State(seen): State<Seen>) -> Result<(), StepError> {
    tracing::info!("calling");
    see(&seen, ctx);
    if ctx.attempt() == 1 {
        return Err(StepError::not_sent("busy"));
    }
    if n > 1 { Err(StepError::reject("too many")) } else { Ok(()) }
}

struct Delivery;

impl SubSaga for Delivery {
    const NAME: &'static str = "delivery";
    type Input = u32;
    type Output = ();
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_what_becomes_of_a_saga() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(Level::DEBUG).with_ansi(false).with_writer(log.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let mail = Mail::new();
    let seen = Seen::default();
    let delivery: Saga<MemoryStore, u32> = Saga::named("deliver").input().step::<call>().build().unwrap();
    let order: Saga<MemoryStore, u32> =
        Saga::named("order").input().step::<pack>().sub_saga::<Delivery>(&delivery).build().unwrap();
    let builder = Runtime::builder(MemoryStore::new()).saga(&order).saga(&delivery).state(seen.clone());
    let runtime = builder.transport(mail.clone()).settings(quick).start().await.unwrap();
    let acme = runtime.tenant(Tenant::new("acme").unwrap());

    let completed = acme.start(&order, "o-1", 1).traceparent(TRACE).await.unwrap();
    assert!(is_completed(&completed.outcome().await.unwrap()));
    let compensated = acme.start(&order, "o-2", 2).traceparent("none").await.unwrap();
    assert!(is_compensated(&compensated.outcome().await.unwrap()));

    // What a step logs carries the span of its call.
    for (what, span) in [
        ("packing", "step{tenant=\"acme\" saga=o-1 step=pack attempt=1}"),
        ("calling", "step{tenant=\"acme\" saga=o-1>delivery step=call attempt=2}"),
        ("unpacking", "step{tenant=\"acme\" saga=o-2 step=pack:undo attempt=1}"),
    ] {
        assert!(log.lines(what).iter().any(|line| line.contains(span)), "{what}: {:?}", log.lines(what));
    }
    // The events of a saga's life.
    let of = |event: &str| log.lines(event).iter().filter(|line| line.contains("saga=o-1 ")).count();
    assert_eq!((of("saga started"), of("saga completed"), of("saga compensating")), (1, 1, 0));
    let of = |event: &str| log.lines(event).iter().filter(|line| line.contains("saga=o-2 ")).count();
    assert_eq!((of("saga started"), of("saga completed")), (1, 0));
    assert_eq!((of("saga compensating"), of("saga compensated")), (1, 1));
    let line = log.lines("saga compensating").into_iter().find(|line| line.contains("saga=o-2 ")).unwrap();
    assert!(line.contains("reason=\"too many\""), "{line}");

    // The trace context reaches each step and each message, and a malformed one is left out.
    let acme = |saga: &str, trace: Option<&str>| (saga.to_owned(), "acme".to_owned(), trace.map(str::to_owned));
    let traced = [acme("order", Some(TRACE)), acme("deliver", Some(TRACE)), acme("deliver", Some(TRACE))];
    assert_eq!(seen.lock().unwrap()[..3], traced);
    let untraced = [acme("order", None), acme("deliver", None), acme("deliver", None)];
    assert_eq!(seen.lock().unwrap()[3..], untraced);
    let sent = eventually("both events", async || (mail.accepted().len() == 2).then(|| mail.accepted())).await;
    let trace_of = |key: &str| sent.iter().find(|event| event.key == key).unwrap().headers.traceparent.clone();
    assert_eq!((trace_of("o-1"), trace_of("o-2")), (Some(TRACE.to_owned()), None));
    runtime.shutdown().await;
}
