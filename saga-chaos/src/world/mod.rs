//! Everything that runs: servers, proxies, the services outside, replicas.

mod clock;
mod diary;
mod outside;
mod program;
mod replica;
mod servers;
mod shop;
mod waves;

pub use clock::print_time;
pub(crate) use clock::{ClockShift, now_micros};
pub(crate) use diary::{Diary, DiaryLine, Happened};
pub(crate) use outside::Outside;
pub use program::Programs;
pub(crate) use program::finish;
pub(crate) use replica::{Replica, ReplicaKey, Setting, Times};
pub(crate) use servers::{Database, Servers};
pub(crate) use shop::prepare_shop;
pub(crate) use waves::Waves;
