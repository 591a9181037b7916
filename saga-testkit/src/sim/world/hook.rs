use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, PendingCommit};
use saga_core::store::{StoreError, StoreErrorKind};

use super::fault::Fault;
use super::world::{Seat, World};
use crate::checker::What;

/// How long a slow call of the store takes at most, and how long a commit stays undecided.
const SLOW_MAX: Duration = Duration::from_secs(2);
const UNDECIDED_MAX: Duration = Duration::from_secs(8);

/// What becomes of the store calls of one process.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) seat: Seat,
}

impl CommitHook for Hook {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let world = &self.seat.world;
        if world.is_calm() {
            return Box::pin(ready(CommitFate::Proceed));
        }
        if world.happens(|rates| rates.commit_crashes) {
            world.hit(Fault::CrashAtCommit);
            world.control.kill(self.seat.process);
            return Box::pin(pending());
        }
        let fate = fate_of(&self.seat, point);
        if world.happens(|rates| rates.store_slow) {
            self.seat.hit_repeating(Fault::StoreSlow);
            let slow = Duration::from_nanos(world.draw(|random| random.below(SLOW_MAX.as_nanos() as u64)));
            let slept = world.env.sleep(slow);
            return Box::pin(async move {
                slept.await;
                fate
            });
        }
        Box::pin(ready(fate))
    }

    /// The transaction keeps its locks until the world decides.
    fn in_doubt(&self, commit: PendingCommit) {
        let world = Arc::clone(&self.seat.world);
        let (is_kept, is_late) = world.draw(|random| (random.per_mille(500), random.per_mille(300)));
        let decide = move |world: &World, commit: PendingCommit| {
            if is_kept {
                world.hit(Fault::CommitUnknownKept);
                commit.commit();
            } else {
                world.hit(Fault::CommitUnknownLost);
                drop(commit);
            }
        };
        if !is_late {
            decide(&world, commit);
            return;
        }
        world.hit(Fault::CommitDecidedLate);
        let env = world.env.clone();
        env.spawn(Box::pin(async move {
            world.wait_up_to(UNDECIDED_MAX).await;
            decide(&world, commit);
        }));
    }
}

fn fate_of(seat: &Seat, point: CommitPoint) -> CommitFate {
    let world = &seat.world;
    let (operation, is_down) = (operation_of(point), world.is_store_down(seat.service));
    if is_down && !matches!(point, CommitPoint::Committed(_)) {
        seat.hit_repeating(Fault::StoreDown);
        return fail(StoreErrorKind::Unavailable, operation, "the store is down");
    }
    if world.is_cut_off(seat.process) && !matches!(point, CommitPoint::Committed(_)) {
        seat.enter(What::Repeated);
        return fail(StoreErrorKind::Unavailable, operation, "the store is not reached");
    }
    match point {
        CommitPoint::Reading(_) if world.happens(|rates| rates.read_fails) => {
            seat.hit_repeating(Fault::ReadFailed);
            fail(StoreErrorKind::Unavailable, operation, "the connection broke")
        }
        CommitPoint::Claimed | CommitPoint::Handled(_) if world.happens(|rates| rates.commit_fails) => {
            seat.hit_repeating(Fault::CommitFailed);
            fail(StoreErrorKind::Unavailable, operation, "the connection broke in the transaction")
        }
        CommitPoint::Committing(_) if world.happens(|rates| rates.commit_fails) => {
            seat.hit_repeating(Fault::CommitFailed);
            fail(StoreErrorKind::Unavailable, operation, "the commit failed")
        }
        CommitPoint::Committing(_) if world.happens(|rates| rates.commit_conflicts) => {
            seat.hit_repeating(Fault::CommitConflict);
            fail(StoreErrorKind::Conflict, operation, "could not serialise")
        }
        CommitPoint::Committing(operation) if world.happens(|rates| rates.commit_unknown) => {
            seat.enter(What::Repeated);
            if operation != "transact" {
                world.hit(Fault::CommitUnknownLost);
            }
            CommitFate::InDoubt
        }
        CommitPoint::Committed(_) if world.happens(|rates| rates.commit_unknown) => {
            seat.hit_repeating(Fault::CommitUnknownKept);
            CommitFate::InDoubt
        }
        _ => CommitFate::Proceed,
    }
}

fn fail(kind: StoreErrorKind, operation: &'static str, detail: &str) -> CommitFate {
    CommitFate::Fail(StoreError::new(kind, operation, detail))
}

fn operation_of(point: CommitPoint) -> &'static str {
    match point {
        CommitPoint::Reading(operation) | CommitPoint::Committing(operation) | CommitPoint::Committed(operation) => {
            operation
        }
        CommitPoint::Claimed | CommitPoint::Handled(_) => "transact",
    }
}
