//! Those who start sagas, send signals to them, and operate on them.

mod bulk;
mod client;
mod external_client;
mod moves;
mod operate;
mod pauses;
mod restarts;
mod retention;
mod rows;
mod signals;

pub(crate) use self::client::Client;
pub(crate) use self::external_client::ask_and_take_back;
pub(crate) use self::operate::operate;
