//! Exploration of sagas that are wired by events: every order in which what the services tell each other can arrive.
//!
//! [`explore_events`] lets the services run, each with a store of its own, and stands between them: an event that
//! is published is held back until all services stand still, and then one of those that are held back is handed out. So each run is
//! one order of arrivals. All orders are run, and in each of them also
//!
//! - every event arrives **once more**, as another message, at each moment from then on: at once, between the others, and
//!   when everything is over. This holds an **undo before its do** and a **late do behind its undo**, wherever the wiring
//!   lets them come up;
//! - every service **crashes** at each boundary of its store and around each event that it tells, one crash a run, and
//!   another process goes on with its store.
//!
//! After each run every step must have come to an end, with no work, no message and no dead letter left behind, and the
//! user's [`audit`](ExploreEvents::audit) judges the business data. What an audit demands must be true in every order: that
//! of two services either both did what they do, or what one of them did is undone.
//!
//! Only events are held back. What services report to the one that follows their sagas is delivered at once, and a deadline
//! does not pass: it is longer than a run.

mod broker;
mod drive;
mod process;
mod report;
mod subject;

pub use self::drive::explore_events;
pub use self::report::{EventFailures, EventsExplored};
pub use self::subject::{ExploreEvents, FirstEvent};
