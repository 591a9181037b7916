//! What must hold where sagas are purged, by the names of the guarantees.

use super::protocol::Purging;
use super::world::{Stage, World};

type Named = (&'static str, fn(&Purging, &World) -> bool);

/// What holds at every moment.
pub(super) const ALWAYS: &[Named] = &[
    ("G2 a step takes effect once for a saga", |_, world| world.effects.iter().all(|effects| *effects <= 1)),
    ("G5 what stands is found by its undo", |_, world| !world.undid_nothing),
    ("G13 nothing takes effect for a saga that was purged", |_, world| !world.acted_on_purged),
    ("G13 a saga is told of its own step only", |purging, world| purging.loses_closed || !world.told_of_another),
];

/// What must be reached, or else the model says nothing.
pub(super) const SOMETIMES: &[Named] = &[
    ("a host acts on a message that is as old as it may be", |_, world| world.acted_at_age_max),
    ("a host purges a record", |_, world| world.saga == 1 && world.effects[0] == 1 && world.row.is_none()),
    ("a key is used again", |_, world| world.saga == 1 && world.effects[1] == 1),
    ("a reopened saga is undone", |_, world| world.undone[0] == 1 && matches!(world.stage, Stage::Ended(_))),
];

/// What must be reached as well where the message that a saga is closed may be lost.
pub(super) const SOMETIMES_WHERE_CLOSED_IS_LOST: &[Named] =
    &[("a host that asks is told of a saga that is not known", |_, world| world.told_of_unknown)];
