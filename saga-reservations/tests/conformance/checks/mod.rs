//! The checks.

mod actions;
mod capacity;
mod expiry;
mod flush;
mod keys;
mod tokens;

pub(crate) use self::capacity::*;
pub(crate) use self::expiry::*;
pub(crate) use self::flush::*;
pub(crate) use self::keys::*;
pub(crate) use self::tokens::*;
