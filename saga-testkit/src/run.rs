//! Running a suite: the trials, their runtime, and what is said of those that were skipped.

use std::collections::BTreeSet;
use std::future::Future;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use saga_core::env::BoxFuture;
use saga_core::store::{Hints as _, Store as _};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::check::{Check, Need};
use crate::fixture::Bench;
use crate::harness::{StartInHarness, StoreHarness, TransportHarness, Unavailable};
use crate::registry::{start_in_checks, store_checks, transport_checks};
use crate::report::Report;
use crate::transport;

/// The backends, divided by commas, whose absence fails a run instead of skipping it.
const REQUIRED: &str = "SAGA_TEST_REQUIRED";
/// The argument that prints which clauses were kept.
const REPORT: &str = "--report";
/// Longer than any check takes: one that has not ended by then waits for what never comes.
const CHECK_MAX: Duration = Duration::from_mins(2);

/// Runs the suite of a store. [`store_main!`](crate::store_main) writes the `main` that calls it.
pub fn store_suite<H: StoreHarness>(harness: Result<H, Unavailable>) -> ExitCode {
    Suite { checks: store_checks::<H>(), unmet, bench: |harness| Box::pin(Bench::fresh(harness)) }.run(harness)
}

/// Runs the suite of a store that can start sagas in the application's own transaction.
pub fn start_in_suite<H: StartInHarness>(harness: Result<H, Unavailable>) -> ExitCode {
    let mut checks = store_checks::<H>();
    checks.extend(start_in_checks::<H>());
    Suite { checks, unmet, bench: |harness| Box::pin(Bench::fresh(harness)) }.run(harness)
}

/// Runs the suite of a transport. [`transport_main!`](crate::transport_main) writes the `main` that calls it.
pub fn transport_suite<H: TransportHarness>(harness: Result<H, Unavailable>) -> ExitCode {
    let bench: fn(Arc<H>) -> BoxFuture<'static, _> = |harness| Box::pin(transport::Bench::fresh(harness));
    Suite { checks: transport_checks::<H>(), unmet: |_| Vec::new(), bench }.run(harness)
}

/// Runs a future on a runtime of its own, with several threads so that races are real.
///
/// # Panics
/// When the operating system gives the runtime no threads.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// The result of a future, or none if it has not ended when the time is over.
fn block_for<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let runtime = runtime();
    let result = runtime.block_on(async { timeout(time, future).await }).ok();
    if result.is_none() {
        // What it still does may never end either.
        runtime.shutdown_background();
    }
    result
}

#[expect(clippy::expect_used, reason = "without a runtime no check can be made")]
fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the operating system gives the runtime its threads")
}

/// Which needs are not met, by the store itself or by its harness.
fn unmet<H: StoreHarness>(harness: &Arc<H>) -> Vec<Need> {
    let (capabilities, has_hints) = block_on(async {
        let store = harness.fresh().await;
        (store.capabilities(), store.listen().is_some())
    });
    let shared = capabilities.shared;
    let provokes = harness.provokes();
    let needs = [
        (Need::Shared, shared),
        (Need::Alone, !shared),
        (Need::StartsInTransactions, capabilities.starts_in_transactions),
        (Need::Hints, has_hints),
        (Need::EndedTransaction, provokes.ended_transaction),
        (Need::UnknownCommit, provokes.unknown_commit),
        (Need::Hours, provokes.hours),
    ];
    needs.into_iter().filter(|(_, is_met)| !is_met).map(|(need, _)| need).collect()
}

/// The checks, which of their needs are not met, and the bench that each gets.
struct Suite<H, B> {
    checks: Vec<Check<B>>,
    unmet: fn(&Arc<H>) -> Vec<Need>,
    bench: fn(Arc<H>) -> BoxFuture<'static, B>,
}

impl<H: Send + Sync + 'static, B: Send + 'static> Suite<H, B> {
    /// Runs the checks that the arguments ask for, and says what was skipped and why.
    fn run(self, harness: Result<H, Unavailable>) -> ExitCode {
        let arguments = Arguments::from_iter(std::env::args().filter(|argument| argument != REPORT));
        let harness = harness.map(Arc::new);
        let unmet = harness.as_ref().map(self.unmet).unwrap_or_default();
        let report = Arc::new(Mutex::new(Report::default()));
        let mut reasons = BTreeSet::new();
        let trial = |check: Check<B>| {
            let reason = match &harness {
                Err(unavailable) => Some(unavailable.reason.clone()),
                Ok(_) => check.needs.iter().find(|need| unmet.contains(need)).map(|need| need.reason().to_owned()),
            };
            lock(&report).expect(check.clauses, &check.id(), reason.as_deref());
            reasons.extend(reason.clone());
            let harness = match (&harness, reason) {
                (Ok(harness), None) => Ok(Arc::clone(harness)),
                (_, reason) => Err(reason.unwrap_or_default()),
            };
            trial(check, harness, self.bench, &report)
        };
        let trials = self.checks.into_iter().map(trial).collect();
        let conclusion = libtest_mimic::run(&arguments, trials);
        if !arguments.list {
            for reason in &reasons {
                println!("some checks were skipped: {reason}");
            }
            for (check, reason) in lock(&report).not_applicable() {
                println!("{check} does not apply: {reason}");
            }
        }
        if std::env::args().any(|argument| argument == REPORT) {
            println!("{}", lock(&report));
        }
        if let Err(unavailable) = &harness
            && is_required(&unavailable.backend)
        {
            println!("{REQUIRED} asks for {}, and it is not there: {}", unavailable.backend, unavailable.reason);
            return ExitCode::FAILURE;
        }
        conclusion.exit_code()
    }
}

/// A check as the runner sees it. One that is skipped is flagged when the list is made, so that every runner shows it;
/// a runner that forces it gets the reason.
fn trial<H, B>(
    check: Check<B>,
    harness: Result<Arc<H>, String>,
    bench: fn(Arc<H>) -> BoxFuture<'static, B>,
    report: &Arc<Mutex<Report>>,
) -> Trial
where
    H: Send + Sync + 'static,
    B: Send + 'static,
{
    let (id, is_skipped, report) = (check.id(), harness.is_err(), Arc::clone(report));
    let run = move || {
        let harness = harness.map_err(Failed::from)?;
        let verdict = block_for(CHECK_MAX, async { check.verdict(bench(harness).await).await });
        let verdict = verdict.unwrap_or_else(|| Err(check.failed(&format!("it did not end within {CHECK_MAX:?}"))));
        lock(&report).note(&check.id(), verdict.as_ref().ok().copied());
        verdict.map(drop).map_err(|failed| Failed::from(failed.0))
    };
    Trial::test(id, run).with_ignored_flag(is_skipped)
}

fn is_required(backend: &str) -> bool {
    std::env::var(REQUIRED).is_ok_and(|required| required.split(',').any(|name| name.trim() == backend))
}

fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}
