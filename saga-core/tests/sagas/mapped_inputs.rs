//! What the undo of a step is given whose input a mapping made, when another process decides about it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::machine::{SagaState, StepPhase};
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{
    Changes, Ids, NewRecord, NewSaga, NewWork, RecordedOutcome, Records, SagaId, Sagas, Status, StepId, WorkId,
    WorkKind,
};
use saga_core::transport::{Incoming, Message, MessageKind, Subscription, Transport, TransportError};
use saga_core::{
    Key, Migration, Outcome, Output, Runtime, Saga, Service, Settings, State, StepError, Tenant, saga_compensation,
    saga_step,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The input of the sagas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    customer: String,
    cents: u64,
}

/// What a mapping takes from an order for another service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Charge {
    cents: u64,
}

mod contracts {
    use saga_core::{StepError, saga_step};

    use super::Charge;

    #[saga_step(service = "payments", compensated)]
    pub(crate) async fn charge(charge: Charge) -> Result<u64, StepError>;

    #[saga_step(service = "payments", compensated)]
    pub(crate) async fn insure(charge: Charge) -> Result<u64, StepError>;
}

/// Lets the host answer while it is open.
#[derive(Clone)]
struct Gate(watch::Sender<bool>);

impl Gate {
    async fn pass(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

#[saga_step(implements = contracts::charge, compensate = refund)]
async fn charge(_tx: &mut MemoryConn, charge: Charge, State(gate): State<Gate>) -> Result<u64, StepError> {
    gate.pass().await;
    Ok(charge.cents)
}

#[saga_compensation]
async fn refund(_tx: &mut MemoryConn, _charge: Charge, _receipt: Option<u64>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(implements = contracts::insure, compensate = cancel_insurance)]
async fn insure(_tx: &mut MemoryConn, charge: Charge, State(gate): State<Gate>) -> Result<u64, StepError> {
    gate.pass().await;
    Ok(charge.cents)
}

#[saga_compensation]
async fn cancel_insurance(_tx: &mut MemoryConn, _charge: Charge, _receipt: Option<u64>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation)]
async fn weigh(_tx: &mut MemoryConn, order: Order) -> Result<u64, StepError> {
    Ok(order.cents / 100)
}

#[saga_step(no_compensation)]
async fn ship(_tx: &mut MemoryConn, _order: Order) -> Result<(), StepError> {
    Err(StepError::reject("nobody lives there"))
}

/// Writes down what commands and undos bring.
#[derive(Debug, Clone, Default)]
struct Spy {
    inner: MemoryTransport,
    bodies: Arc<Mutex<Vec<(MessageKind, String, String)>>>,
}

impl Spy {
    /// The inputs that messages of that kind brought to a step, each once.
    fn inputs(&self, wanted: MessageKind, step: &str) -> Vec<String> {
        let bodies = self.bodies.lock().unwrap();
        let of_step = bodies.iter().filter(|(kind, of, _)| *kind == wanted && of == step);
        let mut inputs: Vec<String> = of_step
            .map(|(_, _, body)| {
                let body: serde_json::Value = serde_json::from_str(body).unwrap();
                if wanted == MessageKind::Undo { body["input"].to_string() } else { body.to_string() }
            })
            .collect();
        inputs.sort();
        inputs.dedup();
        inputs
    }

    /// Each undo of the step brought what its command had brought.
    fn check(&self, step: &str, expected: &str) {
        assert_eq!(self.inputs(MessageKind::Command, step), [expected], "what `{step}` was asked for with");
        assert_eq!(self.inputs(MessageKind::Undo, step), [expected], "what the undo of `{step}` brought");
    }
}

#[async_trait]
impl Transport for Spy {
    fn name(&self) -> &'static str {
        "spy"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let body = |message: &Message| {
            let step = message.headers.step.clone().unwrap_or_default();
            (message.kind, step, String::from_utf8(message.payload.clone()).unwrap())
        };
        self.bodies.lock().unwrap().extend(messages.iter().map(body));
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }
}

/// The service that asks, its store, and the one that is asked.
struct World {
    store: MemoryStore,
    spy: Spy,
    gate: Gate,
    _payments: Runtime<MemoryStore>,
}

impl World {
    async fn start() -> Self {
        let (spy, gate) = (Spy::default(), Gate(watch::Sender::new(false)));
        let service = Service::named("payments").host::<charge>().host::<insure>().build().unwrap();
        let payments =
            Runtime::builder(MemoryStore::new()).transport(spy.clone()).service(&service).state(gate.clone());
        Self { store: MemoryStore::new(), spy, gate, _payments: payments.start().await.unwrap() }
    }

    /// A process of the service that asks.
    async fn process(&self, sagas: &[&Saga<MemoryStore, Order>]) -> Runtime<MemoryStore> {
        let settings = |settings: &mut Settings| settings.service = Some("orders".to_owned());
        let mut runtime = Runtime::builder(self.store.clone()).transport(self.spy.clone()).settings(settings);
        for saga in sagas {
            runtime = runtime.saga(saga);
        }
        runtime.start().await.unwrap()
    }

    /// One process asks, and another one is told the answer and decides about the undo.
    async fn hand_over(&self, first: &Saga<MemoryStore, Order>, second: &Saga<MemoryStore, Order>) {
        let asks = self.process(&[first]).await;
        asks.start(first, "o-1", order()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        asks.shutdown().await;
        let decides = self.process(&[second]).await;
        self.gate.0.send_replace(true);
        let outcome = decides.attach("o-1").await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome:?}");
        decides.shutdown().await;
    }
}

fn order() -> Order {
    Order { customer: "Ada, Elm Street 5".to_owned(), cents: 700 }
}

#[tokio::test(start_paused = true)]
async fn an_undo_of_another_process_brings_what_the_mapping_gave() {
    let world = World::start().await;
    let saga = Saga::named("order").input::<Order>();
    let saga = saga.step_from::<contracts::charge, _>(|order: &Order| Charge { cents: order.cents }).step::<ship>();
    let saga = saga.build().unwrap();
    world.hand_over(&saga, &saga).await;
    world.spy.check("charge", r#"{"cents":700}"#);
    let record = world.store.record_of(&Tenant::default(), &Key::new("o-1").unwrap(), &StepId::doing("charge")).await;
    assert_eq!(record.unwrap().unwrap().input.unwrap(), br#"{"cents":700}"#, "the record says what it was given");
}

#[tokio::test(start_paused = true)]
async fn branches_that_other_processes_decide_are_undone_with_their_inputs() {
    let world = World::start().await;
    let saga = Saga::named("order").input::<Order>().step::<weigh>().parallel(|group| {
        group
            .branch(|branch| {
                branch.step_from::<contracts::charge, _>(|_: &Order, Output(kilos): Output<weigh>| Charge {
                    cents: kilos * 9,
                })
            })
            .branch(|branch| {
                branch.step_from::<contracts::insure, _>(|order: &Order| Charge { cents: order.cents / 7 })
            })
    });
    let saga = saga.step::<ship>().build().unwrap();
    world.hand_over(&saga, &saga).await;
    world.spy.check("charge", r#"{"cents":63}"#);
    world.spy.check("insure", r#"{"cents":100}"#);
}

/// Both processes have the same definition, and the mapping of the younger one makes something else.
#[tokio::test(start_paused = true)]
async fn what_a_step_was_given_outlives_a_change_of_its_mapping() {
    let world = World::start().await;
    let saga = |fee: u64| {
        let saga = Saga::named("order").input::<Order>();
        let saga = saga.step_from::<contracts::charge, _>(move |order: &Order| Charge { cents: order.cents + fee });
        saga.step::<ship>().build().unwrap()
    };
    world.hand_over(&saga(0), &saga(5)).await;
    world.spy.check("charge", r#"{"cents":700}"#);
}

/// Sagas that earlier versions of this crate wrote have such records.
#[tokio::test(start_paused = true)]
async fn a_record_without_its_input_has_it_made_anew() {
    let world = World::start().await;
    let saga = Saga::named("order").input::<Order>();
    let saga = saga.step_from::<contracts::charge, _>(|order: &Order| Charge { cents: order.cents }).step::<ship>();
    let saga = saga.build().unwrap();
    let process = world.process(&[&saga]).await;
    process.start(&saga, "like", order()).after(Duration::from_hours(24)).await.unwrap();
    world.write_charged().await;
    let outcome = process.attach("o-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome:?}");
    assert_eq!(world.spy.inputs(MessageKind::Undo, "charge"), [r#"{"cents":700}"#]);
}

/// Nobody is sent the whole input of the saga in the place of what the mapping would take from it.
#[tokio::test(start_paused = true)]
async fn an_undo_whose_input_cannot_be_made_needs_a_person() {
    let world = World::start().await;
    let saga = Saga::named("order").input::<Order>();
    let saga = saga.step_from::<contracts::charge, _>(|order: &Order| {
        assert_ne!(order.cents, 700, "the mapping of another day");
        Charge { cents: order.cents }
    });
    let saga = saga.step::<ship>().build().unwrap();
    let process = world.process(&[&saga]).await;
    process.start(&saga, "like", Order { cents: 1, ..order() }).after(Duration::from_hours(24)).await.unwrap();
    world.write_charged().await;
    let outcome = process.attach("o-1").await.unwrap().outcome().await.unwrap();
    let Outcome::Stuck { step, reason, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(step, "charge");
    assert!(reason.contains("its input cannot be made"), "{reason}");
    assert_eq!(world.spy.inputs(MessageKind::Undo, "charge"), Vec::<String>::new());
    let seen = process.status("o-1").await.unwrap().unwrap().revision;
    process.admin().control("o-1").at_revision(seen).skip("the money was sent back by hand").await.unwrap();
    let outcome = process.attach("o-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome:?}");
}

/// The new version has a mapping that the step did not have when it was done.
#[tokio::test(start_paused = true)]
async fn a_step_that_was_done_without_a_mapping_is_undone_with_what_it_had() {
    let world = World::start().await;
    let v1 = Saga::named("order")
        .input::<Order>()
        .step::<wrap>()
        .step_from::<contracts::charge, _>(|order: &Order| Charge { cents: order.cents });
    let v1 = v1.step::<ship>().build().unwrap();
    let v2 = Saga::named("order").input::<Order>().version(2);
    let v2 = v2.step_from::<wrap, _>(|_: &Order| Order { customer: "nobody".to_owned(), cents: 0 });
    let v2 = v2.step_from::<contracts::charge, _>(|_: &Order| Charge { cents: 0 }).step::<ship>().build().unwrap();
    let first = world.process(&[&v1, &v2]).await;
    first.start(&v1, "o-1", order()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let migration = Migration::between(&v1, &v2).build().unwrap();
    first.admin().control("o-1").migrate(&migration, "the new version").await.unwrap();
    first.shutdown().await;
    let second = world.process(&[&v2]).await;
    world.gate.0.send_replace(true);
    let outcome = second.attach("o-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome:?}");
    world.spy.check("charge", r#"{"cents":700}"#);
    let unwrapped = world.store.read(|table| table.get("unwrapped").map(<[u8]>::to_vec));
    assert_eq!(unwrapped.as_deref(), Some(&b"Ada, Elm Street 5"[..]));
}

#[saga_step(compensate = unwrap)]
async fn wrap(_tx: &mut MemoryConn, _order: Order) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation]
async fn unwrap(tx: &mut MemoryConn, order: Order, _done: Option<()>) -> Result<(), StepError> {
    Ok(tx.put("unwrapped", order.customer)?)
}

impl World {
    /// A saga as an earlier version of this crate may have left it: charged by a process that did not know the input, and
    /// about to be shipped.
    async fn write_charged(&self) {
        let (tenant, key) = (Tenant::default(), Key::new("o-1").unwrap());
        let like = self.store.saga(&tenant, &Key::new("like").unwrap()).await.unwrap().unwrap();
        let mut state = SagaState::new(2);
        (state.steps[0].phase, state.steps[0].position, state.position) = (StepPhase::Done, 1, 1);
        state.steps[1].phase = StepPhase::Started;
        let ids = self.store.reserve_ids(2).await.unwrap();
        let saga = SagaId(ids.start);
        let new = NewSaga {
            expiry: None,
            id: saga,
            tenant: tenant.clone(),
            key: key.clone(),
            definition: like.definition.clone(),
            digest: like.digest,
            input: serde_json::to_vec(&order()).unwrap(),
            input_hash: like.input_hash,
            status: Status::Running,
            state: state.encode(),
            commands: Vec::new(),
        };
        let record = NewRecord {
            saga,
            tenant: tenant.clone(),
            key: key.clone(),
            step: StepId::doing("charge"),
            outcome: RecordedOutcome::Done,
            output: Some(b"2".to_vec()),
            error: None,
            input: None,
            position: 1,
            attempts: 1,
            took: Duration::ZERO,
        };
        let ship = NewWork {
            id: WorkId(ids.start + 1),
            saga,
            tenant,
            key,
            kind: WorkKind::Do,
            step: StepId::doing("ship"),
            definition: like.definition,
            payload: None,
            due_in: Duration::ZERO,
            lease: None,
            tried: None,
        };
        let changes =
            Changes { start: Some(Box::new(new)), records: vec![record], commands: vec![ship], ..Changes::default() };
        self.store.record(vec![changes]).await.unwrap()[0].clone().unwrap();
    }
}
