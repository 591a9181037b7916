//! Parks claimed commands of paused sagas.

use std::sync::Arc;
use std::time::Duration;

use super::poller::Poller;
use crate::engine::decide::unlock_between_attempts;
use crate::engine::instance::{AttemptDetails, NextSlot, NextWork, WorkItem};
use crate::machine::Event;
use crate::store::{Postponed, Store};

/// How long a command of a paused saga is postponed. A resumption makes it due.
const WHILE_PAUSED: Duration = Duration::from_hours(100 * 365 * 24);

impl<S: Store> Poller<S> {
    /// Postpones the command of a paused saga until the saga is resumed. This advances the saga, so that it conflicts with a concurrent
    /// resumption.
    pub(crate) async fn park(self: &Arc<Self>, command: WorkItem<S>) {
        let Some(ids) = self.committer.store_calls.take_ids(command.saga.definition.width).await else { return };
        let mut saga = command.saga.clone();
        let next_work = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let parked = Event::Parked { work: command.work.id.0 };
        // The machine never refuses it, and no command follows from it.
        let Ok(mut prepared) = self.decider.decide(&mut saga, parked, &AttemptDetails::default(), next_work) else {
            return;
        };
        prepared.changes.postponed.push(Postponed {
            work: command.work,
            due_in: WHILE_PAUSED,
            attempts: command.attempts,
            in_doubt: command.in_doubt,
            error: None,
        });
        // Other sagas do not wait for one that is paused.
        let unlocked = unlock_between_attempts(&command, command.in_doubt, command.attempts);
        prepared.changes.unlocked.extend(unlocked);
        match self.committer.commit_decision(prepared).await {
            Ok(Ok(())) => {}
            // The saga was resumed or changed otherwise: the next claim reads it again.
            Ok(Err(_)) | Err(_) => self.committer.scheduler.release(&[command.work]).await,
        }
    }
}
