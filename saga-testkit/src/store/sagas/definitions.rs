//! What definitions are kept as, and sagas that move from one version to another.

use saga_core::store::{
    Applied, Changes, ClaimRequest, Condition, DefinitionId, Definitions, HistoryEntry, HistoryKind, Lease, Miss,
    NewDefinition, RecordedOutcome, Records, RewrittenRecord, SagaMigration, Status, StepId, StoredDefinition, Work,
    WorkId,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, OTHER, STEP, definition};
use crate::harness::StoreHarness;

fn version(version: u32) -> DefinitionId {
    DefinitionId { version, ..definition() }
}

fn new(version: u32, digest: u8) -> NewDefinition {
    NewDefinition { id: self::version(version), digest: [digest; 32], shape: shape(digest) }
}

fn shape(digest: u8) -> String {
    format!(r#"{{"steps":[],"pivot":{digest}}}"#)
}

fn kept(version: u32, digest: u8) -> StoredDefinition {
    StoredDefinition { id: self::version(version), digest: [digest; 32], shape: Some(shape(digest)) }
}

fn to_version_2(begun: &Begun, expected: u64) -> SagaMigration {
    SagaMigration {
        saga: begun.id,
        tenant: begun.tenant.clone(),
        key: begun.key.clone(),
        expected,
        definition: version(2),
        digest: [8; 32],
        state: b"moved".to_vec(),
        rewritten: Vec::new(),
        records: Vec::new(),
        withdrawn: Vec::new(),
        history: vec![HistoryEntry {
            saga: begun.id,
            step: None,
            kind: HistoryKind::Migrated,
            attempt: 0,
            detail: "to version 2".into(),
        }],
    }
}

async fn moved<H: StoreHarness>(bench: &Bench<H>, moved: SagaMigration) -> Outcome {
    let applied = bench.store.migrate(moved).await?;
    ensure!(matches!(applied, Ok(())), "expected the saga to move, got {applied:?}");
    Ok(())
}

/// Refused, and nothing of it was written.
async fn refused<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, wanted: SagaMigration) -> Result<Miss, Failed> {
    let before = bench.whole(begun).await?;
    let applied: Applied = bench.store.migrate(wanted).await?;
    let after = bench.whole(begun).await?;
    ensure_eq!(after.saga, before.saga, "the saga behind a move that missed");
    ensure_eq!(after.records, before.records, "its records");
    ensure_eq!(after.history, before.history, "its history");
    applied.err().ok_or_else(|| Failed("the saga moved, and was to stay".into()))
}

async fn claimed_by_version<H: StoreHarness>(bench: &Bench<H>, version: u32, lease: Lease) -> Result<usize, Failed> {
    let request = ClaimRequest { lease, limit: 10, definitions: [self::version(version)].into(), takes_over: true };
    Ok(bench.store.claim(request).await?.work.len())
}

pub(crate) async fn a_definition_is_kept_as_it_was_first<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let answers = bench.store.register(vec![new(2, 5), new(1, 4)]).await?;
    ensure_eq!(answers, [kept(2, 5), kept(1, 4)], "the answers, in the order of the request");
    let again = bench.store.register(vec![new(1, 4), new(2, 5)]).await?;
    ensure_eq!(again, [kept(1, 4), kept(2, 5)], "the answers to the same again");
    ensure_eq!(bench.store.register(Vec::new()).await?, [], "the answer to nothing");
    let bench = bench.reopen().await?;
    let later = bench.store.register(vec![new(1, 4)]).await?;
    ensure_eq!(later, [kept(1, 4)], "the answer to the next process");
    Ok(())
}

pub(crate) async fn of_many_at_once_one_is_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    // With a saga, none of them takes the place of another.
    let mut saga = bench.new_saga(&saga_core::Tenant::default(), "k-1").await?;
    saga.status = Status::Completed;
    saga.commands.clear();
    bench.start_new(saga).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for digest in 1..=8 {
        let bench = bench.clone();
        tasks.spawn(async move { bench.store.register(vec![new(1, digest)]).await });
    }
    let mut answers = Vec::new();
    while let Some(answer) = tasks.join_next().await {
        answers.extend(answer.map_err(|error| Failed(error.to_string()))??);
    }
    let first = answers.first().cloned().ok_or_else(|| Failed("no answer".into()))?;
    ensure_eq!(answers, vec![first.clone(); 8], "what each of them was answered");
    ensure_eq!(bench.store.definitions().await?, [first], "what is kept");
    Ok(())
}

pub(crate) async fn a_definition_stays_once_it_was_used<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.store.register(vec![new(1, 7), new(2, 2)]).await?;
    let unused = bench.store.register(vec![new(1, 3), new(1, 7)]).await?;
    ensure_eq!(unused, [kept(1, 3), kept(1, 7)], "the answers while no saga has it");
    let begun = bench.start("k-1").await?;
    bench.advance(&begun, 1, Status::Completed).await?;
    let used = bench.store.register(vec![new(1, 3), new(2, 9)]).await?;
    ensure_eq!(used, [kept(1, 7), kept(2, 9)], "the answers when a saga has the first");
    Ok(())
}

pub(crate) async fn sagas_tell_what_was_not_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let other = bench.store.register(vec![new(1, 3)]).await?;
    let told = StoredDefinition { id: version(1), digest: [7; 32], shape: None };
    ensure_eq!(other, [told], "the answer where a saga that has not ended has another digest");
    ensure_eq!(bench.store.definitions().await?, [], "what is kept then");
    ensure_eq!(bench.store.register(vec![new(1, 7)]).await?, [kept(1, 7)], "the answer where it has the same");
    let ended = bench.new_saga(&saga_core::Tenant::default(), "k-2").await?;
    let ended = saga_core::store::NewSaga { definition: version(2), status: Status::Completed, ..ended };
    bench.start_new(saga_core::store::NewSaga { commands: Vec::new(), ..ended }).await?;
    ensure_eq!(bench.store.register(vec![new(2, 3)]).await?, [kept(2, 3)], "the answer where it has ended");
    ensure_eq!(bench.saga(&begun).await?.version, 1, "the version of the saga");
    Ok(())
}

pub(crate) async fn definitions_are_listed_by_name_and_version<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let refunds = DefinitionId { name: "refunds".into(), version: 1 };
    let refunds = NewDefinition { id: refunds, ..new(1, 6) };
    bench.store.register(vec![refunds.clone(), new(3, 3), new(2, 2)]).await?;
    let refunds = StoredDefinition { id: refunds.id, ..kept(1, 6) };
    ensure_eq!(bench.store.definitions().await?, [kept(2, 2), kept(3, 3), refunds], "the list");
    Ok(())
}

pub(crate) async fn a_moved_saga_has_its_new_version<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.advance(&begun, 1, Status::Compensating).await?;
    let before = bench.saga(&begun).await?;
    moved(&bench, to_version_2(&begun, 2)).await?;
    let bench = bench.reopen().await?;
    let whole = bench.whole(&begun).await?;
    let after = whole.saga;
    ensure_eq!((&after.definition, after.digest), (&version(2), [8; 32]), "its definition");
    ensure_eq!((after.version, after.status), (3, Status::Compensating), "its version and its status");
    ensure_eq!(after.state, b"moved", "its state");
    ensure_eq!((after.input, after.started_at), (before.input, before.started_at), "what it was started with");
    let kinds: Vec<HistoryKind> = whole.history.iter().map(|(_, entry)| entry.kind).collect();
    ensure_eq!(kinds, [HistoryKind::Migrated], "its history");
    Ok(())
}

pub(crate) async fn a_saga_that_moved_on_is_not_moved<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.advance(&begun, 1, Status::Running).await?;
    let miss = refused(&bench, &begun, to_version_2(&begun, 1)).await?;
    let Miss::Saga(row) = miss else { return Err(Failed(format!("it missed as {miss:?}"))) };
    ensure_eq!(*row, bench.saga(&begun).await?, "the saga that came with it");
    ensure_eq!(claimed_by_version(&bench, 1, bench.lease().await?).await?, 1, "its work by its own version");
    Ok(())
}

pub(crate) async fn its_work_belongs_to_the_new_version<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.start("k-2").await?;
    let postponed = saga_core::store::Postponed {
        in_doubt: true,
        error: Some("busy".into()),
        ..begun.postponed(std::time::Duration::ZERO)
    };
    bench.apply(Changes { postponed: vec![postponed], ..Changes::default() }).await?;
    moved(&bench, to_version_2(&begun, 1)).await?;
    let lease = bench.lease().await?;
    let request = ClaimRequest { lease, limit: 10, definitions: [version(2)].into(), takes_over: true };
    let claimed = bench.store.claim(request).await?.work;
    ensure_eq!(claimed.len(), 1, "the claim of a process that knows the new version");
    let work = &claimed[0];
    ensure_eq!((work.work.id, work.work.epoch), (begun.work.id, 3), "the row, moved and claimed");
    ensure_eq!((work.attempts, work.in_doubt, work.recovered), (1, true, false), "what the row remembers");
    let stale = Changes { finished: vec![(begun.work, Condition::Held)], ..Changes::default() };
    let stale = bench.store.record(vec![stale]).await?;
    ensure!(matches!(stale[..], [Err(Miss::Work(_))]), "an owner from before the move decided: {stale:?}");
    ensure_eq!(claimed_by_version(&bench, 1, lease).await?, 1, "what is left to the old version");
    Ok(())
}

pub(crate) async fn held_work_stays<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let lease = Lease { ttl: HOUR, ..bench.short_lease().await? };
    let claimed = bench.claim_one(lease).await?;
    let miss = refused(&bench, &begun, to_version_2(&begun, 1)).await?;
    ensure!(matches!(miss, Miss::Work(id) if id == begun.work.id), "it missed as {miss:?}");
    ensure_eq!(bench.store.release_work(&[claimed.work]).await?, [true], "giving the row back");
    moved(&bench, to_version_2(&begun, 1)).await
}

pub(crate) async fn work_of_a_vanished_owner_moves_and_is_suspect<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.claim_one(bench.short_lease().await?).await?;
    bench.outlast_lease().await;
    moved(&bench, to_version_2(&begun, 1)).await?;
    let request =
        ClaimRequest { lease: bench.lease().await?, limit: 10, definitions: [version(2)].into(), takes_over: true };
    let suspects: Vec<bool> = bench.store.claim(request).await?.work.iter().map(|work| work.recovered).collect();
    ensure_eq!(suspects, [true], "the row of an owner that vanished");
    Ok(())
}

pub(crate) async fn records_move_with_their_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.apply(begun.done(1)).await?;
    bench.apply(Changes { records: vec![begun.record(OTHER, RecordedOutcome::Done)], ..Changes::default() }).await?;
    let (step, other) = (StepId::doing(STEP), StepId::doing(OTHER));
    let third = StepId::doing("pack");
    let changes = SagaMigration {
        rewritten: vec![
            RewrittenRecord { from: step.clone(), to: other.clone(), output: Some(b"new".to_vec()), input: None },
            RewrittenRecord { from: other.clone(), to: third.clone(), output: None, input: Some(b"given".to_vec()) },
        ],
        records: vec![saga_core::store::NewRecord {
            output: None,
            position: 3,
            ..begun.record("weigh", RecordedOutcome::Skipped)
        }],
        ..to_version_2(&begun, 2)
    };
    moved(&bench, changes).await?;
    let mut records: Vec<_> = bench.whole(&begun).await?.records;
    records.sort_by(|one, other| one.step.as_str().cmp(other.step.as_str()));
    let given = records.iter().map(|record| record.input.as_deref());
    let expected: [Option<&[u8]>; 3] = [None, Some(b"given"), None];
    ensure!(given.eq(expected), "the records have the inputs {records:?}");
    let records: Vec<_> =
        records.iter().map(|record| (record.step.as_str(), record.outcome, record.output.as_deref())).collect();
    let expected: [(&str, RecordedOutcome, Option<&[u8]>); 3] = [
        (OTHER, RecordedOutcome::Done, Some(b"new")),
        ("pack", RecordedOutcome::Done, Some(b"output")),
        ("weigh", RecordedOutcome::Skipped, None),
    ];
    ensure_eq!(records, expected, "the records");
    Ok(())
}

pub(crate) async fn records_in_the_way_leave_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.apply(begun.done(1)).await?;
    let (step, other) = (StepId::doing(STEP), StepId::doing(OTHER));
    let gone = RewrittenRecord { from: other.clone(), to: StepId::doing("pack"), output: None, input: None };
    let miss = refused(&bench, &begun, SagaMigration { rewritten: vec![gone], ..to_version_2(&begun, 2) }).await?;
    ensure!(matches!(&miss, Miss::Record(missed) if *missed == other), "it missed as {miss:?}");
    let twice = vec![begun.record(STEP, RecordedOutcome::Skipped)];
    let miss = refused(&bench, &begun, SagaMigration { records: twice, ..to_version_2(&begun, 2) }).await?;
    ensure!(matches!(&miss, Miss::Record(missed) if *missed == step), "it missed as {miss:?}");
    Ok(())
}

pub(crate) async fn withdrawn_work_goes_with_the_move<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let (stays, gone) = (WorkId(bench.id().await?), WorkId(bench.id().await?));
    bench.apply(Changes { commands: vec![begun.command(stays, OTHER)], ..Changes::default() }).await?;
    let changes = SagaMigration { withdrawn: vec![begun.work.id, gone], ..to_version_2(&begun, 1) };
    let miss = refused(&bench, &begun, SagaMigration { expected: 7, ..changes.clone() }).await?;
    ensure!(matches!(miss, Miss::Saga(_)), "it missed as {miss:?}");
    ensure_eq!(bench.whole(&begun).await?.work.len(), 2, "the rows behind a move that missed");
    moved(&bench, changes).await?;
    let left: Vec<WorkId> = bench.whole(&begun).await?.work.iter().map(|work| work.work.id).collect();
    ensure_eq!(left, [stays], "the rows that are left");
    Ok(())
}
