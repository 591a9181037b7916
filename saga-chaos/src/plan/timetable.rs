use std::fmt;
use std::time::Duration;

use saga_servers::RabbitMqServer;
use saga_testkit::sim::Random;

use super::fault::{CutAt, Disk, Fault, Heal, Role, Server};

/// What a plan is to have in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Every kind of fault.
    Everything,
    /// Every kind but those that only RabbitMQ can have.
    OnKafka,
    /// The same, and the broker is not killed.
    OnSqs,
    /// Replicas are killed and stopped; the servers, which others may be using, are left alone.
    ReplicasOnly,
}

impl Shape {
    fn has(self, fault: &Fault) -> bool {
        match self {
            Self::Everything | Self::ReplicasOnly => true,
            Self::OnKafka => !fault.is_of_rabbitmq(),
            Self::OnSqs => !fault.is_of_rabbitmq() && *fault != Fault::KillServer(Server::Broker),
        }
    }
}

/// A fault and when it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedFault {
    /// How long after the orders began to flow.
    pub at: Duration,
    /// What goes wrong.
    pub fault: Fault,
}

/// What goes wrong in a run, in the order in which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed it follows from.
    pub seed: u64,
    /// For how long there are faults.
    pub length: Duration,
    /// The faults.
    pub faults: Vec<PlannedFault>,
}

/// How many replicas each service has.
pub const REPLICAS: usize = 2;
/// How long a replica may be silent before the others take what it has: the lease that all of them are given.
pub(crate) const MEMBER_SILENCE: Duration = Duration::from_secs(6);
/// The queues have been declared long enough by then, see [`RabbitMqServer::QUEUE_SETTLING_TIME`].
const FIRST_BROKER_KILL: Duration = RabbitMqServer::QUEUE_SETTLING_TIME.saturating_mul(2);
/// A broker needs its time to come back, and to be of use for a while.
const BROKER_KILLS_APART: Duration = Duration::from_secs(75);
const PARTITION_MIN: Duration = Duration::from_secs(5);
/// A short plan has shorter ones.
const PARTITION_MAX: Duration = Duration::from_mins(1);
const KILLS_MIN: u64 = 32;
const RESTARTS_MIN: u64 = 2;

impl Plan {
    /// The plan of that seed: the same arguments always give the same.
    pub fn of(seed: u64, length: Duration, shape: Shape) -> Self {
        let mut draw = Draw { random: Random::new(seed), length, faults: Vec::new() };
        match shape {
            Shape::ReplicasOnly => draw.replicas_only(),
            _ => draw.everything(),
        }
        let mut faults = draw.faults;
        faults.retain(|planned| shape.has(&planned.fault));
        faults.sort_by_key(|planned| planned.at);
        Self { seed, length, faults }
    }

    /// How many of them are of that kind.
    pub fn count(&self, is_one: impl Fn(&Fault) -> bool) -> usize {
        self.faults.iter().filter(|planned| is_one(&planned.fault)).count()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan of seed {}: {} faults in {} s", self.seed, self.faults.len(), self.length.as_secs())?;
        for PlannedFault { at, fault } in &self.faults {
            writeln!(f, "{:>8.1} s  {fault}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

struct Draw {
    random: Random,
    length: Duration,
    faults: Vec<PlannedFault>,
}

impl Draw {
    fn everything(&mut self) {
        let seconds = self.length.as_secs();
        let rate = |per_ten_minutes: u64, least: u64| (per_ten_minutes * seconds / 600).max(least);
        self.spread(rate(180, KILLS_MIN), Self::kill);
        self.spread(rate(240, 10), |draw| Fault::Cut(draw.cut()));
        self.spread(rate(15, 2), Self::stop);
        self.spread(rate(15, 2), Self::clock);
        self.spread(rate(10, 1), |draw| Fault::DeleteQueue(*draw.random.pick(&Role::ALL)));
        self.spread(rate(5, 1), |draw| Fault::MemoryAlarm(draw.seconds(2, 6)));
        self.spread(rate(12, RESTARTS_MIN), |_| Fault::KillServer(Server::Postgres));
        self.broker_kills(rate(7, RESTARTS_MIN));
        self.spread(rate(5, 1), |draw| Fault::Overload(draw.seconds(4, 8)));
        self.partitions(rate(8, 2));
        self.spread(rate(6, 1), Self::close_stderr);
        self.full_disks(rate(9, 3));
        self.spread(rate(5, 1), Self::full_queue);
    }

    /// By turns shorter and longer than what a member may be silent for.
    fn partitions(&mut self, count: u64) {
        let member = MEMBER_SILENCE.as_millis() as u64;
        let most = PARTITION_MAX.min(self.length / 3).as_millis() as u64;
        let mut nth = 0;
        self.spread(count, |draw| {
            nth += 1;
            let (least, most) =
                if nth % 2 == 1 { (PARTITION_MIN.as_millis() as u64, member - 1) } else { (member + 1_000, most) };
            let (role, replica) = draw.replica();
            let heal = if draw.random.per_mille(500) { Heal::Delivers } else { Heal::Loses };
            Fault::Partition(role, replica, Duration::from_millis(draw.random.between(least, most)), heal)
        });
    }

    /// Each kind of disk in its turn.
    fn full_disks(&mut self, count: u64) {
        let mut nth = 0;
        self.spread(count, |draw| {
            nth += 1;
            let disk = match nth % 3 {
                1 => Disk::Tables,
                2 => Disk::Broker,
                _ => {
                    let (role, replica) = draw.replica();
                    Disk::Log(role, replica)
                }
            };
            Fault::FullDisk(disk, draw.seconds(3, 8))
        });
    }

    fn close_stderr(&mut self) -> Fault {
        let (role, nth) = self.replica();
        Fault::CloseStderr(role, nth)
    }

    /// Of a service that is asked by another one: while the orders are away, hardly anything is sent to them.
    fn full_queue(&mut self) -> Fault {
        let role = *self.random.pick(&[Role::Payments, Role::Shipping]);
        Fault::FullQueue(role, self.seconds(4, 8))
    }

    fn replicas_only(&mut self) {
        let kills = self.length.as_secs().div_ceil(4);
        self.spread(kills, Self::kill);
        self.spread(1, Self::stop);
    }

    /// So many, each within its own part of the time.
    fn spread(&mut self, count: u64, mut fault: impl FnMut(&mut Self) -> Fault) {
        let part = self.length.as_millis() as u64 / count.max(1);
        for nth in 0..count {
            let at = Duration::from_millis(nth * part + self.random.below(part));
            let fault = fault(self);
            self.faults.push(PlannedFault { at, fault });
        }
    }

    fn broker_kills(&mut self, most: u64) {
        let apart = BROKER_KILLS_APART.min(self.length.saturating_sub(FIRST_BROKER_KILL) / RESTARTS_MIN as u32);
        let mut at = FIRST_BROKER_KILL + Duration::from_millis(self.random.below(4_000));
        for _ in 0..most {
            if at >= self.length {
                break;
            }
            self.faults.push(PlannedFault { at, fault: Fault::KillServer(Server::Broker) });
            at += apart;
        }
    }

    fn replica(&mut self) -> (Role, usize) {
        (*self.random.pick(&Role::ALL), self.random.below(REPLICAS as u64) as usize)
    }

    fn kill(&mut self) -> Fault {
        let (role, nth) = self.replica();
        Fault::Kill(role, nth)
    }

    fn stop(&mut self) -> Fault {
        let (role, nth) = self.replica();
        Fault::Stop(role, nth, self.seconds(9, 14))
    }

    fn clock(&mut self) -> Fault {
        let (role, nth) = self.replica();
        let minutes = self.random.between(2, 20).cast_signed();
        Fault::Clock(role, nth, if self.random.per_mille(500) { minutes } else { -minutes })
    }

    fn cut(&mut self) -> CutAt {
        let kind = *self.random.pick(&CutAt::SPANS);
        kind(self.random.below(1_000_000))
    }

    fn seconds(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_secs(self.random.between(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(80);

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_seed_another() {
        let plan = |seed| Plan::of(seed, SHORT, Shape::Everything);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7).faults, plan(8).faults);
    }

    #[test]
    fn every_plan_has_every_kind_of_fault_often_enough() {
        for seed in 0..200 {
            let plan = Plan::of(seed, SHORT, Shape::Everything);
            let count = |is_one: fn(&Fault) -> bool| plan.count(is_one);
            assert!(count(|fault| matches!(fault, Fault::Kill(..))) >= 30, "{plan}");
            assert!(count(|fault| *fault == Fault::KillServer(Server::Postgres)) >= 2, "{plan}");
            assert!(count(|fault| *fault == Fault::KillServer(Server::Broker)) >= 2, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::Cut(_))) >= 10, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::Stop(..))) >= 2, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::Clock(..))) >= 2, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::DeleteQueue(_))) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::MemoryAlarm(_))) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::Overload(_))) >= 1, "{plan}");
            assert!(count(|fault| partition(fault).is_some_and(|time| time < MEMBER_SILENCE)) >= 1, "{plan}");
            assert!(count(|fault| partition(fault).is_some_and(|time| time > MEMBER_SILENCE)) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::CloseStderr(..))) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::FullDisk(Disk::Tables, _))) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::FullDisk(Disk::Broker, _))) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::FullDisk(Disk::Log(..), _))) >= 1, "{plan}");
            assert!(count(|fault| matches!(fault, Fault::FullQueue(..))) >= 1, "{plan}");
        }
    }

    fn partition(fault: &Fault) -> Option<Duration> {
        if let Fault::Partition(_, _, time, _) = fault { Some(*time) } else { None }
    }

    #[test]
    fn partitions_last_from_5_to_60_s_and_are_of_both_kinds() {
        let plan = Plan::of(7, Duration::from_mins(20), Shape::Everything);
        let lasts =
            |fault: &Fault, from, to| partition(fault).is_some_and(|time| (from..=to).contains(&time.as_secs()));
        assert_eq!(plan.count(|fault| lasts(fault, 5, 60)), plan.count(|fault| partition(fault).is_some()), "{plan}");
        assert!(plan.count(|fault| lasts(fault, 30, 60)) >= 1, "{plan}");
        for heal in [Heal::Delivers, Heal::Loses] {
            let healed = |fault: &Fault| matches!(fault, Fault::Partition(_, _, _, by) if *by == heal);
            assert!(plan.count(healed) >= 1, "{plan}");
        }
    }

    #[test]
    fn servers_that_others_use_are_left_alone() {
        let plan = Plan::of(3, SHORT, Shape::ReplicasOnly);
        let is_harmless = |fault: &Fault| matches!(fault, Fault::Kill(..) | Fault::Stop(..));
        assert!(plan.count(is_harmless) == plan.faults.len() && plan.faults.len() > 15, "{plan}");
    }

    #[test]
    fn what_only_rabbitmq_can_have_is_left_out_elsewhere() {
        for seed in 0..200 {
            let [kafka, sqs] = [Shape::OnKafka, Shape::OnSqs].map(|shape| Plan::of(seed, SHORT, shape));
            for plan in [&kafka, &sqs] {
                assert_eq!(plan.count(Fault::is_of_rabbitmq), 0, "{plan}");
                assert!(plan.count(|fault| matches!(fault, Fault::Kill(..))) >= 30, "{plan}");
            }
            let kills = |plan: &Plan| plan.count(|fault| *fault == Fault::KillServer(Server::Broker));
            assert!(kills(&kafka) >= 2 && kills(&sqs) == 0, "{kafka}{sqs}");
        }
    }

    #[test]
    fn a_plan_reads_as_a_timetable() {
        let text = Plan::of(3, SHORT, Shape::Everything).to_string();
        assert!(text.starts_with("plan of seed 3: "), "{text}");
        assert!(text.contains(" s  SIGKILL the broker, and start it again\n"), "{text}");
        for fault in
            ["overload for", "not reach PostgreSQL for", "close the standard error of", "no room for tables for"]
        {
            assert!(text.contains(fault), "no {fault} in\n{text}");
        }
    }
}
