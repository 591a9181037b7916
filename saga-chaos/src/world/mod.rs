//! Everything that runs: servers, proxies, the services outside, replicas.

mod broker;
mod clock;
mod diary;
mod disk;
mod outside;
mod program;
mod replica;
mod replica_faults;
mod replica_log;
mod servers;
mod shop;
mod waves;

pub use broker::Transport;
pub(crate) use broker::{Broker, Carrier};
pub use clock::print_time;
pub(crate) use clock::{ClockShift, now_micros};
pub(crate) use diary::{Diary, DiaryLine, Happened};
pub(crate) use disk::SmallDisk;
pub(crate) use outside::Outside;
pub use program::Programs;
pub(crate) use program::finish;
pub(crate) use replica::{Replica, ReplicaKey, Setting, Times};
pub(crate) use replica_log::LogState;
pub(crate) use servers::{Database, Own, Servers};
pub(crate) use shop::{prepare_purges, prepare_shop};
pub(crate) use waves::Waves;
