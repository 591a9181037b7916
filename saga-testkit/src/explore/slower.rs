//! The times that a runtime gives to its store, which runs at the world's speed.

use std::time::Duration;

use saga_core::store::{Changes, Lease, NewWork};

use super::environment::SPEED;

/// What the runtime means by a duration, on the store's clock.
pub(super) fn slower(duration: Duration) -> Duration {
    duration / SPEED
}

pub(super) fn slower_lease(lease: Lease) -> Lease {
    Lease { ttl: slower(lease.ttl), ..lease }
}

pub(super) fn slow_down_command(command: &mut NewWork) {
    command.due_in = slower(command.due_in);
    command.lease = command.lease.map(slower_lease);
}

pub(super) fn slow_down(change: &mut Changes) {
    change.commands.iter_mut().for_each(slow_down_command);
    for postponed in &mut change.postponed {
        postponed.due_in = slower(postponed.due_in);
    }
    for message in &mut change.messages {
        message.due_in = slower(message.due_in);
    }
}
