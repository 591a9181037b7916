use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::call_keys::{CallKeys, ExternalKey};
use super::reports::{Reporting, Reports};
use crate::env::Environment;
use crate::key::Tenant;
use crate::step::parameters::locked_entity::LockedEntity;
use crate::step::{CancelSignal, Emitted, Event, OptionalOutputs, StepError};

/// The context of one call of a step: its key, attempt, time left, cancellation and events.
///
/// # Examples
///
/// ```
/// use saga_core::step::{StepContext, StepError};
///
/// async fn charge_card(ctx: &StepContext, cents: u64) -> Result<String, StepError> {
///     Ok(format!("POST /charges, Idempotency-Key: {}, {cents}", ctx.key()))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let ctx = StepContext::for_test("order-7:charge-card").with_attempt(2);
/// assert!(charge_card(&ctx, 1200).await.unwrap().contains("order-7:charge-card"));
/// # });
/// ```
pub struct StepContext {
    pub(in crate::step) parts: ContextParts,
    emitted: Mutex<Vec<Emitted>>,
    pub(in crate::step) reports: Reports,
}

/// What the engine says about a call.
pub(crate) struct ContextParts {
    pub(crate) keys: CallKeys,
    /// Which attempt this is, from 1.
    pub(crate) attempt: u32,
    /// The epoch under which the work was claimed.
    pub(crate) fence: u64,
    /// What is left until the call is given up.
    pub(crate) time_left: Option<TimeLeft>,
    /// Given when the call is no longer wanted.
    pub(crate) cancel: CancelSignal,
    /// Why the saga compensates, in a compensation.
    pub(crate) failure: Option<FailedStep>,
    /// The trace context of the saga.
    pub(crate) traceparent: Option<String>,
    /// What earlier steps returned, of those that a step reads which an event asked for.
    pub(crate) earlier: OptionalOutputs,
    /// What it may report, and what was reported before it.
    pub(crate) reporting: Reporting,
    /// What the step has locked for this call.
    pub(crate) locked: Vec<LockedEntity>,
}

impl ContextParts {
    /// A call of a step, without outputs of other steps or a place for reports.
    pub(crate) fn new(
        keys: CallKeys,
        attempt: u32,
        fence: u64,
        time_left: Option<TimeLeft>,
        cancel: CancelSignal,
    ) -> Self {
        Self {
            keys,
            attempt,
            fence,
            time_left,
            cancel,
            failure: None,
            traceparent: None,
            earlier: OptionalOutputs::default(),
            reporting: Reporting::default(),
            locked: Vec::new(),
        }
    }
}

/// What is left until a call is given up.
pub(crate) enum TimeLeft {
    /// So much, however long the call takes.
    Always(Duration),
    /// Until then, by this clock.
    Until(Duration, Arc<dyn Environment>),
}

/// The step that made a saga compensate. If the saga was cancelled, the step that it had reached, with the reason of the
/// cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedStep {
    /// The step's name.
    pub step: String,
    /// The reason of the failure.
    pub message: String,
}

impl StepContext {
    /// The context of a call by the engine.
    pub(crate) fn new(parts: ContextParts) -> Self {
        Self { parts, emitted: Mutex::default(), reports: Reports::default() }
    }

    /// Makes a context for a test.
    ///
    /// It is the first attempt, without a time limit, with the fencing token 1. In a key of the form `key:step`, the part
    /// before the step is the key of the saga.
    pub fn for_test(key: impl Into<String>) -> Self {
        let key = key.into();
        let undone = key.strip_suffix(":undo").map(str::to_owned);
        let saga_key = undone.as_deref().unwrap_or(&key);
        let saga_key = saga_key.rsplit_once(':').map_or(saga_key, |(saga_key, _)| saga_key).into();
        let do_key = undone.map(ExternalKey::given);
        let keys = CallKeys { key: ExternalKey::given(key), do_key, saga_key, saga_name: "test".into() };
        Self::new(ContextParts::new(keys, 1, 1, None, CancelSignal::new()))
    }

    /// The same context for another attempt; the first is 1.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.parts.attempt = attempt;
        self
    }

    /// The same context with this much time left, however long the test takes.
    #[must_use]
    pub fn with_time_left(mut self, time_left: Duration) -> Self {
        self.parts.time_left = Some(TimeLeft::Always(time_left));
        self
    }

    /// The same context with another fencing token.
    #[must_use]
    pub fn with_fencing_token(mut self, fence: u64) -> Self {
        self.parts.fence = fence;
        self
    }

    /// Cancels the call, as the runtime does when the work of a step is no longer wanted. A test calls it before the step, or
    /// beside it.
    pub fn cancel_for_test(&self) {
        self.parts.cancel.cancel();
    }

    /// The idempotency key of this call for other services: `key:step`, or `namespace/tenant/key:step` if a namespace is set
    /// or the tenant is not the default one. The key of a compensation ends in `:undo`.
    ///
    /// All attempts of one step of one saga have the same key, and no other call has it.
    pub fn key(&self) -> &str {
        self.parts.keys.key.text()
    }

    /// In a compensation, the key of the step that it undoes; in a step, the same as [`key`](Self::key).
    pub fn original_key(&self) -> &str {
        self.parts.keys.do_key.as_ref().unwrap_or(&self.parts.keys.key).text()
    }

    /// The key with which the saga was started.
    pub fn saga_key(&self) -> &str {
        &self.parts.keys.saga_key
    }

    /// The name of the saga's definition; `test` in a context [for a test](Self::for_test).
    pub fn saga(&self) -> &str {
        &self.parts.keys.saga_name
    }

    /// The tenant of the saga; in a context for a test, the default tenant.
    pub fn tenant(&self) -> &Tenant {
        self.parts.keys.key.tenant()
    }

    /// The trace context that the saga was started with: a `traceparent` header of W3C Trace Context. A hosted step has that of the
    /// saga that asked for it. Pass it on in the calls of the step.
    pub fn traceparent(&self) -> Option<&str> {
        self.parts.traceparent.as_deref()
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// The time until the runtime drops this call; `None` if it has no limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.parts.time_left.as_ref().map(TimeLeft::read)
    }

    /// A number that grows each time another worker takes the step over.
    ///
    /// Another system that receives it with each write can refuse the writes of an earlier owner. Compare it only between
    /// calls with the same key.
    pub fn fencing_token(&self) -> u64 {
        self.parts.fence
    }

    /// Why the saga compensates: the failed step and its reason. `None` in a step.
    pub fn failure(&self) -> Option<&FailedStep> {
        self.parts.failure.as_ref()
    }

    /// The same context with the failure that a compensation reads.
    #[must_use]
    pub fn with_failure(mut self, step: impl Into<String>, message: impl Into<String>) -> Self {
        self.parts.failure = Some(FailedStep { step: step.into(), message: message.into() });
        self
    }

    /// Whether this call is cancelled: the runtime shuts down, the saga started compensating, or the process lost the lease.
    pub fn is_cancelled(&self) -> bool {
        self.parts.cancel.is_cancelled()
    }

    /// Waits until this call is cancelled.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped and called again at any time, so it can be a branch of `select!`.
    pub async fn cancelled(&self) {
        self.parts.cancel.cancelled().await;
    }

    /// Publishes an event to its subscribers. The event is written in the commit that records this call as done; otherwise
    /// it is not sent. Its topic is the name of the saga definition; in a choreography it is the name of the event.
    ///
    /// # Errors
    ///
    /// The event's own `Serialize` failed. The error is transient, like every unclassified error.
    pub fn emit<E: Event>(&self, event: &E) -> Result<(), StepError> {
        let payload = serde_json::to_vec(event)?;
        self.lock().push(Emitted { name: E::NAME.into(), payload });
        Ok(())
    }

    /// The events of one type that this call has emitted so far, for tests.
    ///
    /// # Panics
    ///
    /// The event's `Deserialize` cannot read the output of its `Serialize`; no subscriber could read it either.
    pub fn emitted<E: Event>(&self) -> Vec<E> {
        let emitted = self.lock();
        let of_type = emitted.iter().filter(|emitted| emitted.name == E::NAME);
        of_type
            .map(|emitted| match serde_json::from_slice(&emitted.payload) {
                Ok(event) => event,
                Err(error) => panic!("the event `{}` cannot be read back: {error}", E::NAME),
            })
            .collect()
    }

    /// What this call has emitted, in order; nothing is left.
    #[doc(hidden)]
    pub fn take_emitted(&self) -> Vec<Emitted> {
        std::mem::take(&mut self.lock())
    }

    /// A panic while the list was held leaves it whole: `push` is the only write.
    fn lock(&self) -> MutexGuard<'_, Vec<Emitted>> {
        self.emitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TimeLeft {
    fn read(&self) -> Duration {
        match self {
            Self::Always(left) => *left,
            Self::Until(end, env) => end.saturating_sub(env.now()),
        }
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext").field("parts", &self.parts).field("emitted", &self.lock()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ContextParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextParts")
            .field("key", &self.keys.key.text())
            .field("attempt", &self.attempt)
            .field("fence", &self.fence)
            .field("time_left", &self.time_left.as_ref().map(TimeLeft::read))
            .field("cancelled", &self.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Placed(u64);

    impl Event for Placed {
        const NAME: &'static str = "placed";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Paid(u64);

    impl Event for Paid {
        const NAME: &'static str = "paid";
    }

    #[test]
    fn the_keys_of_a_test_are_read_from_the_one_that_is_given() {
        let check = |key: &str, do_key: &str, saga_key: &str| {
            let ctx = StepContext::for_test(key);
            assert_eq!((ctx.key(), ctx.original_key(), ctx.saga_key()), (key, do_key, saga_key));
        };
        check("order-7:charge", "order-7:charge", "order-7");
        check("order-7:charge:undo", "order-7:charge", "order-7");
        check("a:b:charge", "a:b:charge", "a:b");
        check("order-7", "order-7", "order-7");
        check("order-7:undo", "order-7", "order-7");
    }

    #[test]
    fn a_test_sets_what_the_step_looks_at() {
        let plain = StepContext::for_test("order-7:charge");
        assert_eq!((plain.attempt(), plain.fencing_token(), plain.time_left()), (1, 1, None));
        let ctx = plain.with_attempt(3).with_fencing_token(9).with_time_left(Duration::from_secs(2));
        assert_eq!((ctx.attempt(), ctx.fencing_token(), ctx.time_left()), (3, 9, Some(Duration::from_secs(2))));
    }

    #[tokio::test]
    async fn a_test_cancels_a_step_halfway() {
        let ctx = StepContext::for_test("order-7:charge");
        let step = async {
            assert!(!ctx.is_cancelled(), "it has begun");
            ctx.cancelled().await;
        };
        tokio::join!(step, async { ctx.cancel_for_test() });
        assert!(ctx.is_cancelled());
    }

    #[test]
    fn events_are_kept_in_order_and_taken_once() {
        let ctx = StepContext::for_test("order-7:charge");
        ctx.emit(&Placed(1)).unwrap();
        ctx.emit(&Paid(2)).unwrap();
        ctx.emit(&Placed(3)).unwrap();
        assert_eq!(ctx.emitted::<Placed>(), [Placed(1), Placed(3)]);
        assert_eq!(ctx.emitted::<Paid>(), [Paid(2)]);
        let names: Vec<_> = ctx.take_emitted().into_iter().map(|emitted| emitted.name).collect();
        assert_eq!(names, ["placed", "paid", "placed"]);
        assert_eq!(ctx.take_emitted(), []);
    }
}
