//! One file per task.

mod api;
mod bench;
mod book;
mod chaos;
mod check;
mod demo;
mod guarantees;
mod packages;
mod prerequisites;
mod services;
mod sim;
mod test;
mod tidy;

pub(crate) use api::{Api, api};
pub(crate) use bench::{Bench, bench};
pub(crate) use book::book;
pub(crate) use chaos::chaos;
pub(crate) use check::{Check, check};
pub(crate) use demo::{Demo, demo};
pub(crate) use guarantees::guarantees;
pub(crate) use services::{ServicesTask, services};
pub(crate) use sim::sim;
pub(crate) use test::{Test, test};
pub(crate) use tidy::{Tidy, tidy};
