use std::fmt;

use saga_core::engine::{
    ChildStatus, HistoryEvent, ItemCounts, LockScope, LockStatus, SagaStatus, SagaSummary, StepProgress, StepStatus,
    WaitKind,
};
use saga_core::{Outcome, StepPhase};

use super::time::{after, utc};
use crate::plain::write_line;

/// How many characters of a report or a result are shown.
const REPORT_MAX: usize = 120;

/// All that is known of one saga, for people.
pub(super) struct Shown<'a>(pub(super) &'a SagaStatus);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SagaStatus { summary, steps, history, deadline, revision, .. } = self.0;
        let (SagaSummary { key, saga, version, .. }, start) = (summary, summary.started_at);
        write_line(f, format_args!("{key} ({saga} version {version}): {}", stands(summary)))?;
        let (moved, at) = summary.ended_at.map_or(("moved", summary.advanced_at), |at| ("ended", at));
        writeln!(f, "started {} UTC, {moved} {}, revision {revision}", utc(start), after(start, at))?;
        if let Some(outer) = &summary.step_of {
            write_line(f, format_args!("it is a step of {outer}"))?;
        }
        if let Some(Outcome::Completed { result, no_result, .. }) = &summary.outcome {
            if let Some(result) = result {
                write_line(f, format_args!("returned {}", shortened(result.as_json())))?;
            }
            if let Some(reason) = no_result {
                write_line(f, format_args!("returned nothing: {}", shortened(reason)))?;
            }
        }
        if let Some(deadline) = deadline {
            writeln!(f, "compensates at {} UTC unless it has begun its pivot", utc(*deadline))?;
        }
        writeln!(f, "\n{:<16} {:<10} {:>8} {:>10} {:>10} {:>10}", "step", "is", "attempts", "took", "at", "undone")?;
        for step in steps {
            let StepStatus { step: name, attempts, took, recorded_at, undone_at, .. } = step;
            let took = took.map(|took| format!("{:.1} ms", took.as_secs_f64() * 1_000.0)).unwrap_or_default();
            let at = recorded_at.map(|at| after(start, at)).unwrap_or_default();
            let undone = undone_at.map(|at| after(start, at)).unwrap_or_default();
            let line = format!("{name:<16} {:<10} {attempts:>8} {took:>10} {at:>10} {undone:>10}", step.phase_name);
            write_line(f, format_args!("{}", format!("{line}  {}", said(step)).trim_end()))?;
        }
        if !is_sequence(steps) {
            writeln!(f, "\nwhat comes after what")?;
            for step in steps.iter().filter(|step| !step.is_item()) {
                write_line(f, format_args!("{:<16} {}", step.step, behind(step)))?;
            }
        }
        if !history.is_empty() {
            writeln!(f, "\nwhat else happened")?;
        }
        for HistoryEvent { at, kind, step, attempt, detail, .. } in history {
            let step = step.as_ref().map_or("the saga", |step| step.as_str());
            let attempt = if *attempt > 0 { format!(", attempt {attempt}") } else { String::new() };
            let (at, kind) = (after(start, *at), kind.as_str());
            write_line(f, format_args!("{at:>10}  {step}: {kind}{attempt}: {detail}"))?;
        }
        Ok(())
    }
}

/// Where it stands, and why.
fn stands(summary: &SagaSummary) -> String {
    let stands = match &summary.outcome {
        Some(outcome) => outcome.to_string(),
        None => match &summary.waits_for {
            Some(reason) => format!("{}; {reason}", summary.status),
            None => summary.status.to_string(),
        },
    };
    let Some(paused) = &summary.paused else { return stands };
    let by = paused.actor.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let since = paused.since.map(|since| format!(" since {} UTC", utc(since))).unwrap_or_default();
    let also = summary.outcome.as_ref().map(|outcome| format!("; {outcome}")).unwrap_or_default();
    format!("paused{by}{since}: {}{also}", paused.reason)
}

/// Whether each step comes after the one before it, so that nothing is to be said of it.
fn is_sequence(steps: &[StepStatus]) -> bool {
    let steps = || steps.iter().filter(|step| !step.is_item());
    let before = std::iter::once(None).chain(steps().map(|step| Some(&step.step)));
    steps().zip(before).all(|(step, before)| step.after.iter().eq(before))
}

/// What the step comes after: the start, or the ends of all branches before it.
fn behind(step: &StepStatus) -> String {
    if step.after.is_empty() { "the start".to_owned() } else { step.after.join(" and ") }
}

/// How far a step is that is done for each item of a list. Those of which there is more to say have lines of their own.
fn counted(items: &ItemCounts) -> String {
    let ItemCounts { all, done, undone, waiting, .. } = items;
    let others = [(undone, "undone"), (waiting, "waiting")].into_iter().filter(|(count, _)| **count > 0);
    let others = others.map(|(count, what)| format!("{count} {what}"));
    std::iter::once(format!("{done} of {all} done")).chain(others).collect::<Vec<_>>().join(", ")
}

/// Why a step was not done, or needs a person, and what it waits for.
fn said(step: &StepStatus) -> String {
    if let Some(items) = step.items.as_ref().filter(|_| step.stuck.is_none()) {
        return counted(items);
    }
    if !step.arms.is_empty() && step.phase == StepPhase::Done {
        return step.taken.as_deref().map_or("no arm was taken".to_owned(), |arm| format!("{arm} was taken"));
    }
    if let Some(child) = step.child.as_ref().filter(|_| step.stuck.is_none()) {
        return of_child(child, step);
    }
    if let Some(id) = step.signal.as_ref().filter(|_| step.stuck.is_none() && step.due_at.is_none()) {
        return format!("by the signal {id:?}");
    }
    // Of a step that has its own lock, there is more to say.
    let is_shown = |lock: &&LockStatus| step.stuck.is_none() && (lock.scope == LockScope::Saga || !lock.granted);
    if let Some(lock) = step.lock.as_ref().filter(is_shown) {
        return of_lock(lock, step);
    }
    let error = step.stuck.clone().or_else(|| step.error.clone()).unwrap_or_default();
    let waits = match step.due_at {
        Some(at) if step.wait == Some(WaitKind::Signal) => {
            format!("{error} (waits for the signal, until {} UTC)", utc(at))
        }
        Some(at) if step.wait.is_some() => format!("{error} (waits until {} UTC)", utc(at)),
        None if step.waits_for() == Some(WaitKind::Signal) => format!("{error} (waits for the signal)"),
        Some(at) if step.attempts == 0 => format!("{error} (begins at {} UTC)", utc(at)),
        Some(at) if step.failing => format!("{error} (failing, tried again at {} UTC)", utc(at)),
        Some(at) => format!("{error} (tried again at {} UTC)", utc(at)),
        None => error,
    };
    let Some(StepProgress { at, report, .. }) = &step.progress else { return waits };
    format!("{waits} (reported {} at {} UTC)", shortened(report), utc(*at)).trim_start().to_owned()
}

/// The entities of a lock: those that the saga has, or what it waits for.
fn of_lock(lock: &LockStatus, step: &StepStatus) -> String {
    let entities = lock.entities.iter().map(|locked| match locked.token {
        Some(token) => format!("{} (token {token})", locked.entity),
        None => locked.entity.to_string(),
    });
    let entities = entities.collect::<Vec<_>>().join(", ");
    if lock.granted {
        return format!("has {entities} since {} UTC", utc(lock.since));
    }
    let sagas: Vec<&str> = lock.waits_for.iter().map(saga_core::Key::as_str).collect();
    let until = step.due_at.map(|at| format!(", until {} UTC", utc(at))).unwrap_or_default();
    format!("waits for {entities} behind {}{until}", sagas.join(", "))
}

/// A report or a result that is too long for a line, cut off.
fn shortened(report: &str) -> String {
    let cut_off = report.chars().nth(REPORT_MAX).is_some();
    let beginning: String = report.chars().take(REPORT_MAX).collect();
    if cut_off { beginning + ".." } else { beginning }
}

/// The saga that the step is, and where it stands. It may have been purged before the saga that it is a step of.
fn of_child(child: &ChildStatus, step: &StepStatus) -> String {
    let stands = match (&child.outcome, child.status, step.phase) {
        (Some(outcome), ..) => outcome.to_string(),
        (None, Some(status), _) => status.to_string(),
        (None, None, StepPhase::Done) => "not known any more".to_owned(),
        (None, None, StepPhase::Started) => step.error.as_deref().unwrap_or("not started").to_owned(),
        // It was purged, or was never started.
        (None, None, _) => step.error.as_deref().unwrap_or("not known").to_owned(),
    };
    format!("the saga {}: {stands}", child.key)
}

#[cfg(test)]
mod tests {
    use saga_core::memory::MemoryStore;
    use saga_core::saga::Branch;
    use saga_core::{Runtime, Saga, StepContext, StepError, SubSaga, saga_step};

    use super::Shown;

    #[saga_step(no_compensation)]
    async fn reserve_stock(_order: u32) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(no_compensation)]
    async fn check_credit(_order: u32) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step]
    async fn confirm_order(_order: u32) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(no_compensation)]
    async fn pack_parcel(parcel: u32) -> Result<u32, StepError> {
        if parcel == 3 { Err(StepError::reject("too heavy")) } else { Ok(parcel) }
    }

    async fn shown(saga: Saga<MemoryStore, u32>) -> String {
        let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
        runtime.start(&saga, "TH-1", 1).await.expect("it is new").outcome().await.expect("it ends");
        let status = runtime.status("TH-1").await.expect("it is read").expect("there is one");
        runtime.shutdown().await;
        Shown(&status).to_string()
    }

    #[saga_step]
    async fn print_label(pieces: u32) -> Result<String, StepError> {
        Ok("x".repeat(pieces as usize))
    }

    #[tokio::test]
    async fn the_result_is_shown_in_a_line() {
        for (pieces, returned) in [(3, "\nreturned \"xxx\"\n"), (500, "xx..\n")] {
            let saga = Saga::named("label").input::<u32>().step::<print_label>().returns::<print_label>();
            let saga = saga.build().expect("it is valid");
            let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
            runtime.start(&saga, "TH-1", pieces).await.expect("it is new").result().await.expect("it completes");
            let status = runtime.status("TH-1").await.expect("it is read").expect("there is one");
            runtime.shutdown().await;
            let said = Shown(&status).to_string();
            assert!(said.contains(returned), "{said}");
        }
    }

    /// The stock is reserved by a saga of its own.
    struct Reserving;

    impl SubSaga for Reserving {
        const NAME: &'static str = "reserving";
        type Input = u32;
        type Output = ();
    }

    #[tokio::test]
    async fn a_saga_and_the_one_that_is_a_step_of_it_are_named_in_each_other() {
        let stock = Saga::named("stock").input::<u32>().step::<reserve_stock>().build().expect("it holds together");
        let saga = Saga::named("order").input::<u32>().sub_saga::<Reserving>(&stock).step::<confirm_order>();
        let saga = saga.build().expect("it holds together");
        let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
        runtime.start(&saga, "TH-1", 1).await.expect("it is new").outcome().await.expect("it ends");
        let outer = runtime.status("TH-1").await.expect("it is read").expect("there is one");
        let inner = runtime.status("TH-1>reserving").await.expect("it is read").expect("there is one");
        runtime.shutdown().await;
        let (said, inner) = (Shown(&outer).to_string(), Shown(&inner).to_string());
        assert!(said.contains("the saga TH-1>reserving: completed") && !said.contains("a step of"), "{said}");
        assert!(inner.contains("\nit is a step of TH-1\n"), "{inner}");

        // So it is read when the inner one was purged.
        let mut without_inner = outer;
        let child = without_inner.steps[0].child.as_mut().expect("it is a saga");
        (child.status, child.outcome) = (None, None);
        let said = Shown(&without_inner).to_string();
        assert!(
            said.contains("the saga TH-1>reserving: not known any more") && !said.contains("not started"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn branches_are_named_and_a_sequence_says_nothing_of_it() {
        let named = || Saga::named("create-order").input::<u32>();
        let in_a_row = named().step::<reserve_stock>().step::<check_credit>().step::<confirm_order>();
        let said = shown(in_a_row.build().expect("it is valid")).await;
        assert!(!said.contains("comes after"), "{said}");
        let group =
            named().parallel(|group| group.branch(Branch::step::<reserve_stock>).branch(Branch::step::<check_credit>));
        let said = shown(group.step::<confirm_order>().build().expect("it is valid")).await;
        let after =
            "reserve-stock    the start\ncheck-credit     the start\nconfirm-order    reserve-stock and check-credit\n";
        assert!(said.ends_with(&format!("what comes after what\n{after}")), "{said}");
    }

    #[tokio::test]
    async fn a_choice_says_which_arm_was_taken() {
        for (least, taken, phase) in [(1, "yes was taken", "done"), (2, "no arm was taken", "passed by")] {
            let named = Saga::named("create-order").input::<u32>();
            let chosen = named.when("is-large", move |order: &u32| *order >= least, Branch::step::<check_credit>);
            let said = shown(chosen.step::<confirm_order>().build().expect("it is valid")).await;
            let line = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
            assert!(line("is-large").ends_with(taken), "{said}");
            assert!(line("check-credit").contains(phase), "{said}");
        }
    }

    #[saga_step(no_compensation, retry(attempts = 9, base = "1h"), on_exhausted = "compensate")]
    async fn export(ctx: &StepContext, rows: u32) -> Result<(), StepError> {
        ctx.report(&"x".repeat(rows as usize))?;
        Err(StepError::retry("the line broke"))
    }

    #[tokio::test]
    async fn what_a_step_reported_is_shown_while_it_is_tried() {
        for (rows, reported) in [(3, "(reported \"xxx\" at "), (500, "xx.. at ")] {
            let saga = Saga::named("export").input::<u32>().step::<export>().build().expect("it is valid");
            let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
            runtime.start(&saga, "TH-1", rows).await.expect("it is new");
            let said = loop {
                let status = runtime.status("TH-1").await.expect("it is read").expect("there is one");
                if status.steps[0].retrying_since.is_some() {
                    break Shown(&status).to_string();
                }
                tokio::task::yield_now().await;
            };
            runtime.shutdown().await;
            let line = said.lines().find(|line| line.starts_with("export")).unwrap_or_default();
            assert!(line.contains("the line broke (tried again at ") && line.contains(reported), "{said}");
            assert!(line.len() < 320, "{said}");
        }
    }

    #[tokio::test]
    async fn what_waits_says_until_when() {
        let hour = std::time::Duration::from_hours(1);
        let saga =
            Saga::named("create-order").input::<u32>().deadline(hour).sleep("cool-off", hour).step::<confirm_order>();
        let saga: Saga<MemoryStore, u32> = saga.build().expect("it is valid");
        let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
        runtime.start(&saga, "TH-1", 1).await.expect("it is new");
        let status = runtime.status("TH-1").await.expect("it is read").expect("there is one");
        runtime.shutdown().await;
        let said = Shown(&status).to_string();
        assert!(said.contains("\ncompensates at ") && said.contains(" UTC unless it has begun its pivot\n"), "{said}");
        let line = said.lines().find(|line| line.starts_with("cool-off")).unwrap_or_default();
        assert!(line.contains("waiting") && line.contains("(waits until "), "{said}");
    }

    struct Stock;

    impl saga_core::SemanticLock for Stock {
        const NAME: &'static str = "stock";
    }

    #[tokio::test]
    async fn a_semantic_lock_says_who_has_it_and_who_waits() {
        let hour = std::time::Duration::from_hours(1);
        let saga = Saga::named("create-order").input::<u32>();
        let saga = saga.semantic_lock_within::<Stock, _>(hour, |_: &u32| saga_core::Entity::new("item", "chai"));
        let saga: Saga<MemoryStore, u32> = saga.sleep("cool-off", hour).build().expect("it is valid");
        let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
        let mut said = Vec::new();
        for (key, expected) in [("TH-1", "has item chai (token "), ("TH-2", "waits for item chai behind TH-1, until ")]
        {
            runtime.start(&saga, key, 1).await.expect("it is new");
            said.push(loop {
                let status = runtime.status(key).await.expect("it is read").expect("there is one");
                let said = Shown(&status).to_string();
                if said.contains(expected) {
                    break said;
                }
                tokio::task::yield_now().await;
            });
        }
        runtime.shutdown().await;
        let line = said[1].lines().find(|line| line.starts_with("stock")).unwrap_or_default();
        assert!(line.contains(" waiting ") && line.ends_with(" UTC"), "{}", said[1]);
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Approval;

    impl saga_core::Signal for Approval {
        const NAME: &'static str = "approval";
    }

    #[tokio::test]
    async fn what_waits_for_a_signal_says_so() {
        let hour = std::time::Duration::from_hours(1);
        for (wait, expected) in [
            (saga_core::Wait::within(hour).or_reject(), "(waits for the signal, until "),
            (saga_core::Wait::without_limit(), "(waits for the signal)"),
        ] {
            let saga = Saga::named("create-order").input::<u32>().wait_for::<Approval>(wait).step::<confirm_order>();
            let saga: Saga<MemoryStore, u32> = saga.build().expect("it is valid");
            let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect("it starts");
            runtime.start(&saga, "TH-1", 1).await.expect("it is new");
            let status = runtime.status("TH-1").await.expect("it is read").expect("there is one");
            runtime.shutdown().await;
            let said = Shown(&status).to_string();
            let line = said.lines().find(|line| line.starts_with("approval")).unwrap_or_default();
            assert!(line.contains("waiting") && line.contains(expected), "{said}");
            let json = serde_json::to_value(&status).expect("it is JSON");
            assert_eq!((&json["steps"][0]["phase"], &json["steps"][0]["wait"]), (&"waiting".into(), &"signal".into()));
            assert_eq!(json["steps"][1]["phase"], "ready");
        }
    }

    #[tokio::test]
    async fn items_are_counted_and_the_one_that_failed_is_named() {
        let listed =
            Saga::named("create-order").input::<u32>().for_each::<pack_parcel, _>(1, |_: &u32| vec![1, 2, 3, 4]);
        let said = shown(listed.step::<confirm_order>().build().expect("it is valid")).await;
        let line = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        assert!(said.contains("compensated, because `pack-parcel#3` failed: too heavy"), "{said}");
        assert!(line("pack-parcel ").ends_with("2 of 4 done, 1 waiting"), "{said}");
        assert!(line("pack-parcel#3").contains("rejected") && !said.contains("comes after"), "{said}");
    }
}
