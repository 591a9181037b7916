use std::fmt;
use std::time::Duration;

use saga_servers::{Cut, Direction};

/// A service, with replicas of which each is a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// It has the orders, and asks the others for their steps.
    Orders,
    /// It charges cards.
    Payments,
    /// It books shipments.
    Shipping,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Orders, Self::Payments, Self::Shipping];

    /// The name that the program knows it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Payments => "payments",
            Self::Shipping => "shipping",
        }
    }
}

/// A server that is killed and started again on its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// PostgreSQL, with `synchronous_commit` on.
    Postgres,
    /// The broker.
    Broker,
}

/// What is under way when a connection is cut, and behind how many bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutAt {
    /// A commit on its way to the database: before its last byte it has not happened, after it the client gets no answer.
    Commit(u64),
    /// The answer to a commit.
    CommitAnswer(u64),
    /// A message on its way to the broker.
    Publish(u64),
    /// The confirm of a message.
    Confirm(u64),
    /// An acknowledgement on its way to the broker.
    Acknowledgement(u64),
}

impl CutAt {
    /// The bytes that are looked for, in front of those that are counted.
    const COMMIT: &'static [u8] = b"Q\0\0\0\x0bC";
    const PUBLISH: &'static [u8] = &[0, 60, 0, 40];
    const ACKNOWLEDGE: &'static [u8] = &[0, 60, 0, 80];

    /// How many bytes there are to cut behind, for one of each kind.
    pub(crate) const SPANS: [fn(u64) -> Self; 5] = [
        |nth| Self::Commit(nth % 7),
        |nth| Self::CommitAnswer(nth % 18),
        |nth| Self::Publish(nth % 700),
        |nth| Self::Confirm(nth % 21),
        |nth| Self::Acknowledgement(nth % 11),
    ];

    /// The same for the proxy that does it.
    pub fn cut(self) -> Cut {
        let (counted, bytes, sought) = match self {
            Self::Commit(bytes) => (Direction::ToServer, bytes, Self::COMMIT),
            Self::CommitAnswer(bytes) => (Direction::ToClient, bytes, Self::COMMIT),
            Self::Publish(bytes) => (Direction::ToServer, bytes, Self::PUBLISH),
            Self::Confirm(bytes) => (Direction::ToClient, bytes, Self::PUBLISH),
            Self::Acknowledgement(bytes) => (Direction::ToServer, bytes, Self::ACKNOWLEDGE),
        };
        Cut::after(counted, bytes).seeing(Direction::ToServer, sought)
    }

    /// Whose connection is cut.
    pub const fn server(self) -> Server {
        match self {
            Self::Commit(_) | Self::CommitAnswer(_) => Server::Postgres,
            Self::Publish(_) | Self::Confirm(_) | Self::Acknowledgement(_) => Server::Broker,
        }
    }
}

/// A disk that has no room for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// The file system of the services' tables. It needs a file system of its own, which only root can mount.
    Tables,
    /// The broker's disk: the broker takes no messages while it counts as full.
    Broker,
    /// The file system of the log that a replica writes to its standard error.
    Log(Role, usize),
}

/// What becomes of what was said during a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heal {
    /// It arrives when the partition ends, and the connections go on.
    Delivers,
    /// It is lost, and the connections are closed when the partition ends.
    Loses,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL to a replica, which is started again at once.
    Kill(Role, usize),
    /// SIGKILL to a server, which is started again at once.
    KillServer(Server),
    /// A connection is cut.
    Cut(CutAt),
    /// A replica is stopped for longer than its leases last, and goes on.
    Stop(Role, usize, Duration),
    /// A replica is killed, and started again with a clock that is so many minutes off.
    Clock(Role, usize, i64),
    /// The queue of a service is deleted while it is consumed.
    DeleteQueue(Role),
    /// The broker takes no messages, as for want of memory.
    MemoryAlarm(Duration),
    /// Calls outside take long, and twice as many orders are started at once as the services can make calls for in that
    /// time.
    Overload(Duration),
    /// A replica does not reach PostgreSQL: its connections hang, and so do new ones.
    Partition(Role, usize, Duration, Heal),
    /// The other end of the pipe that a replica logs to is closed, while it runs.
    CloseStderr(Role, usize),
    /// A disk has no room.
    FullDisk(Disk, Duration),
    /// A service is away, and its queue takes no more than a few messages.
    FullQueue(Role, Duration),
}

impl Fault {
    /// How long something is away by it.
    pub(super) fn lasts(&self) -> Duration {
        match self {
            Self::Stop(_, _, time)
            | Self::MemoryAlarm(time)
            | Self::Overload(time)
            | Self::Partition(_, _, time, _)
            | Self::FullDisk(_, time)
            | Self::FullQueue(_, time) => *time,
            _ => Duration::ZERO,
        }
    }

    /// Whether only RabbitMQ can have it.
    pub(super) fn is_of_rabbitmq(&self) -> bool {
        match self {
            Self::DeleteQueue(_) | Self::MemoryAlarm(_) | Self::FullQueue(..) | Self::FullDisk(Disk::Broker, _) => true,
            Self::Cut(at) => at.server() == Server::Broker,
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(role, nth) => write!(f, "SIGKILL {}-{nth}", role.name()),
            Self::KillServer(Server::Postgres) => f.write_str("SIGKILL PostgreSQL, and start it again"),
            Self::KillServer(Server::Broker) => f.write_str("SIGKILL the broker, and start it again"),
            Self::Cut(CutAt::Commit(bytes)) => write!(f, "cut behind byte {bytes} of a commit"),
            Self::Cut(CutAt::CommitAnswer(bytes)) => write!(f, "cut behind byte {bytes} of the answer to a commit"),
            Self::Cut(CutAt::Publish(bytes)) => write!(f, "cut behind byte {bytes} of a publish"),
            Self::Cut(CutAt::Confirm(bytes)) => write!(f, "cut behind byte {bytes} of the answer to a publish"),
            Self::Cut(CutAt::Acknowledgement(bytes)) => write!(f, "cut behind byte {bytes} of an acknowledgement"),
            Self::Stop(role, nth, time) => write!(f, "SIGSTOP {}-{nth} for {} s", role.name(), time.as_secs()),
            Self::Clock(role, nth, minutes) => {
                write!(f, "the clock of {}-{nth} is {minutes:+} minutes off", role.name())
            }
            Self::DeleteQueue(role) => write!(f, "delete the queue of {}", role.name()),
            Self::MemoryAlarm(time) => write!(f, "memory alarm for {} s", time.as_secs()),
            Self::Overload(time) => write!(f, "overload for {} s", time.as_secs()),
            Self::Partition(role, nth, time, heal) => {
                let then = if *heal == Heal::Delivers { "and goes on" } else { "and loses its connections" };
                write!(f, "{}-{nth} does not reach PostgreSQL for {} s, {then}", role.name(), time.as_secs())
            }
            Self::CloseStderr(role, nth) => write!(f, "close the standard error of {}-{nth}", role.name()),
            Self::FullDisk(Disk::Tables, time) => write!(f, "no room for tables for {} s", time.as_secs()),
            Self::FullDisk(Disk::Broker, time) => write!(f, "the broker's disk is full for {} s", time.as_secs()),
            Self::FullDisk(Disk::Log(role, nth), time) => {
                write!(f, "the log of {}-{nth} is on a full disk for {} s", role.name(), time.as_secs())
            }
            Self::FullQueue(role, time) => {
                write!(f, "{} is away for {} s, and its queue has a limit", role.name(), time.as_secs())
            }
        }
    }
}
