//! What a step reports that another service hosts: it is shown where the saga is.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::{DeadLetterFilter, MessageId, MessageKind};
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError};
use saga_core::{
    Outcome, Runtime, Saga, Service, Settings, State, StepContext, StepError, saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use uuid::Uuid;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "printer", compensated)]
    pub async fn print_book(pages: u32) -> Result<u32, StepError>;
}

#[saga_step(implements = contracts::print_book, compensate = shred)]
async fn print_book(ctx: &StepContext, pages: u32, State(press): State<Press>) -> Result<u32, StepError> {
    press.work(ctx, pages).await.map(|()| pages)
}

#[saga_compensation]
async fn shred(ctx: &StepContext, pages: u32, State(press): State<Press>) -> Result<(), StepError> {
    press.work(ctx, 2 * pages).await
}

#[saga_step(no_compensation)]
async fn bind(pages: u32) -> Result<(), StepError> {
    if pages == 13 { Err(StepError::reject("nobody binds thirteen pages")) } else { Ok(()) }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    pages: u32,
}

/// Works as far as there is paper, and breaks once at some pages.
#[derive(Clone)]
struct Press {
    paper: watch::Sender<u32>,
    breaks_at: Arc<Mutex<BTreeSet<u32>>>,
}

impl Press {
    async fn work(&self, ctx: &StepContext, pages: u32) -> Result<(), StepError> {
        let begun = ctx.progress::<Progress>()?.map_or(0, |progress| progress.pages);
        let mut paper = self.paper.subscribe();
        for page in begun + 1..=pages {
            // The sender lives as long as this value.
            let _ = paper.wait_for(|paper| *paper >= page).await;
            ctx.report(&Progress { pages: page })?;
            if self.breaks_at.lock().unwrap().remove(&page) {
                return Err(StepError::retry("the paper jams"));
            }
        }
        Ok(())
    }
}

/// Keeps the reports that pass, so that one can be sent once more.
#[derive(Debug, Clone, Default)]
struct Eavesdropper {
    inner: MemoryTransport,
    reports: Arc<Mutex<Vec<Message>>>,
}

#[async_trait]
impl Transport for Eavesdropper {
    fn name(&self) -> &'static str {
        "eavesdropper"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let reports = messages.iter().filter(|message| message.kind == MessageKind::Report).cloned();
        self.reports.lock().unwrap().extend(reports);
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }
}

/// A publisher, and the printer that prints for it.
struct House {
    transport: Eavesdropper,
    press: Press,
    saga: Saga<MemoryStore, u32>,
    publisher: Runtime<MemoryStore>,
    printer: Runtime<MemoryStore>,
    printed: MemoryStore,
    sent: AtomicU32,
}

impl House {
    async fn open() -> Self {
        let transport = Eavesdropper::default();
        let press = Press { paper: watch::Sender::new(0), breaks_at: Arc::default() };
        let books = MemoryStore::new();
        let printer = printer(&books, &transport, &press).await;
        let saga = Saga::named("book").input::<u32>().step::<contracts::print_book>().step::<bind>();
        let saga = saga.pivot().build().unwrap();
        let publisher = Runtime::builder(MemoryStore::new()).transport(transport.clone()).saga(&saga);
        let named = |settings: &mut Settings| settings.service = Some("publisher".to_owned());
        let publisher = publisher.settings(named).start().await.unwrap();
        Self { transport, press, saga, publisher, printer, printed: books, sent: AtomicU32::new(1) }
    }

    /// What the publisher is shown of the step, once that is so many pages.
    async fn shown(&self, pages: u32) {
        let shown = async {
            loop {
                if self.pages().await == Some(pages) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let shown = tokio::time::timeout(Duration::from_mins(2), shown).await;
        assert!(shown.is_ok(), "{pages} pages are to be shown, and {:?} are", self.pages().await);
    }

    async fn pages(&self) -> Option<u32> {
        let status = self.publisher.status("b-1").await.unwrap().unwrap();
        let progress = status.steps[0].progress.as_ref()?;
        Some(progress.read::<Progress>().unwrap().pages)
    }

    /// Sends a message under an id of its own.
    async fn send(&self, message: Message) {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let message = Message { id: MessageId(Uuid::from_u128(u128::from(number))), ..message };
        let sent = self.transport.inner.publish(vec![message]).await;
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

async fn printer(store: &MemoryStore, transport: &Eavesdropper, press: &Press) -> Runtime<MemoryStore> {
    let service = Service::named("printer").host::<print_book>().build().unwrap();
    let printer = Runtime::builder(store.clone()).transport(transport.clone()).service(&service);
    printer.state(press.clone()).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_a_host_reports_is_shown_to_who_asked() {
    let house = House::open().await;
    let running = house.publisher.start(&house.saga, "b-1", 5).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(house.pages().await, None, "nothing was reported yet");
    for paper in [2, 4] {
        house.press.paper.send_replace(paper);
        house.shown(paper).await;
    }
    house.press.paper.send_replace(5);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(house.pages().await, None, "it is gone with the end of the step");
}

#[tokio::test(start_paused = true)]
async fn the_undo_of_a_hosted_step_reports_as_well() {
    let house = House::open().await;
    house.press.paper.send_replace(13);
    let running = house.publisher.start(&house.saga, "b-1", 13).await.unwrap();
    house.shown(13).await;
    house.press.paper.send_replace(20);
    house.shown(20).await;
    house.press.paper.send_replace(26);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome:?}");
}

/// Reports are numbered over all attempts and owners of the step at its host.
#[tokio::test(start_paused = true)]
async fn a_report_that_comes_late_or_twice_does_not_replace_a_newer_one() {
    let house = House::open().await;
    house.press.breaks_at.lock().unwrap().extend([2, 4]);
    let running = house.publisher.start(&house.saga, "b-1", 6).await.unwrap();
    for paper in [1, 2, 3, 4, 5] {
        house.press.paper.send_replace(paper);
        house.shown(paper).await;
    }
    let reports = house.transport.reports.lock().unwrap().clone();
    assert!(reports.len() >= 5, "one for each page: {reports:?}");
    for report in reports {
        house.send(report).await;
        assert_eq!(house.pages().await, Some(5));
    }
    house.press.paper.send_replace(6);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_report_is_a_dead_letter_and_one_of_a_step_that_is_over_is_nothing() {
    let house = House::open().await;
    house.press.paper.send_replace(4);
    let running = house.publisher.start(&house.saga, "b-1", 5).await.unwrap();
    house.shown(4).await;
    house.press.paper.send_replace(5);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    let report = house.transport.reports.lock().unwrap().first().cloned().unwrap();
    let letters = || async { house.publisher.admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap() };
    house.send(report.clone()).await;
    let of_nobody = report.clone();
    let mut headers = of_nobody.headers.clone();
    headers.saga_key = Some("b-2".to_owned());
    house.send(Message { headers, ..of_nobody }).await;
    assert_eq!(letters().await.len(), 0);
    house.send(Message { payload: b"half".to_vec(), ..report }).await;
    let letters = letters().await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0].letter.detail.starts_with("its content: "), "{}", letters[0].letter.detail);
}

/// G8: who asked keeps no more than it would of a report of its own, whatever a host says.
#[tokio::test(start_paused = true)]
async fn g8_a_report_that_is_too_long_is_passed_over() {
    let house = House::open().await;
    let running = house.publisher.start(&house.saga, "b-1", 5).await.unwrap();
    house.press.paper.send_replace(3);
    house.shown(3).await;
    let report = house.transport.reports.lock().unwrap().last().cloned().unwrap();
    let long = format!(r#"{{"number":{},"report":"{}"}}"#, u64::MAX, "x".repeat(20 * 1_024));
    house.send(Message { payload: long.into_bytes(), ..report }).await;
    assert_eq!(house.pages().await, Some(3));
    house.press.paper.send_replace(5);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn the_next_process_of_the_host_is_shown_going_on() {
    let mut house = House::open().await;
    let running = house.publisher.start(&house.saga, "b-1", 5).await.unwrap();
    house.press.paper.send_replace(3);
    house.shown(3).await;
    house.printer.shutdown().await;
    assert_eq!(house.pages().await, Some(3), "it stays while nobody works");
    house.printer = printer(&house.printed, &house.transport, &house.press).await;
    house.press.paper.send_replace(4);
    house.shown(4).await;
    house.press.paper.send_replace(5);
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}
