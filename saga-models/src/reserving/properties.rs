//! What must hold of reservations, by the clauses of `saga_reservations::Reservations`.

use saga_reservations::{Reservation, ResourceName, State};

use super::protocol::Reserving;
use super::world::{RESOURCES, World};

type Named = (&'static str, fn(&Reserving, &World) -> bool);

/// What holds at every moment.
pub(super) const ALWAYS: &[Named] = &[
    ("R-CAPACITY there is one of each, and no more is taken", |_, world| {
        resources(world).all(|(name, _)| {
            let found = world.book.resource(&name);
            found.is_some_and(|found| found.capacity == 1 && found.taken() <= 1)
        })
    }),
    ("R-ONCE the accounts are those of the reservations", |_, world| {
        resources(world).all(|(name, reservations)| {
            let of = |state| reservations.iter().filter(|found| found.state == state).count();
            let found = world.book.resource(&name);
            found.is_some_and(|found| {
                (usize::try_from(found.held), usize::try_from(found.confirmed))
                    == (Ok(of(State::Held)), Ok(of(State::Confirmed)))
            })
        })
    }),
    ("R-DURABLE what was answered as confirmed stays so", |_, world| {
        each(world, |client, found| {
            let is_confirmed = found.is_some_and(|found| found.state == State::Confirmed);
            !client.told_confirmed || client.has_returned || is_confirmed
        })
    }),
    ("R-TOKEN the tokens grow", |_, world| !world.broken.token_again),
    ("R-TOKEN another token changes nothing", |_, world| !world.broken.by_another_token),
    ("R-EXPIRY a late confirmation has a new token", |_, world| !world.broken.confirmed_late),
    ("R-EXPIRY a hold lasts until its time", |_, world| !world.broken.ended_early),
    ("R-KEY what has ended is not held again", |_, world| {
        each(world, |client, found| {
            let is_held = found.is_some_and(|found| found.clone().seen_at(world.clock()).state == State::Held);
            !client.told_ended || !is_held
        })
    }),
    ("R-ALL a refused operation changes nothing", |_, world| !world.broken.refused_with_effect),
    ("R-FAIR a request is refused only for those who have the units", |_, world| !world.broken.refused_unfairly),
];

/// What must be reached, or else the model says nothing.
pub(super) const SOMETIMES: &[Named] = &[
    ("a late confirmation takes the units again", |_, world| world.reached.late),
    ("a release bars its request", |_, world| world.reached.barred),
    ("a request takes the units of a hold that is over", |_, world| world.reached.taken_over),
    ("what has ended is forgotten", |_, world| world.reached.forgotten),
    ("units are given back", |_, world| world.reached.returned),
];

/// Each resource, with the reservations of it.
fn resources(world: &World) -> impl Iterator<Item = (ResourceName, Vec<&Reservation>)> {
    RESOURCES.iter().filter_map(|name| ResourceName::new(*name).ok()).map(|name| {
        let found = (0..2).filter_map(|client| world.book.reservation(&World::key(client)));
        let of_it = found.filter(|found| found.lines.iter().any(|line| line.resource == name)).collect();
        (name, of_it)
    })
}

/// Whether it holds for each client and its reservation.
fn each(world: &World, holds: impl Fn(&super::Client, Option<&Reservation>) -> bool) -> bool {
    (0..2).all(|client| holds(&world.clients[client], world.book.reservation(&World::key(client))))
}
