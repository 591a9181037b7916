//! Faults that were planned and never happened: a run says nothing about what it was spared.

use crate::inject::{Count, Counts};
use crate::plan::{CutAt, Disk, Fault, MEMBER_SILENCE, Plan, Server};

/// A cut waits for bytes that may not come by in its time, so one or two may miss them by chance.
const CUTS_MIN: usize = 3;

/// A kind of fault.
struct Kind {
    name: &'static str,
    is_one: fn(&Fault) -> bool,
    happened: fn(&Counts) -> u64,
    /// How many have to be planned for one of them to happen.
    planned_min: usize,
}

impl Kind {
    const fn of(name: &'static str, is_one: fn(&Fault) -> bool, happened: fn(&Counts) -> u64) -> Self {
        Self { name, is_one, happened, planned_min: 1 }
    }

    const fn cut(name: &'static str, is_one: fn(&Fault) -> bool, happened: fn(&Counts) -> u64) -> Self {
        Self { name, is_one, happened, planned_min: CUTS_MIN }
    }
}

const KINDS: [Kind; 18] = [
    // Each shifted clock is counted as a kill as well.
    Kind::of(
        "kills of replicas",
        |fault| matches!(fault, Fault::Kill(..)),
        |counts| counts.of(Count::Kills).saturating_sub(counts.of(Count::ClockShifts)),
    ),
    Kind::of(
        "restarts of PostgreSQL",
        |fault| matches!(fault, Fault::KillServer(Server::Postgres)),
        |counts| counts.of(Count::PostgresRestarts),
    ),
    Kind::of(
        "restarts of the broker",
        |fault| matches!(fault, Fault::KillServer(Server::Broker)),
        |counts| counts.of(Count::BrokerRestarts),
    ),
    Kind::cut(
        "cuts in commits",
        |fault| matches!(fault, Fault::Cut(CutAt::Commit(_) | CutAt::CommitAnswer(_))),
        |counts| counts.of(Count::CutsInCommits),
    ),
    Kind::cut(
        "cuts in publishes",
        |fault| matches!(fault, Fault::Cut(CutAt::Publish(_) | CutAt::Confirm(_))),
        |counts| counts.of(Count::CutsInPublishes),
    ),
    Kind::cut(
        "cuts in acknowledgements",
        |fault| matches!(fault, Fault::Cut(CutAt::Acknowledgement(_))),
        |counts| counts.of(Count::CutsInAcknowledgements),
    ),
    Kind::of(
        "stops of replicas past their lease",
        |fault| matches!(fault, Fault::Stop(..)),
        |counts| counts.of(Count::Stops),
    ),
    Kind::of("shifts of clocks", |fault| matches!(fault, Fault::Clock(..)), |counts| counts.of(Count::ClockShifts)),
    Kind::of(
        "deletions of queues",
        |fault| matches!(fault, Fault::DeleteQueue(_)),
        |counts| counts.of(Count::QueuesDeleted),
    ),
    Kind::of("memory alarms", |fault| matches!(fault, Fault::MemoryAlarm(_)), |counts| counts.of(Count::MemoryAlarms)),
    Kind::of("overloads", |fault| matches!(fault, Fault::Overload(_)), |counts| counts.of(Count::Overloads)),
    Kind::of(
        "partitions shorter than a membership",
        |fault| matches!(fault, Fault::Partition(_, _, time, _) if *time <= MEMBER_SILENCE),
        |counts| counts.of(Count::PartitionsShort),
    ),
    Kind::of(
        "partitions longer than a membership",
        |fault| matches!(fault, Fault::Partition(_, _, time, _) if *time > MEMBER_SILENCE),
        |counts| counts.of(Count::PartitionsLong),
    ),
    Kind::of(
        "closed standard errors",
        |fault| matches!(fault, Fault::CloseStderr(..)),
        |counts| counts.of(Count::StderrsClosed),
    ),
    // Without root there is no disk to fill, and the run says so.
    Kind::of(
        "full disks under tables",
        |fault| matches!(fault, Fault::FullDisk(Disk::Tables, _)),
        |counts| counts.of(Count::FullTables) + counts.of(Count::FullDisksLeftOut),
    ),
    Kind::of(
        "full disks under the broker",
        |fault| matches!(fault, Fault::FullDisk(Disk::Broker, _)),
        |counts| counts.of(Count::FullBrokerDisks),
    ),
    Kind::of(
        "full disks under a log",
        |fault| matches!(fault, Fault::FullDisk(Disk::Log(..), _)),
        |counts| counts.of(Count::FullLogs),
    ),
    Kind::of("full queues", |fault| matches!(fault, Fault::FullQueue(..)), |counts| counts.of(Count::FullQueues)),
];

/// The kinds of fault that the plan has and that never happened.
pub(super) fn absent_faults(plan: &Plan, counts: &Counts) -> Vec<String> {
    let absent = KINDS.iter().filter_map(|kind| {
        let planned = plan.count(kind.is_one);
        let is_absent = planned >= kind.planned_min && (kind.happened)(counts) == 0;
        is_absent.then(|| format!("{}: of {planned} planned, none happened", kind.name))
    });
    absent.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{PlannedFault, Role, Shape};

    const LENGTH: Duration = Duration::from_mins(20);

    fn plan_of(fault: Fault, times: usize) -> Plan {
        let planned = PlannedFault { at: Duration::ZERO, fault };
        Plan { seed: 0, length: LENGTH, faults: vec![planned; times] }
    }

    #[test]
    fn each_kind_that_was_planned_and_never_happened_is_named() {
        let plan = Plan::of(7, LENGTH, Shape::Everything);
        assert_eq!(absent_faults(&plan, &Counts::default()).len(), KINDS.len(), "{plan}");
        let is_of_a_kind = |planned: &PlannedFault| KINDS.iter().any(|kind| (kind.is_one)(&planned.fault));
        assert!(plan.faults.iter().all(is_of_a_kind), "{plan}");
    }

    #[test]
    fn only_what_was_planned_has_to_happen() {
        let plan = Plan::of(7, Duration::from_secs(25), Shape::ReplicasOnly);
        let counts = Counts::default();
        counts.add(Count::Kills);
        assert_eq!(absent_faults(&plan, &counts), ["stops of replicas past their lease: of 1 planned, none happened"]);
        counts.add(Count::Stops);
        assert!(absent_faults(&plan, &counts).is_empty(), "{plan}");
    }

    #[test]
    fn a_shifted_clock_is_no_kill() {
        let counts = Counts::default();
        counts.add(Count::Kills);
        counts.add(Count::ClockShifts);
        assert_eq!(absent_faults(&plan_of(Fault::Kill(Role::Orders, 0), 1), &counts).len(), 1);
    }

    #[test]
    fn two_cuts_may_miss_their_bytes() {
        let cut = Fault::Cut(CutAt::Acknowledgement(1));
        let counts = Counts::default();
        assert!(absent_faults(&plan_of(cut, 2), &counts).is_empty());
        assert_eq!(absent_faults(&plan_of(cut, 3), &counts).len(), 1);
        counts.add(Count::CutsInAcknowledgements);
        assert!(absent_faults(&plan_of(cut, 3), &counts).is_empty());
    }

    #[test]
    fn a_disk_that_was_left_out_is_not_absent() {
        let counts = Counts::default();
        counts.add(Count::FullDisksLeftOut);
        let plan = plan_of(Fault::FullDisk(Disk::Tables, Duration::from_secs(3)), 1);
        assert!(absent_faults(&plan, &counts).is_empty());
    }
}
