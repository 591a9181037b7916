//! What was seen, and all that is known of one run.

mod answers;
mod ledger;
mod what;

pub use self::answers::{Act, Age, Answer, Left, Receipt, Sent};
pub use self::ledger::{Entry, Ledger, Pace};
pub use self::what::What;
