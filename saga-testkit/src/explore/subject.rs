use std::sync::Arc;

use async_trait::async_trait;
use saga_core::engine::{RuntimeBuilder, SagaAdmin};
use saga_core::step::Payload;
use saga_core::store::{SagaWithSteps, Store};
use saga_core::{Migration, Saga, Service};

use super::ended::Ended;
use super::restarts::Restarted;
use super::store::Explored;

/// What is explored: a saga, what it is started with, and how to judge what it did.
#[async_trait]
pub trait Explore: Send + Sync + 'static {
    /// The user's store.
    type Store: Store;
    /// What the saga is started with.
    type Input: Payload;
    /// Everything that one run works with: the store, and the books of services outside.
    type World: Send + Sync + 'static;

    /// The saga, as production has it.
    fn saga(&self) -> Saga<Self::Store, Self::Input>;

    /// An input with which the saga completes when nothing disturbs it.
    fn input(&self) -> Self::Input;

    /// A world that nothing has happened in. Each run gets its own.
    ///
    /// # Cancel safety
    /// It is never dropped before its end.
    async fn fresh(&self) -> Self::World;

    /// The store of that world. It is asked again after each crash, as a new process would open the data again.
    fn store(&self, world: &Self::World) -> Arc<Self::Store>;

    /// Gives the runtime what the steps take as `State<T>`, with `.state(..)`. Without states this stays as it is.
    fn states(
        &self,
        world: &Self::World,
        runtime: RuntimeBuilder<Explored<Self::Store>>,
    ) -> RuntimeBuilder<Explored<Self::Store>> {
        let _ = world;
        runtime
    }

    /// The services that do steps of the saga. They are hosted by the process that is explored, on the same store, so that the
    /// functions of their steps are disturbed like all others, and so is what goes between them and the saga. Without steps
    /// of other services this stays as it is.
    fn services(&self) -> Vec<Service<Self::Store>> {
        Vec::new()
    }

    /// Does what others do to the saga while it runs: they send the signals that it waits for, pause and resume it, all at
    /// this desk. It begins beside the saga in each life of the process, so that the saga is crashed amid of it, and it is
    /// done again. A saga that is left alone leaves this as it is.
    ///
    /// # Errors
    /// What the exploration reports, such as a signal that was refused.
    ///
    /// # Cancel safety
    /// It is dropped where the process crashes that it runs in.
    async fn meanwhile(&self, desk: &SagaAdmin<Explored<Self::Store>>, key: &str) -> Result<(), String> {
        let _ = (desk, key);
        Ok(())
    }

    /// An input that the batch step of that name answers with a rejection, for a step before the pivot. With one, the
    /// exploration also runs the saga with this input, and sees to what such an answer promises: that nothing was written
    /// for it. It compares [`tables`](Self::tables) in front of the step's transaction and behind it.
    fn rejected_by(&self, step: &str) -> Option<Self::Input> {
        let _ = step;
        None
    }

    /// Every row that the steps have written, as texts that can be compared. It is asked for only where there is an input
    /// that a batch step [rejects](Self::rejected_by).
    ///
    /// # Cancel safety
    /// It only reads.
    async fn tables(&self, world: &Self::World) -> Option<Vec<String>> {
        let _ = world;
        None
    }

    /// How sagas that are under way go on as another version. With one, the exploration also moves the saga at each of its
    /// boundaries, after a crash, after a stop, and while the process that runs it is held up there; the process behind that
    /// has the new version only. It crashes the move, has each step of the new version reject that comes behind it, and
    /// crashes the process at each boundary of all that. A saga that cannot be moved at some point goes on as it was, and the
    /// [report](super::Exploration::moves) says why. Whatever happened, the [`audit`](Self::audit) judges it.
    ///
    /// It begins with the version that [`saga`](Self::saga) is, and where the saga can be moved nowhere, the exploration
    /// fails. What the new version does of itself is explored where it is the [`saga`](Self::saga).
    fn migration(&self) -> Option<Migration<Self::Store>> {
        None
    }

    /// Whether the exploration also starts sagas instead of those that came to nothing
    /// ([`SagaControl::restart`](saga_core::engine::SagaControl::restart)). Each that was compensated, and each that was stuck and
    /// that a person then ends as compensated, is restarted from each step from which that is allowed. Of the new saga each step
    /// rejects in turn, the process is crashed at each boundary of all that, and
    /// [`audit_restarted`](Self::audit_restarted) judges what both left.
    ///
    /// It is not done unless it is asked for: an audit that knows one saga cannot judge two. What the old one left standing may
    /// be there beside what the new one did.
    fn restarts(&self) -> bool {
        false
    }

    /// A mistake that is planted in what is read of a saga where it is restarted, so that tests see it found.
    #[doc(hidden)]
    fn misreads(&self) -> Option<fn(&mut SagaWithSteps)> {
        None
    }

    /// Judges the business data and the books outside after a saga was started instead of another one, and both have ended.
    ///
    /// Where the two of them left what one saga leaves alone ([`Restarted::amounts_to`]), the [`audit`](Self::audit) judges
    /// that. Of anything else it knows nothing: the [report](super::Restarts::mixed) counts such runs, and an implementation
    /// of one's own compares how often each step [stands](Restarted::standing) with what is there.
    ///
    /// # Errors
    /// Says what is wrong with them.
    ///
    /// # Cancel safety
    /// It is never dropped before its end.
    async fn audit_restarted(&self, world: &Self::World, restarted: &Restarted) -> Result<(), String> {
        match restarted.amounts_to() {
            Some(ended) => self.audit(world, &ended).await,
            None => Ok(()),
        }
    }

    /// Judges the business data and the books outside after a run.
    ///
    /// # Errors
    /// Says what is wrong with them.
    ///
    /// # Cancel safety
    /// It is never dropped before its end.
    async fn audit(&self, world: &Self::World, ended: &Ended) -> Result<(), String>;
}
