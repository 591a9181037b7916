use std::collections::{BTreeMap, BTreeSet};

use saga_core::store::RecordedOutcome;
use saga_testkit::checker::{
    Answer, Entry, Final, Kind, Ledger, Left, Nap, Op, RecordSeen, Recorded, Rest, SagaPlan, SagaTime, StepPlan,
    UndoPlan, Variant, What,
};

use super::books::{Books, Line, Written};
use super::purges::{Purge, Purges};
use super::steps::{STEPS, place_of};
use super::stored::{Saga, Stored, UndoneByHost};
use crate::world::{DiaryLine, Happened, ReplicaKey};

/// Numbers of calls: starts begin at 1, calls outside and transactions each far behind.
const OUTSIDE: u64 = 1 << 32;
const SHOP: u64 = 1 << 33;
const UNCLAIMED: u64 = 1 << 34;

/// How many sagas one ledger has: the checker looks for each saga through all of its ledger.
const SAGAS: usize = 150;

/// Which step of which order a key outside is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) order: &'a str,
    pub(super) step: &'a str,
    pub(super) is_undo: bool,
}

/// Reads a key from the right, as the runtime documents it.
pub(super) fn parse(key: &str) -> Option<Call<'_>> {
    let (rest, last) = key.rsplit_once(':')?;
    let last = last.split_once('#').map_or(last, |(name, _)| name);
    if last == "undo" {
        let (order, step) = rest.rsplit_once(':')?;
        return Some(Call { order, step, is_undo: true });
    }
    Some(Call { order: rest, step: last, is_undo: false })
}

/// Everything that is known, by order.
pub(super) struct Facts<'a> {
    pub(super) keys: &'a [(u64, String)],
    pub(super) books: &'a Books,
    pub(super) stored: &'a Stored,
    /// What was purged, in a run that purges.
    pub(super) purges: Option<&'a Purges>,
    pub(super) diary: &'a [DiaryLine],
    pub(super) panics: &'a [String],
    /// Faults that may have made something run once more.
    pub(super) repeats: u32,
}

impl Facts<'_> {
    /// Ledgers of so many sagas each.
    pub(super) fn ledgers(&self) -> Vec<Ledger> {
        let calls = number_calls(&self.books.outside);
        let mut shop: BTreeMap<&str, Vec<(u64, &Written)>> = BTreeMap::new();
        for (nth, written) in (SHOP..).zip(&self.books.shop) {
            shop.entry(&written.order).or_default().push((nth, written));
        }
        let mut outside: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        for line in &self.books.outside {
            outside.entry(parse(&line.key).map_or("", |call| call.order)).or_default().push(line);
        }
        let mut purges: BTreeMap<&str, Vec<&Purge>> = BTreeMap::new();
        for purge in self.purges.iter().flat_map(|purges| &purges.0) {
            purges.entry(purge.order()).or_default().push(purge);
        }
        let sorted = Sorted { calls, shop, outside, purges };
        let known: BTreeSet<&str> = self.keys.iter().map(|(_, key)| key.as_str()).collect();
        let mut ledgers: Vec<Ledger> = self.keys.chunks(SAGAS).map(|keys| self.ledger(keys, &sorted)).collect();
        let Sorted { shop, outside, .. } = &sorted;
        // What belongs to no order that was handed in came out of nothing.
        let strange_calls = outside.iter().filter(|(order, _)| !known.contains(*order)).flat_map(|(_, lines)| lines);
        let strange_calls = strange_calls.filter(|line| line.event == "took").map(|line| line.at_micros);
        let strange_writes = shop.iter().filter(|(order, _)| !known.contains(*order)).flat_map(|(_, lines)| lines);
        let strange_writes = strange_writes.map(|(_, written)| written.at_micros);
        let took: BTreeSet<(&str, i64)> = self
            .books
            .outside
            .iter()
            .filter(|line| line.event == "took")
            .filter_map(|line| Some((line.path.as_str(), line.number?)))
            .collect();
        let unexplained = self.books.done.iter().filter(|done| !took.contains(&(done.path, done.number)));
        let strange = strange_calls.chain(strange_writes).chain(unexplained.map(|_| 0));
        if let Some(ledger) = ledgers.first_mut() {
            for (nth, at) in (UNCLAIMED..).zip(strange) {
                ledger.entries.push(Entry { at: at.unsigned_abs(), process: 0, what: What::Took { call: nth } });
            }
            let Stored { outbox, work, forgotten, strangers, .. } = *self.stored;
            ledger.rest =
                Rest { outbox, work_of_ended: work, forgotten, strangers, panics: self.panics.to_vec(), ..ledger.rest };
        }
        ledgers
    }

    fn ledger(&self, keys: &[(u64, String)], sorted: &Sorted<'_>) -> Ledger {
        let Sorted { calls, shop, outside, purges } = sorted;
        let mut page = Page { events: Vec::new(), calls, undone_by_hosts: &self.stored.undone_by_hosts };
        let mut finals = Vec::new();
        let numbers: BTreeMap<&str, u32> = (0..).zip(keys).map(|(nth, (_, key))| (key.as_str(), nth)).collect();
        self.diary_of(keys, &numbers, &mut page);
        for (saga, (_, key)) in (0..).zip(keys) {
            let lines = outside.get(key.as_str()).map_or(&[][..], Vec::as_slice);
            page.add_outside(saga, lines);
            page.add_shop(saga, shop.get(key.as_str()).map_or(&[][..], Vec::as_slice));
            page.add_purges(saga, purges.get(key.as_str()).map_or(&[][..], Vec::as_slice));
            finals.push(
                self.stored.orders.get(key).map_or(Final::ABSENT, |stored| self.final_of(key, stored, lines, calls)),
            );
        }
        // Of what happened at one moment, the order in which it was written down holds.
        page.events.sort_by_key(|event| event.at);
        let rest = Rest { repeats: self.repeats, ..Rest::default() };
        let plan = |key: &String| SagaPlan {
            tenant: String::new(),
            key: key.clone(),
            is_taken_back: false,
            reborn_of: None,
            time: SagaTime::default(),
            variants: vec![variant()],
        };
        let sagas = keys.iter().map(|(_, key)| plan(key)).collect();
        Ledger {
            sagas,
            entries: page.events,
            finals,
            rest,
            pace: None,
            shares_tenants: false,
            is_archived: self.purges.is_some(),
        }
    }

    /// What this program did and saw. Each start has a number for each saga.
    fn diary_of(&self, keys: &[(u64, String)], numbers: &BTreeMap<&str, u32>, page: &mut Page<'_>) {
        let mut waves: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (saga, (wave, _)) in (0..).zip(keys) {
            waves.entry(*wave).or_default().push(saga);
        }
        let mut started: BTreeMap<u64, u64> = BTreeMap::new();
        let answered: BTreeSet<u64> = self.diary.iter().filter_map(|line| line.what.answered()).collect();
        let number = |call: u64, saga: u32| call * SAGAS as u64 * 2 + u64::from(saga);
        for DiaryLine { at_micros, process, what } in self.diary {
            let mut enter = |what| page.enter(*at_micros, *process, what);
            match what {
                Happened::Started { call, wave } => {
                    // Of the starts of one wave without an answer, the first says all that the others do.
                    let is_first = !started.values().any(|earlier| earlier == wave);
                    if !is_first && !answered.contains(call) {
                        continue;
                    }
                    started.insert(*call, *wave);
                    for saga in waves.get(wave).into_iter().flatten() {
                        enter(What::StartCalled { call: number(*call, *saga), saga: *saga, variant: 0 });
                    }
                }
                Happened::Answered { call } => {
                    for saga in started.get(call).and_then(|wave| waves.get(wave)).into_iter().flatten() {
                        let answer = Answer::Started { is_new: None };
                        enter(What::StartAnswered { call: number(*call, *saga), answer });
                    }
                }
                Happened::Seen { order, standing } => {
                    if let Some(saga) = numbers.get(order.as_str()) {
                        enter(What::OutcomeSeen { saga: *saga, standing: *standing });
                    }
                }
                Happened::Killed => enter(What::Crashed),
                Happened::Stopped => enter(What::Paused),
                Happened::Continued => enter(What::Resumed),
                Happened::CutOff => enter(What::CutOff),
                Happened::Reconnected => enter(What::Reconnected),
                Happened::FaultsEnded => enter(What::FaultsEnded),
                // They concern what is purged only.
                Happened::LetterOpened { .. } | Happened::LetterDecided { .. } => {}
            }
        }
    }

    fn final_of(&self, order: &str, stored: &Saga, lines: &[&Line], calls: &BTreeMap<(&str, u32), u64>) -> Final {
        let records = stored.records.iter().filter_map(|record| {
            Some(RecordSeen {
                step: place_of(&record.step)?,
                op: if record.is_undo { Op::Undo } else { Op::Do },
                outcome: match record.outcome {
                    RecordedOutcome::Done => Recorded::Done,
                    RecordedOutcome::Unknown => Recorded::Unknown,
                    RecordedOutcome::Skipped => Recorded::Skipped,
                    RecordedOutcome::Rejected | RecordedOutcome::Failed | RecordedOutcome::Cancelled => {
                        Recorded::NotDone
                    }
                },
                call: record.number.map(|number| returned(&record.step, number, lines, calls)),
                is_late: record.is_late,
                position: record.position,
            })
        });
        let mut records: Vec<RecordSeen> = records.collect();
        for (step, name) in (0..).zip(STEPS) {
            let by_host = self.stored.undone_by_hosts.get(&(order.to_owned(), name.to_owned()));
            let again = by_host.map_or(0, |host| host.again);
            // The undo that the order knows of, where it knows of one, is the first.
            let known = records.iter().any(|record| record.step == step && record.op == Op::Undo);
            for nth in 0..again + usize::from(again > 0 && !known) {
                let (op, outcome) = (Op::Undo, Recorded::Done);
                let position = (STEPS.len() * 2 + nth) as u32;
                records.push(RecordSeen { step, op, outcome, call: None, is_late: false, position });
            }
        }
        Final { standing: stored.standing, variant: Some(0), records, ..Final::ABSENT }
    }
}

/// The books by order.
struct Sorted<'a> {
    calls: BTreeMap<(&'a str, u32), u64>,
    shop: BTreeMap<&'a str, Vec<(u64, &'a Written)>>,
    outside: BTreeMap<&'a str, Vec<&'a Line>>,
    purges: BTreeMap<&'a str, Vec<&'a Purge>>,
}

/// The entries of one ledger.
struct Page<'a> {
    events: Vec<Entry>,
    calls: &'a BTreeMap<(&'a str, u32), u64>,
    undone_by_hosts: &'a BTreeMap<(String, String), UndoneByHost>,
}

impl Page<'_> {
    fn enter(&mut self, at_micros: i64, process: u16, what: What) {
        self.events.push(Entry { at: at_micros.unsigned_abs(), process, what });
    }

    fn add_shop(&mut self, saga: u32, lines: &[(u64, &Written)]) {
        for (call, written) in lines {
            let (call, transaction) = (*call, Some(written.transaction));
            let Some(step) = place_of(&written.step) else { continue };
            let op = if written.is_undo { Op::Undo } else { Op::Do };
            let process = process_of(&written.process);
            let entered = What::Entered { call, saga, variant: 0, step, op, fence: 0, reads: None, transaction };
            // It was committed, so its function returned.
            for what in [entered, What::Left { call, how: Left::Done }, What::Wrote { call }] {
                self.enter(written.at_micros, process, what);
            }
        }
    }

    fn add_purges(&mut self, saga: u32, purges: &[&Purge]) {
        for purge in purges {
            for what in purge.facts(saga) {
                self.enter(purge.at_micros, 0, what);
            }
        }
    }

    fn add_outside(&mut self, saga: u32, lines: &[&Line]) {
        for line in lines {
            let Some((Call { order, step, is_undo, .. }, call)) = parse(&line.key).zip(self.number(line)) else {
                continue;
            };
            // What the other side answered may have arrived when its caller no longer waited for it.
            let by_host = self.undone_by_hosts.get(&(order.to_owned(), step.to_owned()));
            let is_unanswered = !is_undo && by_host.is_some_and(|host| host.is_unanswered);
            let Some(step) = place_of(step) else { continue };
            let op = if is_undo { Op::Undo } else { Op::Do };
            let reads = is_undo.then(|| read_by(line, lines, self.calls)).flatten();
            let mut enter = |what| self.enter(line.at_micros, 0, what);
            match line.event.as_str() {
                "called" => {
                    enter(What::Entered { call, saga, variant: 0, step, op, fence: 0, reads, transaction: None });
                    enter(What::Called { call, key: line.key.clone() });
                }
                "took" | "undone" => enter(What::Took { call }),
                "barred" => enter(What::Barred { call }),
                "answered" => {
                    let how = match line.number {
                        Some(200) => Left::Done,
                        Some(400..500) if !is_unanswered => Left::Rejected,
                        _ => Left::Failed,
                    };
                    enter(What::Left { call, how });
                }
                _ => {}
            }
        }
    }

    fn number(&self, line: &Line) -> Option<u64> {
        self.calls.get(&(line.key.as_str(), line.nth)).copied()
    }
}

/// Each call outside has a number, in the order in which they came.
fn number_calls(lines: &[Line]) -> BTreeMap<(&str, u32), u64> {
    let called = lines.iter().filter(|line| line.event == "called");
    (OUTSIDE..).zip(called).map(|(number, line)| ((line.key.as_str(), line.nth), number)).collect()
}

/// The call whose output an undo named, where it named one.
fn read_by(undo: &Line, lines: &[&Line], calls: &BTreeMap<(&str, u32), u64>) -> Option<u64> {
    let is_same = |line: &&&Line| line.key == undo.key && line.nth == undo.nth;
    let named = lines.iter().filter(is_same).find(|line| ["undone", "barred"].contains(&line.event.as_str()));
    let number = named?.number?;
    let took = lines.iter().find(|line| line.event == "took" && line.number == Some(number) && line.path == "/charges");
    // A payment that never happened belongs to no call.
    Some(took.and_then(|line| calls.get(&(line.key.as_str(), line.nth)).copied()).unwrap_or(UNCLAIMED - 1))
}

fn process_of(name: &str) -> u16 {
    ReplicaKey::all().find(|key| key.name() == name).map_or(0, ReplicaKey::number)
}

fn variant() -> Variant {
    let step = |name: &str| {
        let kind = if ["charge-card", "book-shipment"].contains(&name) { Kind::External } else { Kind::Transactional };
        let is_pivot = name == "confirm-order";
        let undo = UndoPlan { kind, takes_unknown: true, emits: 0, attempts: 20 };
        let undo = (!is_pivot).then_some(undo);
        StepPlan {
            is_exclusive: false,
            locks: None,
            held: Vec::new(),
            name: name.to_owned(),
            kind,
            host: None,
            undo,
            reads: None,
            after: None,
            arms: Vec::new(),
            is_sub: false,
            nap: Nap::default(),
            is_pivot,
            emits: 0,
            attempts: 8,
        }
    };
    Variant { definition: "create-order".to_owned(), steps: STEPS.map(step).into() }
}

/// A call that gave this number back: the service gives every call under a key the same answer.
fn returned(step: &str, number: i64, lines: &[&Line], calls: &BTreeMap<(&str, u32), u64>) -> u64 {
    let is_ours = |line: &&&Line| parse(&line.key).is_some_and(|call| call.step == step && !call.is_undo);
    let took = lines.iter().filter(is_ours).find(|line| line.event == "took" && line.number == Some(number));
    let key = took.map(|line| line.key.as_str());
    let answered = lines
        .iter()
        .find(|line| Some(line.key.as_str()) == key && line.event == "answered" && line.number == Some(200));
    let call = answered.or(took).and_then(|line| calls.get(&(line.key.as_str(), line.nth)).copied());
    // A number that the service never gave belongs to no call.
    call.unwrap_or(UNCLAIMED - 1)
}
