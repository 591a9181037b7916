//! One run in which a saga is moved.

use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;

use saga_core::engine::RuntimeError;
use saga_core::{Migration, Runtime, Saga};

use super::super::life::{Director, Look};
use super::super::process::{Finished, KEY, LIVES_MAX, LOOK_EVERY, Made, Process, Tries, finished, look_at};
use super::super::store::Explored;
use super::super::subject::Explore;
use super::super::world::{fresh, in_time};
use super::plan::{Manner, MoveRun};
use crate::VirtualTime;

/// What the history says of every move.
pub(super) const WHY: &str = "the exploration says so";

/// Whether the saga was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Went {
    Moved,
    Refused(String),
}

/// What was answered to who wanted to move it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) went: Went,
    /// It was busy at first.
    pub(super) has_waited: bool,
}

/// What a run ends with: the answer to the move, unless the saga ended before it, and the end of the saga.
pub(super) type End = (Option<Answer>, Finished);

/// A run on its way: who disturbs the old version, and who the new one.
pub(super) struct Course<'a, E: Explore> {
    pub(super) subject: &'a E,
    pub(super) world: &'a E::World,
    pub(super) time: &'a VirtualTime,
    pub(super) look: Arc<Look>,
    pub(super) migration: Migration<E::Store>,
    pub(super) old: Arc<Director>,
    pub(super) new: Arc<Director>,
}

pub(super) async fn one_move<E: Explore>(
    subject: Arc<E>,
    migration: Migration<E::Store>,
    run: MoveRun,
    is_racing: bool,
) -> Made<MoveRun, End> {
    let mut tries = Tries::new(is_racing);
    loop {
        let commits = tries.begin();
        let old = Arc::new(Director::new(run.point.rejected, run.disturbance(), commits));
        let new = Arc::new(Director::new(run.rejected, run.then.clone(), commits));
        let time = VirtualTime::new();
        let living = async {
            let world = Arc::new(fresh(&*subject, &time).await?);
            let (look, migration) = (look_at(&subject, &world), migration.clone());
            let (old, new) = (Arc::clone(&old), Arc::clone(&new));
            Course { subject: &*subject, world: &*world, time: &time, look, migration, old, new }.live(run.manner).await
        };
        let result = in_time(&time, living).await;
        let is_reached = old.is_done() && new.is_done();
        if let Some(made) = tries.end(Made { run: run.clone(), result, passed: new.passed(), is_reached }) {
            return made;
        }
    }
}

impl<'a, E: Explore> Course<'a, E> {
    async fn live(&self, manner: Manner) -> Result<End, String> {
        let (answer, finished) = match manner {
            Manner::Crash | Manner::Stop => self.one_after_the_other(manner).await?,
            Manner::Beside => Box::pin(self.side_by_side()).await?,
        };
        self.process(&self.new, LIVES_MAX).judge(&finished.ended).await?;
        Ok((answer, finished))
    }

    pub(super) fn process(&self, director: &Arc<Director>, seed: u64) -> Process<'a, E> {
        Process::new((self.subject, self.world, self.time), director, &self.look, seed)
    }

    /// The new version, for this process.
    pub(super) fn new_saga(&self, process: &Process<'_, E>) -> Saga<Explored<E::Store>, ()> {
        self.migration.sagas().1.instrumented(&process.hook())
    }

    async fn one_after_the_other(&self, manner: Manner) -> Result<End, String> {
        let process = self.process(&self.old, 0);
        let ended = match manner {
            Manner::Stop => process.live(self.until_stopped(&process)).await?.flatten(),
            _ => process.live(process.run_saga(None)).await?,
        };
        if let Some(finished) = ended {
            return Ok((None, finished));
        }
        for seed in 1..LIVES_MAX {
            let process = self.process(&self.new, seed);
            match process.live(Box::pin(self.moved_life(&process))).await? {
                Some((answer, Some(finished))) => return Ok((Some(answer), finished)),
                Some((answer, None)) => return Ok((Some(answer), self.on_in_the_old().await?)),
                None => {}
            }
        }
        Err("it crashed again and again".to_owned())
    }

    /// Runs the old version until it is held up, and is told to stop there. It answers nothing unless the saga ended before.
    async fn until_stopped(&self, process: &Process<'_, E>) -> Result<Option<Finished>, String> {
        let saga = self.subject.saga().instrumented::<Explored<E::Store>>(&process.hook());
        let runtime = process.open(|builder| builder.saga(&saga)).await?;
        let mut life = pin!(process.start_and_end(&runtime, &saga));
        let ended = tokio::select! {
            biased;
            () = self.old.halt.reached() => None,
            ended = &mut life => Some(ended?),
        };
        if let Some(ended) = ended {
            runtime.shutdown().await;
            return finished(ended).map(Some);
        }
        let mut stopping = pin!(runtime.shutdown());
        // It knows that it is to stop before it goes on.
        tokio::select! {
            biased;
            () = &mut stopping => {}
            () = ready(()) => {}
        }
        self.old.halt.release();
        let client = async {
            // A task that waits for the saga there is told that the runtime ends.
            let _ = life.await;
            pending::<()>().await;
        };
        tokio::select! {
            () = &mut stopping => {}
            () = client => {}
        }
        Ok(None)
    }

    /// A process that has the new version only: it moves the saga, and brings it to its end.
    async fn moved_life(&self, process: &Process<'_, E>) -> Result<(Answer, Option<Finished>), String> {
        let saga = self.new_saga(process);
        let runtime = process.open(|builder| builder.saga(&saga)).await?;
        let answer =
            move_until_answered(&runtime, self.time, &self.migration.instrumented(&process.hook()), false).await?;
        let ended = match &answer.went {
            Went::Moved => {
                let running = runtime.attach(KEY).await.map_err(|error| error.to_string())?;
                Some(process.bring_to_end(&runtime, &running).await?)
            }
            Went::Refused(_) => None,
        };
        runtime.shutdown().await;
        Ok((answer, ended.map(finished).transpose()?))
    }

    /// A process that has both versions: the saga stays what it was.
    async fn on_in_the_old(&self) -> Result<Finished, String> {
        let process = self.process(&self.old, LIVES_MAX);
        let saga = self.new_saga(&process);
        let ended = process.live(process.run_saga(Some(&saga))).await?;
        ended.ok_or_else(|| "it crashed once more".to_owned())
    }
}

/// Asks for the move until there is an answer for certain.
pub(super) async fn move_until_answered<E: saga_core::store::Store>(
    runtime: &Runtime<E>,
    time: &VirtualTime,
    migration: &Migration<E>,
    mut has_waited: bool,
) -> Result<Answer, String> {
    loop {
        if let Some(went) = read(runtime.admin().control(KEY).migrate(migration, WHY).await)? {
            return Ok(Answer { went, has_waited });
        }
        has_waited = true;
        time.advance(LOOK_EVERY).await;
    }
}

/// What an answer says; nothing where the saga is busy.
pub(super) fn read(answer: Result<(), RuntimeError>) -> Result<Option<Went>, String> {
    match answer {
        Ok(()) => Ok(Some(Went::Moved)),
        Err(RuntimeError::Busy { .. }) => Ok(None),
        Err(RuntimeError::Refused { problem, .. }) => Ok(Some(Went::Refused(problem))),
        Err(RuntimeError::NoSaga(_)) => Ok(Some(Went::Refused("it has not been started yet".to_owned()))),
        Err(error) => Err(format!("the move failed: {error}")),
    }
}
