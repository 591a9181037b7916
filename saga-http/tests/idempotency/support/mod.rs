//! An application with payments, on any store.

pub(crate) mod answer;
pub(crate) mod application;
pub(crate) mod ledger;
pub(crate) mod stores;

pub(crate) use self::answer::{Answer, request, send};
pub(crate) use self::application::{Application, Order};
pub(crate) use self::ledger::Ledger;
pub(crate) use self::stores::{on_each_store, on_stores};
