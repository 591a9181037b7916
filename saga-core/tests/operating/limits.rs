//! What is at a limit, or beyond it: it is refused where it comes in, or cut, and says so (G8).

use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::{HistoryKind, Sagas};
use saga_core::{Key, Outcome, Runtime, Saga, State, StepError, Tenant, saga_compensation, saga_step};

/// The longest text of an error.
const TEXT_BYTES_MAX: usize = 4 * 1_024;
/// A body that somebody takes for the text of an error.
const BODY_BYTES: usize = 7_000_000;

fn body() -> String {
    "\u{20ac}".repeat(BODY_BYTES / 3)
}

#[saga_step(compensate = unpack)]
async fn pack(_tx: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    Ok(())
}

/// It fails once, and then says what it was told.
#[saga_compensation(retry(attempts = 2, base = "1ms"))]
async fn unpack(_tx: &mut MemoryConn, _order: u32, _packed: ()) -> Result<(), StepError> {
    Err(StepError::retry(body()))
}

#[saga_step(no_compensation, retry(attempts = 3, base = "1ms"), on_exhausted = "compensate")]
async fn ship(ctx: &saga_core::StepContext, _order: u32) -> Result<(), StepError> {
    if ctx.attempt() < 3 { Err(StepError::not_sent(body())) } else { Err(StepError::reject(body())) }
}

/// G8: what another service answered is no reason to write its answer with each step.
#[tokio::test]
async fn g8_the_text_of_an_error_is_cut() {
    let store = MemoryStore::new();
    let saga = Saga::named("order").input::<u32>().step::<pack>().step::<ship>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let outcome = runtime.start(&saga, "o-1", 1).await.unwrap().outcome().await.unwrap();
    let Outcome::Stuck { reason, .. } = outcome else { panic!("{outcome}") };
    let whole = store.saga_with_steps(&Tenant::default(), &Key::new("o-1").unwrap()).await.unwrap().unwrap();
    assert!(whole.saga.state.len() < 3 * TEXT_BYTES_MAX, "a state of {} bytes", whole.saga.state.len());
    let attempts: Vec<_> = whole.history.iter().filter(|(_, entry)| entry.kind == HistoryKind::AttemptFailed).collect();
    assert_eq!(attempts.len(), 3, "two of the step and one of its undo");
    let error = whole.records.iter().find_map(|record| record.error.clone()).unwrap();
    let error = String::from_utf8(error).unwrap();
    let texts = whole.history.iter().map(|(_, entry)| entry.detail.as_str());
    for text in texts.chain([reason.as_str(), error.as_str()]) {
        assert!(text.len() <= TEXT_BYTES_MAX + 40, "{} bytes", text.len());
        assert!(text.contains("(cut here; it had "), "{text}");
    }
    runtime.shutdown().await;
}

/// Whoever acts on a saga, a letter or a version says why in a few sentences.
#[tokio::test]
async fn g8_a_reason_that_is_too_long_is_refused() {
    let saga = |version| Saga::named("order").input::<u32>().version(version).step::<pack>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga(1)).saga(&saga(2)).start().await.unwrap();
    let migration = saga_core::Migration::between(&saga(1), &saga(2)).build().unwrap();
    let long = "r".repeat(4_001);
    let refusals = [
        runtime.admin().migrate_all(&migration, &long).await.unwrap_err().to_string(),
        runtime.admin().dead_letters().discard(saga_core::store::DeadLetterId(1), &long).await.unwrap_err().to_string(),
        runtime.admin().dead_letters().replay(saga_core::store::DeadLetterId(1), &long).await.unwrap_err().to_string(),
    ];
    for refusal in refusals {
        assert!(refusal.contains("give a reason of at most 4000 bytes; it is kept with the "), "{refusal}");
    }
    runtime.shutdown().await;
}

/// How many bytes an input or an output may have in these tests.
const PAYLOAD_BYTES: usize = 1_000;

#[saga_step(no_compensation)]
async fn echo(_tx: &mut MemoryConn, text: String) -> Result<String, StepError> {
    Ok(text)
}

#[saga_step(no_compensation)]
async fn quote(_tx: &mut MemoryConn, text: String) -> Result<String, StepError> {
    Ok(format!("{text}."))
}

#[tokio::test]
async fn g8_a_payload_may_have_just_as_many_bytes_as_the_limit_says() {
    let echoes = Saga::named("echoes").input::<String>().step::<echo>().build().unwrap();
    let quotes = Saga::named("quotes").input::<String>().step::<quote>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&echoes).saga(&quotes);
    let runtime = runtime.settings(|settings| settings.payload_bytes_max = PAYLOAD_BYTES).start().await.unwrap();
    // Two quotation marks stand around a text.
    let longest = "t".repeat(PAYLOAD_BYTES - 2);
    let outcome = runtime.start(&echoes, "longest", longest.clone()).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let refused = runtime.start(&echoes, "longer", format!("{longest}t")).await.unwrap_err().to_string();
    assert!(refused.contains("1001 bytes") && refused.contains("1000"), "{refused}");
    let outcome = runtime.start(&quotes, "too-long", longest).await.unwrap().outcome().await.unwrap();
    let Outcome::Stuck { reason, .. } = outcome else { panic!("{outcome}") };
    assert!(reason.contains("its output cannot be stored: it has 1001 bytes"), "{reason}");
    runtime.shutdown().await;
}

/// A name of its own for each of many steps.
fn name(number: u32) -> &'static str {
    Box::leak(format!("step-{number}").into_boxed_str())
}

#[tokio::test(start_paused = true)]
async fn g8_a_definition_may_have_hundreds_of_steps() {
    let mut saga = Saga::named("long").input::<u32>();
    for number in 0..300 {
        saga = saga.sleep(name(number), Duration::ZERO);
    }
    let saga = saga.build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.unwrap();
    let outcome = runtime.start(&saga, "o-1", 1).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    runtime.shutdown().await;
}

/// A group in an arm in a group, and so on.
fn nested(chain: Branch<MemoryStore, u32>, level: u32) -> Branch<MemoryStore, u32> {
    let chain = chain.sleep(name(10 * level), Duration::ZERO);
    if level == 0 {
        return chain;
    }
    chain.choose(name(10 * level + 1), |choice| {
        choice.when(
            "in",
            |input: &u32| *input > 0,
            |arm| {
                arm.parallel(|group| {
                    group
                        .branch(|branch| nested(branch, level - 1))
                        .branch(|branch| branch.sleep(name(10 * level + 2), Duration::ZERO))
                })
            },
        )
    })
}

#[tokio::test(start_paused = true)]
async fn g8_groups_and_choices_may_stand_in_each_other_fifty_times() {
    let saga = Saga::named("deep").input::<u32>().parallel(|group| {
        group.branch(|branch| nested(branch, 50)).branch(|branch| branch.sleep("beside", Duration::ZERO))
    });
    let saga = saga.build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.unwrap();
    for (key, input) in [("all", 1), ("none", 0)] {
        let outcome = runtime.start(&saga, key, input).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    runtime.shutdown().await;
}

#[derive(Clone)]
struct Mailer;

#[saga_step(no_compensation)]
async fn mail(_order: u32, State(_mailer): State<Mailer>) -> Result<(), StepError> {
    Ok(())
}

#[tokio::test]
async fn a_state_that_is_missing_is_named_before_anything_runs() {
    let saga = Saga::named("mails").input::<u32>().step::<mail>().build().unwrap();
    let refused = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.unwrap_err().to_string();
    assert!(refused.contains("`mail`") && refused.contains("Mailer"), "{refused}");
}
