use saga_core::store::RecordedOutcome;
use saga_testkit::checker::{Guarantee, Standing, check};

use super::books::{Books, Done, Line, Written};
use super::ledger::{Call, Facts, parse};
use super::open_letters::OpenLetters;
use super::purges::{Beside, Purge, Purges};
use super::remainder::Remainder;
use super::stored::{Record, Saga, Stored, UndoneByHost};
use crate::plan::Role;
use crate::world::{DiaryLine, Happened};

/// One order that came out right, one that was undone for want of an answer, and somebody who was killed meanwhile.
struct Run {
    keys: Vec<(u64, String)>,
    books: Books,
    stored: Stored,
    purges: Option<Purges>,
    diary: Vec<DiaryLine>,
    now: i64,
}

impl Run {
    fn sound() -> Self {
        let keys = vec![(0, "A".to_owned()), (0, "B".to_owned())];
        let mut run = Self {
            keys,
            books: Books::default(),
            stored: Stored::default(),
            purges: None,
            diary: Vec::new(),
            now: 1_000_000,
        };
        run.happened(Happened::Started { call: 1, wave: 0 });
        run.happened(Happened::Killed);
        run.completed("A");
        run.compensated("B");
        run.happened(Happened::Answered { call: 1 });
        run
    }

    /// The same, and each order became a tombstone and was deleted, after it was archived.
    fn purged() -> Self {
        let mut run = Self::sound();
        run.purges = Some(Purges::default());
        for (order, standing) in [("A", Standing::Completed), ("B", Standing::Compensated)] {
            run.purge(order, standing, false);
            run.purge(order, standing, true);
        }
        run
    }

    fn purge(&mut self, order: &str, standing: Standing, is_deleted: bool) {
        let (at_micros, key, saga) = (self.tick(), order.to_owned(), i64::from(order.as_bytes()[0]));
        let beside = Beside { is_due: true, is_archived: true, ..Beside::default() };
        let (role, revision, was_tombstone) = (Role::Orders, 7, is_deleted);
        let purge = Purge { at_micros, role, saga, key, revision, standing, was_tombstone, is_deleted, beside };
        self.purges.get_or_insert_default().0.push(purge);
    }

    /// The first purge, which is that of the completed order.
    fn first_purge(&mut self) -> &mut Purge {
        &mut self.purges.as_mut().expect("it purges").0[0]
    }

    fn completed(&mut self, order: &str) {
        let transaction = self.shop(order, "place-order", false);
        self.shop(order, "reserve-stock", false);
        assert!(transaction > 0);
        self.call(order, "/charges", "charge-card", 1, &[("took", Some(1)), ("answered", Some(500))]);
        self.call(order, "/charges", "charge-card", 2, &[("again", None), ("answered", Some(200))]);
        self.call(order, "/shipments", "book-shipment", 1, &[("took", Some(1)), ("answered", Some(200))]);
        self.shop(order, "confirm-order", false);
        self.books.done.push(Done { path: "/charges", number: 1, key: format!("{order}:charge-card") });
        self.books.done.push(Done { path: "/shipments", number: 1, key: format!("{order}:book-shipment") });
        let done = RecordedOutcome::Done;
        let steps = [
            ("place-order", false, done, None),
            ("reserve-stock", false, done, None),
            ("charge-card", false, done, Some(1)),
            ("book-shipment", false, done, Some(1)),
            ("confirm-order", false, done, None),
        ];
        self.store(order, Standing::Completed, &steps);
        self.happened(Happened::Seen { order: order.to_owned(), standing: Standing::Completed });
    }

    /// Its charge is held, and given up without an answer.
    fn compensated(&mut self, order: &str) {
        self.shop(order, "place-order", false);
        self.shop(order, "reserve-stock", false);
        self.call(order, "/charges", "charge-card", 1, &[("held", None)]);
        self.call(order, "/refunds", "charge-card:undo", 1, &[("barred", None), ("answered", Some(200))]);
        self.shop(order, "reserve-stock", true);
        self.shop(order, "place-order", true);
        let done = RecordedOutcome::Done;
        let steps = [
            ("place-order", false, done, None),
            ("reserve-stock", false, done, None),
            ("charge-card", false, RecordedOutcome::Unknown, None),
            ("charge-card", true, done, None),
            ("reserve-stock", true, done, None),
            ("place-order", true, done, None),
        ];
        self.store(order, Standing::Compensated, &steps);
    }

    fn shop(&mut self, order: &str, step: &str, is_undo: bool) -> u64 {
        let (at_micros, transaction) = (self.tick(), self.books.shop.len() as u64 + 1);
        let (order, step, process) = (order.to_owned(), step.to_owned(), "orders-0".to_owned());
        self.books.shop.push(Written { at_micros, transaction, process, order, step, is_undo });
        transaction
    }

    fn call(&mut self, order: &str, path: &str, step: &str, nth: u32, events: &[(&str, Option<i64>)]) {
        for (event, number) in [("called", None)].iter().chain(events) {
            self.outside(&format!("{order}:{step}"), path, nth, event, *number);
        }
    }

    fn outside(&mut self, key: &str, path: &str, nth: u32, event: &str, number: Option<i64>) {
        let (at_micros, path, key, event) = (self.tick(), path.to_owned(), key.to_owned(), event.to_owned());
        self.books.outside.push(Line { at_micros, path, key, nth, event, number });
    }

    /// The charge that was held lands, though it was undone.
    fn lands_late(&mut self) {
        self.outside("B:charge-card", "/charges", 1, "took", Some(2));
        self.books.done.push(Done { path: "/charges", number: 2, key: "B:charge-card".to_owned() });
    }

    fn store(&mut self, order: &str, standing: Standing, steps: &[(&str, bool, RecordedOutcome, Option<i64>)]) {
        let record = |(position, (step, is_undo, outcome, number)): (u32, &(&str, _, _, _))| Record {
            step: (*step).to_owned(),
            is_undo: *is_undo,
            outcome: *outcome,
            number: *number,
            is_late: false,
            position,
        };
        let records = (0..).zip(steps).map(record).collect();
        self.stored.orders.insert(order.to_owned(), Saga { standing, records });
    }

    fn happened(&mut self, what: Happened) {
        let at_micros = self.tick();
        self.diary.push(DiaryLine { at_micros, process: 1, what });
    }

    fn tick(&mut self) -> i64 {
        self.now += 1_000;
        self.now
    }

    fn violations(&self, books: &Books) -> Vec<(Guarantee, String)> {
        let facts = Facts {
            keys: &self.keys,
            books,
            stored: &self.stored,
            purges: self.purges.as_ref(),
            diary: &self.diary,
            panics: &[],
            repeats: 0,
        };
        let found = facts.ledgers().into_iter().flat_map(|ledger| check(&ledger));
        found.map(|violation| (violation.guarantee, violation.about)).collect()
    }

    /// Damages a sound run, and demands that this guarantee is reported broken.
    #[track_caller]
    fn damaged(damage: impl FnOnce(&mut Self), guarantee: Guarantee) {
        Self::sound().finds(damage, guarantee);
    }

    #[track_caller]
    fn finds(mut self, damage: impl FnOnce(&mut Self), guarantee: Guarantee) {
        damage(&mut self);
        let run = self;
        let found = run.violations(&run.books);
        assert!(found.iter().any(|(broken, _)| *broken == guarantee), "expected {guarantee} broken, found {found:?}");
    }
}

#[test]
fn nothing_is_found_in_a_sound_run() {
    let run = Run::sound();
    assert_eq!(run.violations(&run.books), []);
    assert_eq!(Remainder::of(&run.books), Remainder::default());
}

#[test]
fn g1_an_effect_and_its_record_go_together() {
    Run::damaged(|run| run.books.shop.retain(|line| line.step != "confirm-order"), Guarantee::G1);
    Run::damaged(
        |run| {
            let saga = run.stored.orders.get_mut("A").expect("it is there");
            saga.records.retain(|record| record.step != "reserve-stock");
        },
        Guarantee::G1,
    );
}

#[test]
fn g2_a_step_that_was_committed_twice_is_found() {
    Run::damaged(|run| _ = run.shop("A", "place-order", false), Guarantee::G2);
    Run::damaged(|run| _ = run.shop("nobody", "place-order", false), Guarantee::G2);
}

#[test]
fn g2_a_charge_that_nobody_asked_for_is_found() {
    let more = Done { path: "/charges", number: 9, key: "A:charge-card".to_owned() };
    Run::damaged(|run| run.books.done.push(more), Guarantee::G2);
}

/// Seed 90417: a call ended behind its undo, and its host, which knows of it, undid it again.
#[test]
fn g3_a_second_undo_is_one_that_its_host_recorded() {
    let undo_again = |run: &mut Run| {
        run.call("B", "/refunds", "charge-card:undo#2", 1, &[("barred", None), ("answered", Some(200))]);
    };
    Run::damaged(undo_again, Guarantee::G3);
    let mut run = Run::sound();
    undo_again(&mut run);
    let by_host = UndoneByHost { is_unanswered: false, again: 1 };
    run.stored.undone_by_hosts.insert(("B".to_owned(), "charge-card".to_owned()), by_host);
    assert_eq!(run.violations(&run.books), []);
}

#[test]
fn g3_a_second_effect_under_one_key_is_found() {
    Run::damaged(|run| run.outside("A:charge-card", "/charges", 2, "took", Some(8)), Guarantee::G3);
    Run::damaged(|run| run.books.outside.retain(|line| line.path != "/shipments"), Guarantee::G3);
}

#[test]
fn g4_to_g11_what_is_left_over_is_found() {
    Run::damaged(|run| run.stored.outbox = 1, Guarantee::G4);
    Run::damaged(|run| run.stored.work = 1, Guarantee::G8);
    Run::damaged(|run| run.stored.forgotten = 1, Guarantee::G11);
    Run::damaged(|run| run.stored.strangers = 1, Guarantee::G6);
}

#[test]
fn g5_what_was_not_undone_or_in_the_wrong_order_is_found() {
    Run::damaged(|run| run.books.shop.retain(|line| !(line.step == "reserve-stock" && line.is_undo)), Guarantee::G5);
    Run::damaged(|run| _ = run.shop("A", "reserve-stock", true), Guarantee::G5);
    Run::damaged(|run| run.books.shop.last_mut().expect("there are some").at_micros = 1_004_500, Guarantee::G5);
    Run::damaged(|run| run.stored.orders.get_mut("A").expect("it is there").standing = Standing::Stuck, Guarantee::G5);
}

#[test]
fn g6_and_g7_what_was_started_is_there_and_stays_decided() {
    Run::damaged(|run| _ = run.stored.orders.remove("A"), Guarantee::G6);
    Run::damaged(
        |run| run.happened(Happened::Seen { order: "A".to_owned(), standing: Standing::Compensated }),
        Guarantee::G7,
    );
}

#[test]
fn a_call_that_lands_behind_its_undo_is_the_remainder_and_without_it_nothing_is_found() {
    let mut run = Run::sound();
    run.lands_late();
    let found = run.violations(&run.books);
    assert!(!found.is_empty() && found.iter().all(|(_, about)| about.contains("B:charge-card")), "{found:?}");
    let remainder = Remainder::of(&run.books);
    assert_eq!(remainder.orders().into_iter().collect::<Vec<_>>(), ["B"]);
    assert_eq!(run.violations(&remainder.taken_out_of(&run.books)), []);
}

#[test]
fn a_key_is_read_from_the_right() {
    let call = |order, step, is_undo| Some(Call { order, step, is_undo });
    assert_eq!(parse("C1-2:charge-card"), call("C1-2", "charge-card", false));
    assert_eq!(parse("C1-2:charge-card:undo"), call("C1-2", "charge-card", true));
    assert_eq!(parse("a:b:charge-card:undo#2"), call("a:b", "charge-card", true));
    assert_eq!(parse("nothing"), None);
}

#[test]
fn nothing_is_found_where_what_ended_was_archived_and_purged() {
    let run = Run::purged();
    assert_eq!(run.violations(&run.books), []);
    assert_eq!(run.purges.expect("it purges").problems(), Vec::<String>::new());
}

#[test]
fn g13_what_was_purged_before_it_ended_or_in_part_or_without_an_archive_is_found() {
    let damaged = |damage: fn(&mut Purge)| Run::purged().finds(|run| damage(run.first_purge()), Guarantee::G13);
    damaged(|purge| purge.beside.is_archived = false);
    damaged(|purge| purge.beside.records = 1);
    damaged(|purge| purge.standing = Standing::Stuck);
    damaged(|purge| purge.standing = Standing::Unfinished);
}

#[test]
fn g13_an_effect_of_an_order_that_was_purged_is_found() {
    Run::purged().finds(|run| run.first_purge().at_micros = 1_004_500, Guarantee::G13);
}

#[test]
fn g13_a_purge_that_is_early_or_of_a_saga_that_something_names_is_found() {
    let damaged = |damage: fn(&mut Purge), wrong: &str| {
        let mut run = Run::purged();
        damage(run.first_purge());
        let problems = run.purges.expect("it purges").problems();
        assert!(problems.len() == 1 && problems[0].contains(wrong), "expected {wrong:?} in {problems:?}");
    };
    damaged(|purge| purge.beside.is_due = false, "its time is not over");
    damaged(|purge| purge.beside.letters = 1, "1 open dead letters name it");
    damaged(|purge| purge.beside.messages = 2, "2 messages of it wait to be sent");
    damaged(|purge| purge.beside.work = 1, "1 rows of work are left of it");
    damaged(|purge| purge.saga = 3, "A was the key of two sagas, 3 and 65");
}

#[test]
fn g13_an_order_that_was_purged_while_its_dead_letter_was_open_is_found() {
    let found = |order: &str, is_decided_before: bool| {
        let mut run = Run::sound();
        run.happened(Happened::LetterOpened { letter: 9, order: order.to_owned() });
        // A purge that was under way when the letter came in is let off.
        run.now += 2_000_000;
        if is_decided_before {
            run.happened(Happened::LetterDecided { letter: 9 });
        }
        run.purge("A", Standing::Completed, false);
        run.happened(Happened::LetterDecided { letter: 9 });
        OpenLetters::of(&run.diary).problems(&run.purges.expect("it purges"))
    };
    assert_eq!(found("A", true), Vec::<String>::new());
    assert_eq!(found("B", false), Vec::<String>::new());
    assert_eq!(found("A", false), ["A was purged while the operator had not decided about its dead letter"]);
}

/// What is read in the archive takes the place of the store, so that all other rules bite on it.
#[test]
fn g6_and_g5_an_order_that_was_purged_and_is_not_in_the_archive_or_with_another_end_is_found() {
    Run::purged().finds(|run| _ = run.stored.orders.remove("A"), Guarantee::G6);
    let other = |run: &mut Run, order: &str, standing| {
        run.stored.orders.get_mut(order).expect("it is there").standing = standing;
    };
    Run::purged().finds(|run| other(run, "A", Standing::Compensated), Guarantee::G7);
    Run::purged().finds(|run| other(run, "B", Standing::Completed), Guarantee::G5);
}

#[test]
fn g2_a_start_that_is_repeated_behind_the_tombstone_and_places_the_order_again_is_found() {
    Run::purged().finds(|run| _ = run.shop("A", "place-order", false), Guarantee::G2);
}
