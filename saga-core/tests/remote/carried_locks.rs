//! The semantic locks that a command carries to the host of its step.

use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::DeadLetterFilter;
use saga_core::{
    Entity, Locked, Outcome, Output, Runtime, Saga, SemanticLock, Service, Signal, State, StepError, StepPhase, Wait,
    saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

struct Credit;

impl SemanticLock for Credit {
    const NAME: &'static str = "credit";
}

struct Stock;

impl SemanticLock for Stock {
    const NAME: &'static str = "stock";
}

/// What the host saw of the locks.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, what: &str, credit: Option<&Locked<Credit>>, order: u64) {
        let token = credit.and_then(|credit| credit.token_of(&account(order)));
        self.0.lock().unwrap().push(format!("{what} {token:?}"));
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", compensated)]
    pub async fn charge(order: u64) -> Result<u64, StepError>;

    #[saga_step(service = "payments", no_compensation)]
    pub async fn send_receipt(order: u64) -> Result<(), StepError>;
}

#[saga_step(implements = contracts::charge, compensate = refund)]
async fn charge(
    order: u64,
    credit: Locked<Credit>,
    stock: Option<Locked<Stock>>,
    State(seen): State<Seen>,
) -> Result<u64, StepError> {
    assert!(stock.is_none(), "the saga has no such lock");
    seen.note("charge", Some(&credit), order);
    credit.token_of(&account(order)).ok_or_else(|| StepError::reject("another account is locked"))
}

#[saga_compensation]
async fn refund(
    order: u64,
    _charged: Option<u64>,
    credit: Locked<Credit>,
    State(seen): State<Seen>,
) -> Result<(), StepError> {
    seen.note("refund", Some(&credit), order);
    Ok(())
}

#[saga_step(implements = contracts::send_receipt)]
async fn send_receipt(order: u64, credit: Option<Locked<Credit>>, State(seen): State<Seen>) -> Result<(), StepError> {
    seen.note("receipt", credit.as_ref(), order);
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Go;

impl Signal for Go {
    const NAME: &'static str = "go";
}

/// Orders above 99 are refused.
#[saga_step]
async fn confirm(
    order: u64,
    credit: Locked<Credit>,
    Output(charged): Output<contracts::charge>,
) -> Result<u64, StepError> {
    assert_eq!(credit.token_of(&account(order)), Some(charged), "the host had another token");
    if order > 99 { Err(StepError::reject("too much")) } else { Ok(charged) }
}

fn account(order: u64) -> Entity {
    Entity::new("account", order % 10)
}

struct World {
    orders: Runtime<MemoryStore>,
    payments: Runtime<MemoryStore>,
    seen: Seen,
    transport: MemoryTransport,
}

async fn world(saga: &Saga<MemoryStore, u64>) -> World {
    let (transport, seen) = (MemoryTransport::new(), Seen::default());
    let orders = orders(saga, MemoryStore::new(), transport.clone()).await;
    let service = Service::named("payments").host::<charge>().host::<send_receipt>().build().unwrap();
    let payments = Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&service);
    let payments = payments.state(seen.clone()).start().await.unwrap();
    World { orders, payments, seen, transport }
}

async fn orders(saga: &Saga<MemoryStore, u64>, store: MemoryStore, transport: MemoryTransport) -> Runtime<MemoryStore> {
    let runtime = Runtime::builder(store).transport(transport).saga(saga);
    runtime.settings(|settings| settings.service = Some("orders".to_owned())).start().await.unwrap()
}

impl World {
    async fn outcome(&self, saga: &Saga<MemoryStore, u64>, order: u64) -> Outcome {
        self.orders.start(saga, format!("o-{order}"), order).await.unwrap().outcome().await.unwrap()
    }

    async fn why_stuck(&self, key: &str) -> String {
        loop {
            let status = self.orders.status(key).await.unwrap().unwrap();
            if let Some(outcome @ Outcome::Stuck { .. }) = status.summary.outcome {
                return outcome.to_string();
            }
            tokio::task::yield_now().await;
        }
    }

    async fn ends(self) -> Vec<String> {
        self.orders.shutdown().await;
        self.payments.shutdown().await;
        self.seen.all()
    }
}

#[tokio::test]
async fn a_step_and_its_undo_elsewhere_have_the_tokens_of_their_saga() {
    let saga = Saga::named("order").input::<u64>().semantic_lock::<Credit, _>(|order: &u64| account(*order));
    let saga = saga.step::<contracts::charge>().step::<confirm>().build().unwrap();
    let world = world(&saga).await;
    for order in [7, 17] {
        assert!(matches!(world.outcome(&saga, order).await, Outcome::Completed { .. }));
    }
    let refused = world.outcome(&saga, 107).await;
    assert!(refused.to_string().contains("too much"), "{refused}");
    let seen = world.ends().await;
    let tokens: Vec<&str> = seen.iter().filter_map(|seen| seen.strip_prefix("charge ")).collect();
    assert_eq!(tokens.len(), 3, "{seen:?}");
    assert!(tokens.is_sorted_by(|one, next| one < next), "the token of an account grows: {seen:?}");
    assert_eq!(seen.last().unwrap(), &format!("refund {}", tokens[2]), "the undo has the token of its step");
}

/// The process that sends the command is not the one that took the lock.
#[tokio::test]
async fn a_process_that_takes_a_saga_over_sends_its_locks() {
    let saga = Saga::named("order").input::<u64>().semantic_lock::<Credit, _>(|order: &u64| account(*order));
    let saga = saga.wait_for::<Go>(Wait::without_limit()).step::<contracts::charge>().step::<confirm>();
    let saga = saga.build().unwrap();
    let mut world = world(&saga).await;
    world.orders.start(&saga, "o-7", 7).await.unwrap();
    while world.orders.status("o-7").await.unwrap().unwrap().steps[1].phase != StepPhase::Started {
        tokio::task::yield_now().await;
    }
    let store = MemoryStore::clone(world.orders.store());
    world.orders.shutdown().await;
    world.orders = orders(&saga, store, world.transport.clone()).await;
    world.orders.signal("o-7", "go", &Go).await.unwrap();
    let outcome = world.orders.attach("o-7").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(world.ends().await.len(), 1);
}

#[tokio::test]
async fn a_lock_that_was_released_is_not_carried() {
    let saga = Saga::named("order")
        .input::<u64>()
        .semantic_lock::<Credit, _>(|order: &u64| account(*order))
        .step::<contracts::charge>();
    let saga = saga.step::<confirm>().pivot().release::<Credit>().step::<contracts::send_receipt>().build().unwrap();
    let world = world(&saga).await;
    assert!(matches!(world.outcome(&saga, 7).await, Outcome::Completed { .. }));
    assert_eq!(world.ends().await.last().unwrap(), "receipt None");
}

/// A host does not run a step without the lock that it takes, and says what is missing.
#[tokio::test]
async fn a_command_without_the_lock_is_refused() {
    let saga = Saga::named("order").input::<u64>().step::<contracts::charge>().build().unwrap();
    let world = world(&saga).await;
    world.orders.start(&saga, "o-7", 7).await.unwrap();
    let stuck = world.why_stuck("o-7").await;
    assert!(stuck.contains("`charge` takes the semantic lock `credit`, and the command carries none"), "{stuck}");
    let letters = world.payments.admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap();
    assert_eq!(letters.len(), 1, "the command is kept for an operator");
    assert!(world.ends().await.is_empty(), "the step was called");
}

/// A lock with as many entities as there can be, whose ids are as long as they can be, beside the account of the order.
fn all_entities(kind: &'static str) -> impl Fn(&u64) -> Vec<Entity> + Send + Sync + 'static {
    move |order| {
        let others = (1..64).map(|number| Entity::new(kind, format!("{number:0200}")));
        std::iter::once(account(*order)).chain(others).collect()
    }
}

/// The entities of a lock have 16 KiB in a command, nearly as many as a lock can have.
#[tokio::test]
async fn locks_of_nearly_16_kib_are_carried() {
    let saga = Saga::named("order").input::<u64>().semantic_lock::<Credit, _>(all_entities("account"));
    let saga = saga.step::<contracts::charge>().step::<confirm>().build().unwrap();
    let world = world(&saga).await;
    let outcome = world.outcome(&saga, 7).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(world.ends().await.len(), 1);
}

/// Longer ones are left out. A host whose step can do without them runs it, and another one says why they are missing.
#[tokio::test]
async fn locks_of_more_than_16_kib_are_left_out() {
    let kind = "a-kind-that-is-as-long-as-a-kind-may-be-";
    let saga = Saga::named("order").input::<u64>().semantic_lock::<Credit, _>(all_entities(kind));
    let saga = saga.step::<contracts::send_receipt>().step::<contracts::charge>().step::<confirm>().build().unwrap();
    let world = world(&saga).await;
    world.orders.start(&saga, "o-7", 7).await.unwrap();
    let stuck = world.why_stuck("o-7").await;
    let why = "takes the semantic lock `credit`, and the command carries none, since those of its saga have more than 16384 bytes";
    assert!(stuck.contains(why) && stuck.contains("lock fewer entities"), "{stuck}");
    assert_eq!(world.ends().await, ["receipt None"]);
}
