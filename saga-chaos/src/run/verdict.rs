//! What is reported of a run: its problems, its figures, and what is kept of a run that failed.

use std::path::PathBuf;

use order_rig::outside::LateCalls;

use super::absent_faults::absent_faults;
use super::world::World;
use crate::inject::Count;
use crate::judge::{Evidence, Judged, OpenLetters, judge, with_a_charge_too_many};
use crate::plan::{Plan, Role};
use crate::report::Report;
use crate::watch::{NotAtRest, Watched};

impl World {
    pub(super) fn problems(&self, plan: &Plan, judged: &Judged, not_at_rest: &[NotAtRest]) -> Vec<String> {
        let mut problems: Vec<String> = not_at_rest.iter().map(ToString::to_string).collect();
        problems.extend(absent_faults(plan, &self.counts));
        problems.extend(judged.verify_failed.clone());
        if judged.letters > 0 {
            problems.push(format!("{} dead letters are open", judged.letters));
        }
        if judged.stuck + judged.others > 0 {
            problems.push(format!("{} orders are stuck, {} have not ended", judged.stuck, judged.others));
        }
        let named = |(key, violation): &(Option<String>, _)| format!("{}: {violation}", key.as_deref().unwrap_or("-"));
        problems.extend(judged.beside_remainder.iter().map(named));
        // The checker and the audit report all of the remainder, and nothing else.
        let orders = judged.remainder.orders();
        for (key, violation) in &judged.violations {
            if !key.as_deref().is_some_and(|key| orders.contains(key)) {
                problems.push(format!("beside the remainder: {}", named(&(key.clone(), violation.clone()))));
            }
        }
        for (subject, wrong) in &judged.findings {
            if !orders.contains(subject.as_str()) {
                problems.push(format!("verify: {subject}: {wrong}"));
            }
        }
        for (order, step) in judged.remainder.landed.keys() {
            let is_reported = |(key, violation): &(Option<String>, saga_testkit::checker::Violation)| {
                key.as_deref() == Some(order) && violation.about.contains(step.as_str())
            };
            if !judged.violations.iter().any(is_reported) {
                problems.push(format!("{order}:{step} landed after its undo, and the checker does not report it"));
            }
        }
        if self.options.late_calls == LateCalls::Refused && !judged.remainder.landed.is_empty() {
            problems.push(format!("{} calls landed after their undo, though it bars them", orders.len()));
        }
        problems.extend(judged.purges.problems());
        problems.extend(judged.open_letters.problems(&judged.purges));
        if self.options.purges && self.counts.of(Count::PurgesHeldUp) == 0 {
            problems.push("no open dead letter held up the purge of its order".to_owned());
        }
        problems.dedup();
        problems
    }

    /// What is found when the book outside has a charge too many: the checker and the audit must each find it. And in a run that
    /// purges, what is found when a dead letter was open about an order that was purged.
    pub(super) async fn planted(&self, evidence: &Evidence<'_>) -> anyhow::Result<Vec<String>> {
        let book = with_a_charge_too_many(&self.outside.book)?;
        let judged = judge(&Evidence { book: &book, ..*evidence }).await?;
        let checker = judged.beside_remainder.iter().map(|(_, violation)| violation.to_string()).next();
        let twice = judged.findings.iter().find(|(_, wrong)| wrong.contains("charged 2 times"));
        let twice = twice.map(|(subject, wrong)| format!("verify: {subject}: {wrong}"));
        let lettered = OpenLetters::with_a_letter_about_what_was_purged(&judged.purges);
        Ok(checker.into_iter().chain(twice).chain(lettered).collect())
    }

    pub(super) async fn count(&self, report: &mut Report, judged: &Judged, watched: &Watched, orders: usize) {
        let mut ended_badly = 0;
        for replica in self.replicas.iter() {
            ended_badly += replica.ended_badly().await;
        }
        let counted = |count| self.counts.of(count);
        report.count("replicas killed", counted(Count::Kills));
        report.count("restarts of PostgreSQL", counted(Count::PostgresRestarts));
        report.count("restarts of the broker", counted(Count::BrokerRestarts));
        report.count("cuts in commits", counted(Count::CutsInCommits));
        report.count("cuts in publishes", counted(Count::CutsInPublishes));
        report.count("cuts in acknowledgements", counted(Count::CutsInAcknowledgements));
        report.count("cuts whose bytes never came", counted(Count::CutsOutOfReach));
        report.count("replicas stopped past their lease", counted(Count::Stops));
        report.count("clocks shifted", counted(Count::ClockShifts));
        report.count("queues deleted", counted(Count::QueuesDeleted));
        report.count("memory alarms", counted(Count::MemoryAlarms));
        report.count("overloads", counted(Count::Overloads));
        report.count("most calls that waited in an overload", counted(Count::OverloadDepth));
        report.count("partitions shorter than a membership", counted(Count::PartitionsShort));
        report.count("partitions longer than a membership", counted(Count::PartitionsLong));
        report.count("standard errors closed", counted(Count::StderrsClosed));
        report.count("full disks under tables", counted(Count::FullTables));
        report.count("full disks under the broker", counted(Count::FullBrokerDisks));
        report.count("full disks under a log", counted(Count::FullLogs));
        report.count("full disks left out for want of privileges", counted(Count::FullDisksLeftOut));
        report.count("full queues", counted(Count::FullQueues));
        report.count("faults that nothing ran into", counted(Count::Unmet));
        report.count("most messages refused by a full queue", counted(Count::Refused));
        report.count("replicas that ended and were started again", ended_badly);
        report.count("orders", orders as u64);
        report.count("orders completed", judged.completed as u64);
        report.count("orders compensated", judged.compensated as u64);
        report.count("orders stuck", judged.stuck as u64);
        report.count("orders that it was too late to start", judged.late as u64);
        report.count("sagas archived", judged.archived);
        report.count("tombstones made of orders", judged.purges.count(Role::Orders, false));
        report.count("orders deleted", judged.purges.count(Role::Orders, true));
        let hosts = [Role::Payments, Role::Shipping];
        report.count("steps deleted by their hosts", hosts.map(|role| judged.purges.count(role, true)).iter().sum());
        report.count("starts of tombstones", judged.tombstones);
        report.count("malformed messages sent", counted(Count::MalformedMessages));
        report.count("orders kept for an open dead letter", counted(Count::PurgesHeldUp));
        report.count("messages received once", judged.received);
        report.count("duplicates sent", counted(Count::Copies));
        report.count("calls outside that were retries", judged.retries);
        report.count("calls outside that were held", judged.held);
        report.count("effects behind their undo", judged.remainder.landed.len() as u64);
        let entries: usize = judged.ledgers.iter().map(|ledger| ledger.entries.len()).sum();
        report.count("facts in the ledgers", entries as u64);
        report.count("longest standstill, s", watched.standstill.as_secs());
    }

    /// The servers end with this program; what was in them is kept beside the rest.
    pub(super) async fn dump_databases(&self) {
        for database in self.servers.databases() {
            let name = format!("{}.sql", database.role.name());
            let Ok(programs) = saga_servers::postgres_programs() else { continue };
            let mut command = std::process::Command::new(programs.join("pg_dump"));
            command.arg("-f").arg(self.folder.path().join(name)).arg(&database.url);
            if let Err(error) = crate::world::finish(command).await {
                self.diary.say(format_args!("the database of {} is not kept: {error}", database.role.name()));
            }
        }
    }

    /// Keeps the folder when this value is gone, with what the servers said.
    pub(super) async fn keep(&self) -> PathBuf {
        if let Some(own) = &self.servers.own {
            let logs = [("postgres", own.postgres.lock().await.log()), ("broker", own.broker.lock().await.log())];
            for (server, log) in logs {
                let path = self.folder.path().join(format!("{server}.log"));
                let kept = log.map_err(anyhow::Error::from).and_then(|log| Ok(std::fs::write(path, log)?));
                if let Err(error) = kept {
                    self.diary.say(format_args!("the log of {server} is not kept: {error}"));
                }
            }
        }
        let kept = self.folder.path().with_extension("kept");
        match std::fs::rename(self.folder.path(), &kept) {
            Ok(()) => kept,
            Err(_) => self.folder.path().to_path_buf(),
        }
    }
}
