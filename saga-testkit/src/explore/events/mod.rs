//! Exploration of choreographies: delivers events in every order in which they can arrive.
//!
//! [`explore_events`] runs the services, each with its own store, and holds back every published event. When all
//! services are idle, it delivers one of the events that it holds. So each run is one order of arrivals. The
//! exploration runs all orders, and for each of them also these variants:
//!
//! - Every event arrives **once more**, as another message, at each later moment: at once, between other events, and at
//!   the end. This includes an **undo before its step** and a **late step after its undo**, wherever the reactions
//!   allow them.
//! - Every service **crashes** at each boundary of its store and around each event that it publishes, one crash per
//!   run, and another process continues on its store.
//!
//! After each run every step must have ended, without remaining work, messages or dead letters, and the user's
//! [`audit`](ExploreEvents::audit) judges the business data. The audit must hold in every order, for example: either
//! two services both took effect, or the effect of one of them was undone.
//!
//! Only events are held back. Reports to the service that follows the sagas are delivered at once, and no deadline
//! passes, because deadlines are longer than a run.

mod broker;
mod drive;
mod process;
mod report;
mod subject;

pub use self::drive::explore_events;
pub use self::report::{EventFailures, EventsExplored};
pub use self::subject::{ExploreEvents, FirstEvent};
