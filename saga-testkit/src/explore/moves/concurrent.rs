//! A saga that is moved while the process that runs its old version lives, and is held up for as long as that takes.

use std::pin::pin;

use saga_core::Runtime;
use saga_core::engine::Outcome;
use saga_core::store::Sagas;
use saga_core::{Key, Tenant};

use super::super::process::{KEY, Process, finished, settled};
use super::super::store::Explored;
use super::super::subject::Explore;
use super::run::{Answer, Course, End, WHY, Went, move_until_answered, read};

/// How a saga ended, and whether it was stuck before.
type Ending = Result<(Outcome, bool), String>;

impl<E: Explore> Course<'_, E> {
    pub(super) async fn side_by_side(&self) -> Result<End, String> {
        let (old, new) = (self.process(&self.old, 0), self.process(&self.new, 1));
        let both = async { new.live(self.beside(&old, &new)).await?.ok_or_else(|| "it crashed".to_owned()) };
        Box::pin(old.live(both)).await?.ok_or_else(|| "it crashed".to_owned())
    }

    async fn beside(&self, old: &Process<'_, E>, new: &Process<'_, E>) -> Result<End, String> {
        let saga = self.subject.saga().instrumented::<Explored<E::Store>>(&old.hook());
        let in_old = old.open(|builder| builder.saga(&saga)).await?;
        let mut life = pin!(old.start_and_end(&in_old, &saga));
        let ended = tokio::select! {
            biased;
            () = self.old.halt.reached() => None,
            ended = &mut life => Some(ended?),
        };
        if let Some(ended) = ended {
            in_old.shutdown().await;
            return Ok((None, finished(ended)?));
        }
        let saga = self.new_saga(new);
        let in_new = new.open(|builder| builder.saga(&saga)).await?;
        let mut old_end: Option<Ending> = None;
        let (answer, new_end) = {
            let mut moving = pin!(self.move_beside(new, &in_new));
            tokio::select! {
                came = &mut moving => came?,
                ended = &mut life => {
                    old_end = Some(ended);
                    moving.await?
                }
            }
        };
        let ended = if let Some((_, is_operated)) = new_end {
            // What the old version's process says of it does not count any more, but what that did is reported.
            in_old.shutdown().await;
            settled(&in_new, self.time, KEY).await;
            let running = in_new.attach(KEY).await.map_err(|error| error.to_string())?;
            (running.closed().await.map_err(|error| error.to_string())?, is_operated)
        } else {
            let ended = match old_end {
                Some(ended) => ended,
                None => life.await,
            };
            in_old.shutdown().await;
            ended?
        };
        in_new.shutdown().await;
        Ok((Some(answer), finished(ended)?))
    }

    /// Asks for the move while the other process is held up, and brings the saga to its end if it is moved.
    async fn move_beside(
        &self,
        new: &Process<'_, E>,
        runtime: &Runtime<Explored<E::Store>>,
    ) -> Result<(Answer, Option<(Outcome, bool)>), String> {
        let migration = self.migration.instrumented(&new.hook());
        let is_held = self.is_held(runtime).await?;
        let answer = runtime.admin().control(KEY).migrate(&migration, WHY).await;
        self.old.halt.release();
        let answer = match read(answer)? {
            Some(Went::Moved) if is_held => {
                return Err("it was moved while another process had a step of it under way".to_owned());
            }
            Some(went) => Answer { went, has_waited: false },
            None => move_until_answered(runtime, self.time, &migration, true).await?,
        };
        if matches!(answer.went, Went::Refused(_)) {
            return Ok((answer, None));
        }
        let running = runtime.attach(KEY).await.map_err(|error| error.to_string())?;
        let ended = new.bring_to_end(runtime, &running).await?;
        Ok((answer, Some(ended)))
    }

    /// Whether the other process has a step of the saga. Of several at once it may end one meanwhile.
    async fn is_held(&self, runtime: &Runtime<Explored<E::Store>>) -> Result<bool, String> {
        if self.subject.saga().has_branches() {
            return Ok(false);
        }
        let key = Key::new(KEY).map_err(|error| error.to_string())?;
        let store = runtime.store();
        let stored = store.saga_with_steps(&Tenant::default(), &key).await.map_err(|error| error.to_string())?;
        Ok(stored.is_some_and(|stored| stored.work.iter().any(|work| work.owner.is_some())))
    }
}
