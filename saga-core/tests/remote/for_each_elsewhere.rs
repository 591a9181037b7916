//! A step that is done for each item of a list, which another service hosts: two services in one process.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{RecordedOutcome, Records, Sagas};
use saga_core::{
    Key, Outcome, Output, Outputs, Runtime, Saga, Service, Settings, State, StepContext, StepError, Tenant,
    saga_compensation, saga_step,
};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "depot", compensated)]
    pub async fn pack(parcel: u32) -> Result<String, StepError>;

    #[saga_step(service = "depot", compensated)]
    pub async fn send(parcel: u32) -> Result<String, StepError>;
}

/// What the steps of the depot share.
#[derive(Clone, Default)]
struct Depot(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    refused: BTreeSet<u32>,
    /// What was called outside any transaction.
    called: Vec<String>,
    under_way: usize,
    most: usize,
    /// How long a transaction takes.
    takes: Duration,
}

impl Depot {
    fn refusing(refused: &[u32]) -> Self {
        let inside = Inside { refused: refused.iter().copied().collect(), ..Inside::default() };
        Self(Arc::new(Mutex::new(inside)))
    }

    fn refuse(&self, parcel: u32) -> Result<(), StepError> {
        let is_refused = self.0.lock().unwrap().refused.contains(&parcel);
        if is_refused { Err(StepError::reject("it is refused")) } else { Ok(()) }
    }

    /// As long as a call may last: others that may be under way beside it are.
    async fn call(&self, what: String) {
        {
            let mut inside = self.0.lock().unwrap();
            inside.under_way += 1;
            inside.most = inside.most.max(inside.under_way);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut inside = self.0.lock().unwrap();
        inside.under_way -= 1;
        inside.called.push(what);
    }

    fn take_most(&self) -> usize {
        std::mem::take(&mut self.0.lock().unwrap().most)
    }

    fn called(&self) -> Vec<String> {
        self.0.lock().unwrap().called.clone()
    }
}

#[saga_step(no_compensation)]
async fn plan(_tx: &mut MemoryConn, parcels: u32) -> Result<Vec<u32>, StepError> {
    Ok((1..=parcels).collect())
}

/// In a transaction.
#[saga_step(implements = contracts::pack, compensate = unpack)]
async fn pack(
    tx: &mut MemoryConn,
    ctx: &StepContext,
    parcel: u32,
    State(depot): State<Depot>,
) -> Result<String, StepError> {
    let takes = depot.0.lock().unwrap().takes;
    if !takes.is_zero() {
        tokio::time::sleep(takes).await;
    }
    tx.log(format!("{} of {parcel}", ctx.key()));
    depot.refuse(parcel)?;
    Ok(format!("box {parcel}"))
}

#[saga_compensation]
async fn unpack(tx: &mut MemoryConn, ctx: &StepContext, parcel: u32, packed: String) -> Result<(), StepError> {
    assert_eq!(packed, format!("box {parcel}"), "a compensation gets what its own item took and gave");
    tx.log(format!("{} of {parcel}", ctx.key()));
    Ok(())
}

/// Outside any transaction.
#[saga_step(implements = contracts::send, compensate = unsend)]
async fn send(ctx: &StepContext, parcel: u32, State(depot): State<Depot>) -> Result<String, StepError> {
    depot.call(ctx.key().to_string()).await;
    depot.refuse(parcel)?;
    Ok(format!("sent {parcel}"))
}

#[saga_compensation]
async fn unsend(ctx: &StepContext, parcel: u32, sent: String, State(depot): State<Depot>) -> Result<(), StepError> {
    assert_eq!(sent, format!("sent {parcel}"), "a compensation gets what its own item took and gave");
    depot.call(ctx.key().to_string()).await;
    Ok(())
}

#[saga_step(no_compensation)]
async fn bill(tx: &mut MemoryConn, parcels: u32, Outputs(packed): Outputs<contracts::pack>) -> Result<(), StepError> {
    tx.put(format!("bill of {parcels}").as_str(), packed.join(",").into_bytes())?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn close(_tx: &mut MemoryConn, _parcels: u32) -> Result<(), StepError> {
    Err(StepError::reject("it is closed"))
}

fn packing(at_once: usize) -> Saga<MemoryStore, u32> {
    let saga = Saga::named("ship").input::<u32>().step::<plan>();
    saga.for_each::<contracts::pack, _>(at_once, |_: &u32, Output(list): Output<plan>| list)
        .step::<bill>()
        .build()
        .unwrap()
}

/// It begins with a list, and comes to nothing in the end.
fn sending(at_once: usize) -> Saga<MemoryStore, u32> {
    let saga = Saga::named("send").input::<u32>();
    let saga = saga.for_each::<contracts::send, _>(at_once, |parcels: &u32| (1..=*parcels).collect());
    saga.step::<close>().build().unwrap()
}

/// Orders, which have the sagas, and the depot, which has the steps.
struct Services {
    transport: MemoryTransport,
    orders: MemoryStore,
    depot: MemoryStore,
    inside: Depot,
}

impl Services {
    fn new(inside: &Depot) -> Self {
        let (orders, depot) = (MemoryStore::new(), MemoryStore::new());
        Self { transport: MemoryTransport::new(), orders, depot, inside: inside.clone() }
    }

    async fn host(&self) -> Runtime<MemoryStore> {
        let service = Service::named("depot").host::<pack>().host::<send>().build().unwrap();
        let host = Runtime::builder(self.depot.clone()).transport(self.transport.clone()).service(&service);
        host.state(self.inside.clone()).start().await.unwrap()
    }

    async fn coordinator(&self, saga: &Saga<MemoryStore, u32>) -> Runtime<MemoryStore> {
        let named = |settings: &mut Settings| settings.service = Some("orders".to_owned());
        let orders = Runtime::builder(self.orders.clone()).transport(self.transport.clone()).saga(saga);
        orders.settings(named).start().await.unwrap()
    }

    async fn run(&self, saga: &Saga<MemoryStore, u32>, parcels: u32) -> Outcome {
        let (host, orders) = (self.host().await, self.coordinator(saga).await);
        let outcome = orders.start(saga, "o-1", parcels).await.unwrap().outcome().await.unwrap();
        orders.shutdown().await;
        host.shutdown().await;
        outcome
    }

    fn log(&self) -> Vec<String> {
        let text = |entry: &Vec<u8>| String::from_utf8(entry.clone()).unwrap();
        self.depot.read(|table| table.log().iter().map(text).collect())
    }
}

/// No item, one, as many as run at once, and more.
#[tokio::test(start_paused = true)]
async fn what_the_items_gave_elsewhere_is_joined_in_the_order_of_the_list() {
    for parcels in [0, 1, 3, 10] {
        let services = Services::new(&Depot::default());
        let outcome = services.run(&packing(3), parcels).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{parcels}: {outcome}");
        let billed = services.orders.read(|table| table.get(&format!("bill of {parcels}")).unwrap().to_vec());
        let boxes: Vec<String> = (1..=parcels).map(|parcel| format!("box {parcel}")).collect();
        assert_eq!(String::from_utf8(billed).unwrap(), boxes.join(","));
        let done: BTreeSet<String> = services.log().into_iter().collect();
        let expected = (1..=parcels).map(|parcel| format!("o-1:pack#{parcel} of {parcel}")).collect();
        assert_eq!(done, expected, "each once, and under a key of its own");
        assert_eq!(services.log().len(), parcels as usize);
    }
}

/// Each item has a row of its own there, and a record of its own here, with what it took and gave.
#[tokio::test(start_paused = true)]
async fn an_item_is_a_hosted_step_there_and_a_step_here() {
    let services = Services::new(&Depot::default());
    services.run(&packing(2), 3).await;
    let tenant = Tenant::default();
    let hosted = services.depot.saga(&tenant, &Key::from_stored("o-1>pack#2").unwrap()).await.unwrap();
    assert_eq!(hosted.unwrap().input, b"2");
    let records = services.orders.records_of(&tenant, &Key::new("o-1").unwrap()).await.unwrap();
    let item = records.iter().find(|record| record.step.as_str() == "pack#2").unwrap();
    assert_eq!(item.outcome, RecordedOutcome::Done);
    let (input, output) = (item.input.as_deref(), item.output.as_deref());
    assert_eq!((input, output), (Some(b"2".as_slice()), Some(br#""box 2""#.as_slice())));
}

fn undos_of(happened: &[String]) -> Vec<String> {
    happened.iter().filter(|what| what.contains(":undo")).cloned().collect()
}

/// One at a time they complete in the order of the list, and so they are undone from its end. What each gave comes back to
/// its undo, though nobody who decides about the saga has it at hand.
#[tokio::test(start_paused = true)]
async fn g5_items_elsewhere_are_undone_in_the_reverse_order_of_their_completion() {
    let services = Services::new(&Depot::default());
    let outcome = services.run(&sending(1), 5).await;
    let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "close");
    let done = (1..=5).map(|parcel| format!("o-1:send#{parcel}"));
    let undone = (1..=5).rev().map(|parcel| format!("o-1:send#{parcel}:undo"));
    assert_eq!(services.inside.called(), done.chain(undone).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn so_many_are_under_way_elsewhere_at_once_and_no_more_are_undone() {
    for at_once in [1, 4] {
        let services = Services::new(&Depot::default());
        let (host, orders) = (services.host().await, services.coordinator(&sending(at_once)).await);
        let running = orders.start(&sending(at_once), "o-1", 20).await.unwrap();
        while services.inside.called().len() < 20 {
            assert!(undos_of(&services.inside.called()).is_empty(), "nothing is undone while an item is under way");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(services.inside.take_most(), at_once);
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
        assert_eq!(services.inside.take_most(), at_once);
        assert_eq!(undos_of(&services.inside.called()).iter().collect::<BTreeSet<_>>().len(), 20);
        orders.shutdown().await;
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g5_an_item_that_is_rejected_elsewhere_has_its_siblings_undone() {
    for at_once in [1, 3] {
        let services = Services::new(&Depot::refusing(&[4]));
        let outcome = services.run(&packing(at_once), 30).await;
        let Outcome::Compensated { failed_step, reason, .. } = outcome else { panic!("{outcome}") };
        assert_eq!((failed_step.as_str(), reason.message()), ("pack#4", "it is refused"));
        let log = services.log();
        let undone: BTreeSet<String> = undos_of(&log).into_iter().collect();
        let done: Vec<&String> = log.iter().filter(|what| !what.contains(":undo")).collect();
        let as_undone = done.iter().map(|what| what.replace(" of ", ":undo of ")).collect::<BTreeSet<_>>();
        assert_eq!(undone, as_undone);
        assert_eq!(undos_of(&log).len(), done.len());
        // One at a time is exact. Side by side, others may begin until the refusal is written down.
        let most = if at_once == 1 { 3 } else { 28 };
        assert!((4 - at_once..=most).contains(&done.len()), "{done:?}");
    }
}

/// What is written with each item does not grow with how many were asked for.
#[tokio::test(start_paused = true)]
async fn a_thousand_items_elsewhere_are_done_and_undone() {
    for (saga, is_completed) in [(packing(8), true), (sending(8), false)] {
        let services = Services::new(&Depot::default());
        let outcome = services.run(&saga, 1_000).await;
        assert_eq!(matches!(outcome, Outcome::Completed { .. }), is_completed, "{outcome}");
        let row = services.orders.saga(&Tenant::default(), &Key::new("o-1").unwrap()).await.unwrap().unwrap();
        assert!(row.state.len() < 5_000, "the state has {} bytes", row.state.len());
    }
}

/// Counts how often a saga was read: by who knows nothing of it, or decided on an older state.
#[derive(Debug, Default)]
struct Reads(AtomicUsize);

impl CommitHook for Reads {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if let CommitPoint::Reading("saga") = point {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        // As long as a commit may last: whoever decides meanwhile does so on an older state.
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            CommitFate::Proceed
        })
    }
}

/// Sixty-four answers that come at once are decided one after the other, or all but one would find the saga moved.
#[tokio::test(start_paused = true)]
async fn answers_that_come_at_once_are_decided_once_each() {
    let reads = Arc::new(Reads::default());
    let mut services = Services::new(&Depot::default());
    services.orders = MemoryStore::new().with_commit_hook(Arc::clone(&reads) as Arc<dyn CommitHook>);
    let outcome = services.run(&packing(64), 128).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let reads = reads.0.load(Ordering::Relaxed);
    assert!(reads < 64, "the saga was read {reads} times for 128 answers");
}

/// The process that asked is gone with all that it had in memory, and so is what it was told: another one goes on with what
/// is stored, and asks again by the same messages.
#[tokio::test(start_paused = true)]
async fn another_process_goes_on_with_what_was_asked_for_elsewhere() {
    for saga in [packing(3), sending(3)] {
        let services = Services::new(&Depot::default());
        services.inside.0.lock().unwrap().takes = Duration::from_millis(20);
        let is_undone = saga.name() == "send";
        let happened = || if is_undone { services.inside.called() } else { services.log() };
        let mut processes = 0;
        let mut host = services.host().await;
        let outcome = loop {
            let orders = services.coordinator(&saga).await;
            let running = orders.start(&saga, "o-1", 20).await.unwrap();
            let before = happened().len();
            processes += 1;
            let outcome = loop {
                if let Ok(outcome) = tokio::time::timeout(Duration::from_millis(1), running.outcome()).await {
                    break Some(outcome.unwrap());
                }
                if happened().len() >= before + 7 {
                    break None;
                }
            };
            orders.shutdown().await;
            if let Some(outcome) = outcome {
                break outcome;
            }
            // So is the host, in the middle of its calls.
            host.shutdown().await;
            host = services.host().await;
        };
        host.shutdown().await;
        assert!(processes > 2, "{processes} processes took part");
        assert_eq!(matches!(outcome, Outcome::Compensated { .. }), is_undone, "{outcome}");
        let happened = happened();
        assert_eq!(happened.len(), if is_undone { 40 } else { 20 }, "{happened:?}");
        assert_eq!(happened.iter().collect::<BTreeSet<_>>().len(), happened.len(), "each once: {happened:?}");
    }
}

/// A person sees the items by their names, and says what one of them gave where its host cannot.
#[tokio::test(start_paused = true)]
async fn a_person_goes_past_an_item_that_is_stuck_elsewhere() {
    let services = Services::new(&Depot::default());
    // Nobody hosts anything under that name yet, and says so.
    let service = Service::named("depot").host::<send>().build().unwrap();
    let host = Runtime::builder(services.depot.clone()).transport(services.transport.clone()).service(&service);
    let host = host.state(services.inside.clone()).start().await.unwrap();
    let orders = services.coordinator(&packing(1)).await;
    let running = orders.start(&packing(1), "o-1", 2).await.unwrap();
    for item in 1..=2 {
        let outcome = running.outcome().await.unwrap();
        let Outcome::Stuck { step, reason, .. } = outcome else { panic!("{outcome}") };
        assert_eq!(step, format!("pack#{item}"));
        assert!(reason.contains("`depot` says"), "{reason}");
        let status = orders.status("o-1").await.unwrap().unwrap();
        let shown: Vec<&str> = status.steps.iter().map(|step| step.step.as_str()).collect();
        assert!(shown.contains(&step.as_str()), "{shown:?}");
        let operator = orders.admin().control("o-1").at_revision(status.revision);
        let refused = operator.retry_with(&7_u32, "another parcel").await.unwrap_err().to_string();
        assert!(refused.contains("its input stands in a list"), "{refused}");
        operator.skip_with(&format!("bag {item}"), "packed by hand").await.unwrap();
    }
    assert!(matches!(running.closed().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(services.orders.read(|table| table.get("bill of 2").unwrap().to_vec()), b"bag 1,bag 2");
    orders.shutdown().await;
    host.shutdown().await;
}

#[test]
fn the_chart_says_where_the_items_are_done() {
    let chart = packing(8).to_mermaid();
    assert!(chart.contains("s1[[\"pack (depot)<br/>for each, 8 at once\"]]"), "{chart}");
    assert!(chart.contains("u1[\"undo pack<br/>each, the latest first\"]"), "{chart}");
}
