use std::sync::Arc;

use async_trait::async_trait;
use saga_core::engine::{RuntimeBuilder, SagaAdmin};
use saga_core::step::Payload;
use saga_core::store::{SagaWithSteps, Store};
use saga_core::{Migration, Saga, Service};

use super::ended::Ended;
use super::restarts::Restarted;
use super::store::Explored;
use crate::VirtualTime;

/// The subject of an exploration: a saga, its input, and an audit of its effects.
#[async_trait]
pub trait Explore: Send + Sync + 'static {
    /// The user's store.
    type Store: Store;
    /// The input of the saga.
    type Input: Payload;
    /// The surroundings of one run: the store, and the journals of external services.
    type World: Send + Sync + 'static;

    /// The saga, as in production. One that returns something is given by
    /// [`without_result_type`](Saga::without_result_type).
    fn saga(&self) -> Saga<Self::Store, Self::Input>;

    /// An input with which the undisturbed saga completes.
    fn input(&self) -> Self::Input;

    /// Makes a fresh world. Each run gets its own, with a time of its own: open the store on it.
    ///
    /// # Cancel safety
    /// The exploration never drops it before its end.
    async fn fresh(&self, time: &VirtualTime) -> Self::World;

    /// The store of the world. It is called again after each crash, as a new process would open the data again.
    fn store(&self, world: &Self::World) -> Arc<Self::Store>;

    /// Gives the runtime the values that steps take as `State<T>`, with `.state(..)`. The default gives none.
    fn states(
        &self,
        world: &Self::World,
        runtime: RuntimeBuilder<Explored<Self::Store>>,
    ) -> RuntimeBuilder<Explored<Self::Store>> {
        let _ = world;
        runtime
    }

    /// The services that host remote steps of the saga. The explored process hosts them on the same store, so their functions
    /// and their messages are disturbed like everything else. The default is none.
    fn services(&self) -> Vec<Service<Self::Store>> {
        Vec::new()
    }

    /// Acts on the saga while it runs, for example sends signals, or pauses and resumes it. It starts with the saga in each
    /// life of the process, so the process also crashes during it, and it runs again afterwards. The default does nothing.
    ///
    /// # Errors
    /// A text that the exploration reports, for example that a signal was refused.
    ///
    /// # Cancel safety
    /// It is dropped when its process crashes.
    async fn meanwhile(&self, desk: &SagaAdmin<Explored<Self::Store>>, key: &str) -> Result<(), String> {
        let _ = (desk, key);
        Ok(())
    }

    /// An input that the batch step of this name rejects, for a step before the pivot. If there is one, the exploration also
    /// runs the saga with this input, and compares [`tables`](Self::tables) before and after the transaction of the step: a
    /// rejection promises that nothing was written for its input.
    fn rejected_by(&self, step: &str) -> Option<Self::Input> {
        let _ = step;
        None
    }

    /// All rows that the steps have written, as texts to compare. It is called only if a batch step
    /// [rejects](Self::rejected_by) an input.
    ///
    /// # Cancel safety
    /// It only reads.
    async fn tables(&self, world: &Self::World) -> Option<Vec<String>> {
        let _ = world;
        None
    }

    /// A migration of running sagas to another version. If there is one, the exploration also moves the saga at each of its
    /// boundaries: after a crash, after a stop, and while its process is held up there. The next process has the new version
    /// only. The exploration crashes the move, makes each later step of the new version reject, and crashes the process at
    /// each boundary of these runs. A saga that cannot be moved at some point continues, and the
    /// [report](super::Exploration::moves) says why. The [`audit`](Self::audit) judges all runs.
    ///
    /// The migration must begin with the version of [`saga`](Self::saga). If the saga cannot be moved at any point, the
    /// exploration fails. To explore the new version itself, make it the [`saga`](Self::saga).
    fn migration(&self) -> Option<Migration<Self::Store>> {
        None
    }

    /// Whether the exploration also restarts sagas that did not complete
    /// ([`SagaControl::restart`](saga_core::engine::SagaControl::restart)). Each saga that was compensated, or that was stuck and
    /// was then forced to compensated, is restarted from each step that allows it. Each step of the new saga rejects in turn,
    /// the process is crashed at each boundary of these runs, and [`audit_restarted`](Self::audit_restarted) judges the data
    /// of both sagas.
    ///
    /// The default is `false`, because an audit for one saga cannot judge two: effects that the old saga left can exist beside
    /// those of the new one.
    fn restarts(&self) -> bool {
        false
    }

    /// A planted mistake in the read of a saga that is restarted. Tests use it to see that the exploration finds it.
    #[doc(hidden)]
    fn misreads(&self) -> Option<fn(&mut SagaWithSteps)> {
        None
    }

    /// Judges the business data and the journals of external services after a saga was restarted and both sagas have ended.
    ///
    /// The default calls [`audit`](Self::audit) if both sagas together have the effects of a single one
    /// ([`Restarted::amounts_to`]). It accepts all other results, which the [report](super::Restarts::mixed) counts. Your
    /// implementation can compare how often each step [took effect](Restarted::standing) with the data.
    ///
    /// # Errors
    /// A text that says what is wrong.
    ///
    /// # Cancel safety
    /// The exploration never drops it before its end.
    async fn audit_restarted(&self, world: &Self::World, restarted: &Restarted) -> Result<(), String> {
        match restarted.amounts_to() {
            Some(ended) => self.audit(world, &ended).await,
            None => Ok(()),
        }
    }

    /// Judges the business data and the journals of external services after a run.
    ///
    /// # Errors
    /// A text that says what is wrong.
    ///
    /// # Cancel safety
    /// The exploration never drops it before its end.
    async fn audit(&self, world: &Self::World, ended: &Ended) -> Result<(), String>;
}
