//! Requests that take effect once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::store::{
    Admission, IdempotencyKey, IdempotencyKeys, KeyVerdict, KeyedBody, KeyedRequest, Purge as _, Store, StoreErrorKind,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR, Meeting, tenant};
use crate::harness::{StartInHarness, StoreHarness};

/// Longer than any store takes to answer.
const PATIENCE: Duration = Duration::from_secs(10);

type Conn<H> = <<H as StoreHarness>::Store as Store>::Conn;

/// A body that writes one row.
struct Write<H> {
    harness: Arc<H>,
    name: &'static str,
    verdict: KeyVerdict,
    ends_transaction: bool,
    /// Where it stays in the middle.
    stay: Option<Arc<Meeting>>,
    runs: Arc<AtomicU32>,
}

impl<H: StoreHarness> KeyedBody<Conn<H>> for Write<H> {
    fn run<'a>(&'a mut self, conn: &'a mut Conn<H>) -> BoxFuture<'a, KeyVerdict> {
        Box::pin(async move {
            self.runs.fetch_add(1, Ordering::SeqCst);
            if self.harness.write_business(conn, self.name, 12).await.is_err() {
                return KeyVerdict::RollBack;
            }
            if let Some(meeting) = &self.stay {
                meeting.entered.notify_one();
                meeting.go_on.notified().await;
            }
            if self.ends_transaction {
                self.harness.end_transaction(conn).await;
            }
            self.verdict.clone()
        })
    }
}

fn write<H: StoreHarness>(bench: &Bench<H>, name: &'static str, verdict: KeyVerdict) -> Write<H> {
    let harness = Arc::clone(&bench.harness);
    Write { harness, name, verdict, ends_transaction: false, stay: None, runs: Arc::default() }
}

fn keep(response: &str) -> KeyVerdict {
    KeyVerdict::Keep(response.as_bytes().to_vec())
}

fn replay<T>(response: &str) -> Admission<T> {
    Admission::Replay(response.as_bytes().to_vec())
}

/// A request of a principal; the same body has the same fingerprint.
fn of(principal: &str, key: &str, body: u8) -> Result<KeyedRequest, Failed> {
    let key = IdempotencyKey::new(tenant("shop"), principal, key)?;
    Ok(KeyedRequest { key, fingerprint: [body; 32], ttl: HOUR })
}

async fn run<H: StartInHarness>(
    bench: &Bench<H>,
    request: &KeyedRequest,
    body: Write<H>,
) -> Result<Admission<()>, Failed> {
    Ok(bench.store.run_once(Some(request.clone()), Box::new(body)).await?)
}

pub(crate) async fn a_kept_response_comes_with_its_writes<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    let admission = run(&bench, &request, write(&bench, "a", keep("made"))).await?;
    ensure_eq!(admission, Admission::Granted(()), "the first request");
    ensure_eq!(bench.business("a").await, Some(12), "what it wrote");
    let bench = bench.reopen().await?;
    let body = write(&bench, "b", keep("made again"));
    let runs = Arc::clone(&body.runs);
    ensure_eq!(run(&bench, &request, body).await?, replay("made"), "the same request in the next process");
    ensure_eq!((runs.load(Ordering::SeqCst), bench.business("b").await), (0, None), "what a replay runs and writes");
    Ok(())
}

pub(crate) async fn of_a_commit_in_doubt_both_are_there_or_none<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    for commits in [false, true] {
        let Some(doubtful) = bench.harness.doubtful(&bench.store, commits) else {
            return Err(Failed("the harness gave no store that loses an answer".into()));
        };
        let (name, request) = if commits { ("a", of("ada", "k-1", 1)?) } else { ("b", of("ada", "k-2", 1)?) };
        let lost = doubtful.run_once(Some(request.clone()), Box::new(write(&bench, name, keep("made")))).await;
        let kind = lost.as_ref().err().map(saga_core::store::StoreError::kind);
        ensure_eq!(kind, Some(StoreErrorKind::UnknownCommit), "how a lost answer is reported");
        drop(doubtful);
        let is_written = bench.business(name).await.is_some();
        ensure_eq!(is_written, commits, "whether the writes of a commit in doubt are there");
        let expected = if commits { replay("made") } else { Admission::Granted(()) };
        ensure_eq!(run(&bench, &request, write(&bench, name, keep("made"))).await?, expected, "the same request again");
    }
    Ok(())
}

pub(crate) async fn another_request_under_the_key_has_no_effect<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    run(&bench, &of("ada", "k-1", 1)?, write(&bench, "a", keep("made"))).await?;
    let other = run(&bench, &of("ada", "k-1", 2)?, write(&bench, "b", keep("made"))).await?;
    ensure_eq!(other, Admission::OtherRequest, "another request under a kept key");
    ensure_eq!(bench.business("b").await, None, "what it wrote");
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let request = of("ada", "k-2", 1)?;
    run(&bench, &request, write(&bench, "c", KeyVerdict::Keep(binary.clone()))).await?;
    let again = run(&bench, &request, write(&bench, "c", keep("other"))).await?;
    ensure!(again == Admission::Replay(binary), "a long binary response came back as another one");
    Ok(())
}

pub(crate) async fn a_key_in_use_is_not_waited_for<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    let meeting = Arc::new(Meeting::default());
    let body = Write { stay: Some(Arc::clone(&meeting)), ..write(&bench, "a", keep("made")) };
    let (store, first) = (Arc::clone(&bench.store), request.clone());
    let open = tokio::spawn(async move { store.run_once(Some(first), Box::new(body)).await });
    meeting.entered.notified().await;
    let second = run(&bench, &request, write(&bench, "b", keep("made")));
    let second =
        tokio::time::timeout(PATIENCE, second).await.map_err(|_| Failed("a request waited for its key".into()));
    let claimed = tokio::time::timeout(PATIENCE, bench.store.claim_key(&request, HOUR)).await;
    let another = run(&bench, &of("ada", "k-2", 1)?, write(&bench, "c", keep("made"))).await;
    meeting.go_on.notify_one();
    let first = open.await.map_err(|error| Failed(format!("the request panicked: {error}")))?;
    ensure_eq!(second??, Admission::InFlight, "the second request");
    ensure_eq!(claimed.map_err(|_| Failed("a claim waited for its key".into()))??, Admission::InFlight, "a claim");
    ensure_eq!(another?, Admission::Granted(()), "a request under another key meanwhile");
    ensure_eq!(first?, Admission::Granted(()), "the first request");
    ensure_eq!(run(&bench, &request, write(&bench, "b", keep("other"))).await?, replay("made"), "a later one");
    ensure_eq!(bench.business("b").await, None, "what the others wrote");
    Ok(())
}

pub(crate) async fn a_kept_refusal_has_no_writes<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    let refusal = KeyVerdict::RollBackAndKeep(b"too much".to_vec());
    ensure_eq!(run(&bench, &request, write(&bench, "a", refusal)).await?, Admission::Granted(()), "a refusal");
    ensure_eq!(bench.business("a").await, None, "what it wrote");
    ensure_eq!(run(&bench, &request, write(&bench, "a", keep("made"))).await?, replay("too much"), "the same again");
    Ok(())
}

pub(crate) async fn what_is_not_kept_frees_its_key<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    run(&bench, &request, write(&bench, "a", KeyVerdict::RollBack)).await?;
    let abandoned = bench.store.run_once(Some(request), Box::new(write(&bench, "a", KeyVerdict::Abandon))).await;
    ensure!(abandoned.is_err(), "an abandoned body was answered with {abandoned:?}");
    ensure_eq!(bench.business("a").await, None, "what was not kept");
    // Another request may have the key now.
    let other = run(&bench, &of("ada", "k-1", 2)?, write(&bench, "a", keep("made"))).await?;
    ensure_eq!(other, Admission::Granted(()), "another request under the freed key");
    ensure_eq!(bench.business("a").await, Some(12), "what it wrote");
    Ok(())
}

pub(crate) async fn a_key_is_of_one_principal_of_one_tenant<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    run(&bench, &of("ada", "k-1", 1)?, write(&bench, "a", keep("of ada"))).await?;
    let grace = run(&bench, &of("grace", "k-1", 1)?, write(&bench, "b", keep("of grace"))).await?;
    ensure_eq!(grace, Admission::Granted(()), "the same key of another principal");
    let key = IdempotencyKey::new(tenant("other-shop"), "ada", "k-1")?;
    let elsewhere = KeyedRequest { key, ..of("ada", "k-1", 1)? };
    let elsewhere = run(&bench, &elsewhere, write(&bench, "c", keep("elsewhere"))).await?;
    ensure_eq!(elsewhere, Admission::Granted(()), "the same key of another tenant");
    let again = run(&bench, &of("ada", "k-1", 1)?, write(&bench, "d", keep("other"))).await?;
    ensure_eq!(again, replay("of ada"), "what is replayed to the first");
    Ok(())
}

pub(crate) async fn a_leased_key_is_in_flight_until_its_lease_ends<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    let lease = bench.harness.timing().lease;
    let Admission::Granted(first) = bench.store.claim_key(&request, HOUR).await? else {
        return Err(Failed("a free key was not granted".into()));
    };
    ensure_eq!(bench.store.claim_key(&request, HOUR).await?, Admission::InFlight, "a second claim");
    let body = write(&bench, "a", keep("made"));
    ensure_eq!(run(&bench, &request, body).await?, Admission::InFlight, "a transaction under a leased key");
    ensure_eq!(bench.store.claim_key(&of("ada", "k-1", 2)?, HOUR).await?, Admission::OtherRequest, "another request");
    ensure!(bench.store.release_key(&request.key, first).await?, "a lease was not given back");
    let Admission::Granted(second) = bench.store.claim_key(&request, lease).await? else {
        return Err(Failed("a key that was given back was not granted".into()));
    };
    bench.outlast_lease().await;
    ensure_eq!(bench.store.claim_key(&of("ada", "k-1", 2)?, HOUR).await?, Admission::OtherRequest, "another, later");
    let Admission::Granted(third) = bench.store.claim_key(&request, HOUR).await? else {
        return Err(Failed("a key was not granted after its lease".into()));
    };
    ensure!(first <= second && second < third, "the epochs of three claims were {first}, {second}, {third}");
    Ok(())
}

pub(crate) async fn a_lease_is_completed_under_its_epoch<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    let Admission::Granted(old) = bench.store.claim_key(&request, bench.harness.timing().lease).await? else {
        return Err(Failed("a free key was not granted".into()));
    };
    bench.outlast_lease().await;
    let Admission::Granted(new) = bench.store.claim_key(&request, HOUR).await? else {
        return Err(Failed("a key was not granted after its lease".into()));
    };
    ensure!(!bench.store.complete_key(&request.key, old, b"of the old").await?, "an old epoch completed");
    ensure!(!bench.store.release_key(&request.key, old).await?, "an old epoch released");
    ensure!(bench.store.complete_key(&request.key, new, b"of the new").await?, "the epoch of the key did not complete");
    ensure!(!bench.store.complete_key(&request.key, new, b"again").await?, "a key was completed twice");
    ensure!(!bench.store.release_key(&request.key, new).await?, "a completed key was released");
    ensure_eq!(bench.store.claim_key(&request, HOUR).await?, replay("of the new"), "a later claim");
    ensure_eq!(run(&bench, &request, write(&bench, "a", keep("x"))).await?, replay("of the new"), "a later request");
    Ok(())
}

pub(crate) async fn a_key_is_new_after_its_time<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let lease = bench.harness.timing().lease;
    let short = KeyedRequest { ttl: lease, ..of("ada", "k-1", 1)? };
    run(&bench, &short, write(&bench, "a", keep("made"))).await?;
    bench.outlast_lease().await;
    let other = KeyedRequest { ttl: HOUR, ..of("ada", "k-1", 2)? };
    let later = run(&bench, &other, write(&bench, "b", keep("made later"))).await?;
    ensure_eq!(later, Admission::Granted(()), "another request under the key, after its time");
    ensure_eq!(run(&bench, &other, write(&bench, "c", keep("x"))).await?, replay("made later"), "the same again");
    Ok(())
}

pub(crate) async fn only_keys_whose_time_is_over_are_deleted<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let lease = bench.harness.timing().lease;
    for key in ["k-1", "k-2", "k-3"] {
        let short = KeyedRequest { ttl: lease, ..of("ada", key, 1)? };
        run(&bench, &short, write(&bench, "a", keep("made"))).await?;
    }
    let leased = KeyedRequest { ttl: lease, ..of("ada", "k-4", 1)? };
    bench.store.claim_key(&leased, HOUR).await?;
    let long = of("ada", "k-5", 1)?;
    run(&bench, &long, write(&bench, "a", keep("made"))).await?;
    bench.outlast_lease().await;
    let mut deleted = Vec::new();
    for _ in 0..3 {
        deleted.push(bench.store.delete_expired_keys(2).await?);
    }
    ensure_eq!(deleted, [2, 1, 0], "how many keys three calls with a limit of two deleted");
    ensure_eq!(run(&bench, &long, write(&bench, "b", keep("x"))).await?, replay("made"), "a key that has time left");
    ensure_eq!(bench.store.claim_key(&leased, HOUR).await?, Admission::InFlight, "a key whose lease lasts");
    Ok(())
}

pub(crate) async fn a_body_that_ended_the_transaction_keeps_no_response<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let request = of("ada", "k-1", 1)?;
    let body = Write { ends_transaction: true, ..write(&bench, "a", keep("made")) };
    let ended = bench.store.run_once(Some(request.clone()), Box::new(body)).await;
    let error = match ended {
        Err(error) => error,
        Ok(admission) => return Err(Failed(format!("a body that ended its transaction was answered {admission:?}"))),
    };
    ensure_eq!(error.kind(), StoreErrorKind::Misuse, "the kind of its error");
    let again = run(&bench, &request, write(&bench, "a", keep("made"))).await?;
    ensure_eq!(again, Admission::Granted(()), "the same request again");
    Ok(())
}

pub(crate) async fn a_body_without_a_key_has_its_transaction<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    for _ in 0..2 {
        let body = write(&bench, "a", keep("made"));
        let runs = Arc::clone(&body.runs);
        ensure_eq!(
            bench.store.run_once(None, Box::new(body)).await?,
            Admission::Granted(()),
            "a request without a key"
        );
        ensure!(runs.load(Ordering::SeqCst) > 0, "a request without a key did not run");
    }
    ensure_eq!(bench.business("a").await, Some(12), "what it wrote");
    bench.store.run_once(None, Box::new(write(&bench, "b", KeyVerdict::RollBack))).await?;
    ensure_eq!(bench.business("b").await, None, "what was rolled back");
    Ok(())
}
