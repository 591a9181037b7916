//! What the tests share: a folder with a shop in it, the program, and the services outside as a process of their own.

mod disk;
mod expect;
mod outside;
mod ran;
mod random;
mod services;
mod shop;
mod until;

pub(crate) use disk::SmallDisk;
pub(crate) use expect::{all_ended, decided};
pub(crate) use outside::OutsideProcess;
pub(crate) use ran::{Ran, number};
pub(crate) use random::seed_from_env;
pub(crate) use services::{Replica, Services};
pub(crate) use shop::{ORDERS, PRODUCTS, REAL, REAL_ORDERS, Shop, blocking};
pub(crate) use until::{until, until_or_ended};
