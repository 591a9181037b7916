//! The JSON of the routes as OpenAPI describes it. A test compares real answers with it.
#![expect(dead_code, reason = "only the schemas of these types are used")]

use serde_json::Value;
use utoipa::ToSchema;

/// A saga as a list shows it.
#[derive(ToSchema)]
pub(crate) struct SagaSummary {
    id: i64,
    /// The tenant that the saga belongs to.
    tenant: String,
    /// The key with which the saga was started. A sub-saga has the key of its saga, `>` and its step.
    key: String,
    /// The definition's name.
    saga: String,
    /// The definition's version.
    version: u32,
    status: Status,
    /// How it ended, or why it is stuck.
    outcome: Option<Outcome>,
    paused: Option<PausedBy>,
    #[schema(format = DateTime)]
    started_at: String,
    /// When it was last advanced.
    #[schema(format = DateTime)]
    advanced_at: String,
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// Why the process that answered does nothing of the saga.
    waits_for: Option<String>,
    /// The key of the saga that it is a step of.
    step_of: Option<String>,
}

/// A saga, step by step.
#[derive(ToSchema)]
pub(crate) struct SagaStatus {
    #[serde(flatten)]
    summary: SagaSummary,
    /// How many decisions about the saga were committed.
    revision: u64,
    /// The steps in the order of the definition.
    steps: Vec<StepStatus>,
    /// When the saga starts compensating.
    #[schema(format = DateTime)]
    deadline: Option<String>,
    /// What else happened, oldest first.
    history: Vec<HistoryEvent>,
    /// Why the saga has no result. It is absent unless the saga was compensated or is stuck.
    problem: Option<SagaProblem>,
}

/// The status of a saga.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Running,
    Compensating,
    Completed,
    Compensated,
    Stuck,
    Paused,
}

/// How a saga ended, or why it is stuck.
#[derive(ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Every step is done.
    Completed {
        /// The reason that an operator gave for ending it so.
        forced: Option<String>,
        /// What the saga returned.
        result: Option<Value>,
        /// Why the result could not be made.
        no_result: Option<String>,
    },
    /// Every step that took effect is undone.
    Compensated {
        /// The step that failed, or that the saga had come to.
        failed_step: String,
        reason: Rejection,
        cause: CompensationCause,
        /// The reason that an operator gave for ending it so.
        forced: Option<String>,
    },
    /// An operator has to act.
    Stuck { step: String, reason: String },
}

/// What made a saga compensate.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CompensationCause {
    StepFailed,
    Cancelled,
    DeadlinePassed,
    Forced,
}

/// The reason of a rejection.
#[derive(ToSchema)]
pub(crate) struct Rejection {
    message: String,
    /// The error that the step gave, as JSON in a text.
    details: Option<String>,
}

/// Who paused a saga, and why.
#[derive(ToSchema)]
pub(crate) struct PausedBy {
    actor: Option<String>,
    reason: String,
    #[schema(format = DateTime)]
    since: Option<String>,
}

/// A step of a saga.
#[derive(ToSchema)]
pub(crate) struct StepStatus {
    step: String,
    /// The steps that it follows.
    after: Vec<String>,
    /// Such as `ready`, `started`, `waiting`, `done`, `rejected`, `undoing` or `undone`.
    phase: String,
    child: Option<ChildStatus>,
    /// The names of its arms, if it is a choice.
    arms: Vec<String>,
    /// The arm that runs.
    taken: Option<String>,
    /// The id of the signal that it waited for.
    signal: Option<String>,
    wait: Option<WaitKind>,
    /// The semantic lock that the step takes, while the saga has it or waits for it; or the lock of the step itself, while it is
    /// called or waits for its lock.
    lock: Option<LockStatus>,
    items: Option<ItemCounts>,
    /// Why an operator must decide about it.
    stuck: Option<String>,
    /// How many attempts were made, of the step and of its undos.
    attempts: u32,
    /// When its result was recorded.
    #[schema(format = DateTime)]
    recorded_at: Option<String>,
    /// How many seconds its last attempt took.
    took_s: Option<f64>,
    /// When its undo was recorded.
    #[schema(format = DateTime)]
    undone_at: Option<String>,
    /// Since when its attempts have failed.
    #[schema(format = DateTime)]
    retrying_since: Option<String>,
    /// Whether an operator should look at its error.
    failing: bool,
    /// When its next attempt is due.
    #[schema(format = DateTime)]
    due_at: Option<String>,
    /// Why it failed, or the error of its last attempt.
    error: Option<String>,
    progress: Option<StepProgress>,
}

/// The sub-saga of a step.
#[derive(ToSchema)]
pub(crate) struct ChildStatus {
    key: String,
    status: Option<Status>,
    outcome: Option<Outcome>,
}

/// What a step waits for that only waits.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitKind {
    Sleep,
    Signal,
    SemanticLock,
}

/// The entities of a lock, and the sagas that it waits for.
#[derive(ToSchema)]
pub(crate) struct LockStatus {
    scope: LockScope,
    /// Whether the lock is granted. If not, the saga waits for it.
    granted: bool,
    entities: Vec<LockedEntity>,
    /// The sagas that it waits for, by their keys.
    waits_for: Vec<String>,
    /// Since when the saga has the lock, or waits for it.
    #[schema(format = DateTime)]
    since: String,
}

/// Whether it is a semantic lock of the saga, or the lock of one step.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum LockScope {
    Saga,
    Step,
}

/// An entity of a lock.
#[derive(ToSchema)]
pub(crate) struct LockedEntity {
    kind: String,
    id: String,
    /// Its fencing token, if the lock is granted.
    token: Option<u64>,
}

/// How far the items of a step are that runs for each item of a list.
#[derive(ToSchema)]
pub(crate) struct ItemCounts {
    all: u64,
    /// Done, and not undone.
    done: u64,
    undone: u64,
    /// Not begun.
    waiting: u64,
}

/// The last progress report of a step.
#[derive(ToSchema)]
pub(crate) struct StepProgress {
    #[schema(format = DateTime)]
    at: String,
    /// The report, as JSON in a text.
    report: String,
}

/// What happened to a saga beside the results of its steps.
#[derive(ToSchema)]
pub(crate) struct HistoryEvent {
    #[schema(format = DateTime)]
    at: String,
    kind: String,
    step: Option<String>,
    /// The attempt that it is about, or 0.
    attempt: u32,
    detail: String,
    audit: Option<AuditEntry>,
}

/// What an operator did, and why.
#[derive(ToSchema)]
pub(crate) struct AuditEntry {
    /// Such as `retry`, `skip`, `cancel`, `pause` or `resume`.
    act: String,
    by: Option<String>,
    why: String,
    step: Option<String>,
    input: Option<ReplacedInput>,
    /// The key of the other saga of a restart.
    saga: Option<String>,
    /// The id of the plan that it is part of.
    plan: Option<String>,
}

/// An input that was replaced, and by what, as hashes.
#[derive(ToSchema)]
pub(crate) struct ReplacedInput {
    step: String,
    old: String,
    new: String,
}

/// Why a saga has no result.
#[derive(ToSchema)]
pub(crate) struct SagaProblem {
    /// `urn:saga:compensated` or `urn:saga:stuck`.
    r#type: String,
    title: String,
    detail: String,
    /// The step that failed or cannot go on.
    step: String,
    cause: Option<CompensationCause>,
    /// The error that the step gave.
    error: Option<Value>,
}

/// A page of sagas, without those that the client may not see.
#[derive(ToSchema)]
pub(crate) struct SagaPage {
    sagas: Vec<SagaSummary>,
    /// The parameter `after` of the next page; null on the last one.
    next: Option<String>,
}

/// A page of dead letters, without those that the client may not see.
#[derive(ToSchema)]
pub(crate) struct DeadLetterPage {
    dead_letters: Vec<DeadLetterSummary>,
    /// The parameter `after` of the next page; null on the last one.
    next: Option<String>,
}

/// A message that could not be handled, without what it contains.
#[derive(ToSchema)]
pub(crate) struct DeadLetterSummary {
    id: i64,
    state: DeadLetterState,
    /// Such as `unreadable`, `too-old` or `not-authorized`.
    reason: String,
    /// The same in a sentence.
    detail: String,
    /// Where it came from, such as the name of a subscription.
    source: String,
    tenant: String,
    message_id: Option<String>,
    /// How often it was tried.
    attempts: u32,
    /// How often it arrived.
    seen: u64,
    /// When it first arrived.
    #[schema(format = DateTime)]
    buried_at: String,
    /// When it was replayed or discarded.
    #[schema(format = DateTime)]
    decided_at: Option<String>,
    /// The reason that the operator gave.
    note: Option<String>,
}

/// A message that could not be handled.
#[derive(ToSchema)]
pub(crate) struct DeadLetter {
    #[serde(flatten)]
    summary: DeadLetterSummary,
    /// Names and texts.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    headers: Value,
    /// The content, in which bytes that are no text are replaced.
    payload: String,
}

/// The state of a dead letter.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeadLetterState {
    Open,
    Replayed,
    Discarded,
}

/// An error of a request, after RFC 9457.
#[derive(ToSchema)]
pub(crate) struct Problem {
    title: String,
    status: u16,
    detail: String,
}
