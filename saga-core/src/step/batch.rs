use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::{Emitted, IntoStepError, StepContext, StepError};

/// The inputs of many sagas for one call of a *batch step*.
///
/// A step function that takes a `Batch<T>` is called once for all sagas of a tenant that are at that step and share a
/// transaction, so that one statement can write for all of them. It returns one result for each input. Only [`map_each`](Self::map_each) makes
/// these results, so none is missing or in the place of another.
///
/// The saga sees an ordinary step from `T` to `R`: each saga has its own step key, record, retries and compensation.
///
/// - **A result that rejects or fails affects its own saga only.** It promises that the call wrote nothing for that saga:
///   the writes of the call are kept, and the runtime cannot tell the rows of one saga from those of another.
/// - **An `Err` of the whole call, an SQL error or a panic** rolls back all writes of the call. The runtime then calls the
///   step with half of the inputs, until the error concerns a single saga, and counts as an attempt of that saga. One bad
///   input in a hundred costs about fourteen more calls, and no further transaction.
/// - A batch is a slice of its inputs. All of them belong to one saga definition, and there is at least one. The number of
///   inputs depends on how many sagas wait. An input that was recovered from a dead process is always alone.
///
/// # Examples
///
/// ```
/// use saga_core::memory::MemoryConn;
/// use saga_core::{Batch, BatchResults, StepError, saga_step};
///
/// #[saga_step(no_compensation)]
/// async fn reserve_stock(tx: &mut MemoryConn, orders: Batch<u32>) -> Result<BatchResults<String>, StepError> {
///     // One write for all inputs except the rejected ones.
///     let pieces: u32 = orders.iter().filter(|pieces| **pieces > 0).sum();
///     tx.add("reserved", i64::from(pieces))?;
///     Ok(orders.map_each(|pieces| match pieces {
///         0 => Err(StepError::reject("nothing was ordered")),
///         pieces => Ok(format!("{pieces} pieces")),
///     }))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = saga_core::memory::MemoryStore::new();
/// let mut transaction = store.transaction();
/// let answers = reserve_stock(transaction.conn(), Batch::for_test([2, 0, 5])).await.unwrap().into_results();
/// assert_eq!(answers[0].as_deref().ok(), Some("2 pieces"));
/// assert!(answers[1].as_ref().is_err_and(|error| error.to_string() == "nothing was ordered"));
/// assert_eq!(transaction.conn().counter("reserved"), 7);
/// # });
/// ```
pub struct Batch<T> {
    inputs: Vec<T>,
    contexts: Arc<Contexts>,
}

/// The results of a [`Batch`], one for each of its inputs. Only [`Batch::map_each`] and [`Batch::map_each_with`] make them.
pub struct BatchResults<R> {
    answers: Vec<Result<R, StepError>>,
    /// Of which batch they are.
    contexts: Arc<Contexts>,
}

/// What a closure can return for one input: the output, or a `Result` with it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer of a step that returns `{R}`",
    label = "neither `{R}` nor a `Result` with it",
    note = "answer with the output itself, or with `Result<{R}, E>` where `E` is `StepError` or implements `saga_core::IntoStepError`"
)]
pub trait IntoItemResult<R> {
    /// The answer, with its error classified.
    #[doc(hidden)]
    fn into_item_result(self) -> Result<R, StepError>;
}

impl<R> IntoItemResult<R> for R {
    fn into_item_result(self) -> Result<R, StepError> {
        Ok(self)
    }
}

impl<R, E: IntoStepError> IntoItemResult<R> for Result<R, E> {
    fn into_item_result(self) -> Result<R, StepError> {
        self.map_err(IntoStepError::into_step_error)
    }
}

impl<T> Batch<T> {
    pub(crate) fn new(inputs: Vec<T>, contexts: Arc<Contexts>) -> Self {
        Self { inputs, contexts }
    }

    /// Makes a batch for a test. The keys are `test-1:step`, `test-2:step` and so on.
    pub fn for_test(inputs: impl IntoIterator<Item = T>) -> Self {
        let context = |(index, input)| (StepContext::for_test(format!("test-{}:step", index + 1)), input);
        Self::for_test_with(inputs.into_iter().enumerate().map(context))
    }

    /// Makes a batch for a test, with the context of each input.
    pub fn for_test_with(inputs: impl IntoIterator<Item = (StepContext, T)>) -> Self {
        let (contexts, inputs) = inputs.into_iter().map(|(context, input)| (OnceLock::from(context), input)).unzip();
        let make = |_| StepContext::for_test("test:step");
        Self { inputs, contexts: Arc::new(Contexts { made: contexts, make: Box::new(make) }) }
    }

    /// The contexts of the calls, in the order of the inputs: key, attempt, fencing token, `emit`.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = &StepContext> {
        (0..self.len()).map(|index| self.contexts.of(index))
    }

    /// The keys of the calls ([`StepContext::key`]), in the order of the inputs.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.contexts().map(StepContext::key)
    }

    /// Makes the result of each input: the output, or a `Result` of it. A closure that uses `?` must name its return type:
    /// `|order| -> Result<Reservation, StepError> { .. }`.
    pub fn map_each<R, A: IntoItemResult<R>>(&self, mut answer: impl FnMut(&T) -> A) -> BatchResults<R> {
        let answers = self.inputs.iter().map(|input| answer(input).into_item_result()).collect();
        BatchResults { answers, contexts: Arc::clone(&self.contexts) }
    }

    /// The same with the context of each call, for example to emit an event. An event is sent only if the result of its
    /// input is recorded as done.
    pub fn map_each_with<R, A: IntoItemResult<R>>(
        &self,
        mut answer: impl FnMut(&StepContext, &T) -> A,
    ) -> BatchResults<R> {
        let calls = self.contexts().zip(&self.inputs);
        let answers = calls.map(|(context, input)| answer(context, input).into_item_result()).collect();
        BatchResults { answers, contexts: Arc::clone(&self.contexts) }
    }
}

/// The inputs, in the order of the results.
impl<T> Deref for Batch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.inputs
    }
}

impl<'a, T> IntoIterator for &'a Batch<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<R> BatchResults<R> {
    /// The results in the order of the inputs, for tests.
    pub fn into_results(self) -> Vec<Result<R, StepError>> {
        self.answers
    }

    /// The answers, if they are of the batch with these contexts.
    pub(crate) fn of_batch(self, contexts: &Arc<Contexts>) -> Option<Vec<Result<R, StepError>>> {
        Arc::ptr_eq(&self.contexts, contexts).then_some(self.answers)
    }
}

/// Says how many inputs there are, and keeps quiet about what they hold: payloads are never printed.
impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for BatchResults<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.answers.iter().filter(|answer| answer.is_err()).count();
        f.debug_struct("Answers").field("len", &self.answers.len()).field("failed", &failed).finish_non_exhaustive()
    }
}

/// The contexts of a batch, each made when it is asked for: most steps look at none.
#[doc(hidden)]
pub struct Contexts {
    made: Vec<OnceLock<StepContext>>,
    make: Box<dyn Fn(usize) -> StepContext + Send + Sync>,
}

impl Contexts {
    pub(crate) fn new(len: usize, make: impl Fn(usize) -> StepContext + Send + Sync + 'static) -> Arc<Self> {
        let unmade = std::iter::repeat_with(OnceLock::new).take(len).collect();
        Arc::new(Self { made: unmade, make: Box::new(make) })
    }

    pub(crate) fn of(&self, index: usize) -> &StepContext {
        self.made[index].get_or_init(|| (self.make)(index))
    }

    /// What the call of that input has emitted; nothing is left.
    pub(crate) fn take_emitted(&self, index: usize) -> Vec<Emitted> {
        self.made[index].get().map(StepContext::take_emitted).unwrap_or_default()
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contexts").field("len", &self.made.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepErrorKind;

    #[derive(Debug, thiserror::Error)]
    #[error("sold out")]
    struct SoldOut;

    impl IntoStepError for SoldOut {
        fn into_step_error(self) -> StepError {
            StepError::reject(self)
        }
    }

    #[test]
    fn there_is_one_answer_for_each_input_in_its_place() {
        let batch = Batch::for_test(["1", "x", "3"]);
        assert_eq!((batch.len(), batch.is_empty()), (3, false));
        assert_eq!(batch.iter().copied().collect::<Vec<_>>(), ["1", "x", "3"]);
        assert_eq!(batch.keys().collect::<Vec<_>>(), ["test-1:step", "test-2:step", "test-3:step"]);
        let plain: BatchResults<usize> = batch.map_each(|text| text.len());
        assert_eq!(plain.into_results().into_iter().map(Result::unwrap).collect::<Vec<_>>(), [1, 1, 1]);
        let parsed = batch.map_each(|text| -> Result<u32, StepError> { Ok(text.parse::<u32>()?) }).into_results();
        assert_eq!(parsed[0].as_ref().ok(), Some(&1));
        assert!(parsed[1].as_ref().is_err_and(|error| error.kind() == StepErrorKind::Transient));
        assert_eq!(parsed[2].as_ref().ok(), Some(&3));
    }

    #[test]
    fn an_error_of_ones_own_says_what_it_means() {
        let answers: BatchResults<()> =
            Batch::for_test([1, 2]).map_each(|n| if *n == 1 { Err(SoldOut) } else { Ok(()) });
        let answers = answers.into_results();
        assert!(answers[0].as_ref().is_err_and(|error| error.kind() == StepErrorKind::Rejected));
        assert!(answers[1].is_ok());
    }

    #[test]
    fn answers_belong_to_their_batch() {
        let (one, other) = (Batch::for_test([1]), Batch::for_test([1]));
        let answers: BatchResults<i32> = one.map_each(|n| *n);
        assert!(answers.of_batch(&other.contexts).is_none());
        let answers: BatchResults<i32> = one.map_each(|n| *n);
        assert!(answers.of_batch(&one.contexts).is_some());
    }

    #[test]
    fn contexts_are_made_when_they_are_asked_for() {
        let contexts = Contexts::new(2, |index| StepContext::for_test(format!("order-{index}:step")));
        let batch = Batch::new(vec![(), ()], Arc::clone(&contexts));
        let answers: BatchResults<String> = batch.map_each(|()| String::new());
        assert_eq!(answers.into_results().len(), 2);
        assert!(contexts.made.iter().all(|context| context.get().is_none()));
        let keys: BatchResults<String> = batch.map_each_with(|context, ()| context.key().to_owned());
        assert_eq!(keys.into_results()[1].as_deref().unwrap(), "order-1:step");
    }
}
