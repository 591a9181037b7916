//! Mistakes that are made on purpose: each breaks the property that is named here, in the model that is named here.
//!
//! Each model without a mistake has all its properties: that is tested in `models.rs`, over all of its states.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use saga_models::{Bounds, Plant, Protocol};
use stateright::{Checker, HasDiscoveries, Model};

/// The mistake, the model, and the property that it breaks.
type Found = (Plant, &'static str, fn() -> Bounds, &'static str);

const FOUND: [Found; 24] = [
    (Plant::NoTombstone, "stranger", Bounds::stranger, "G5 what was taken back stays so"),
    (Plant::SettlesBeforeStoring, "lossy", Bounds::lossy, "G4 what was settled is stored"),
    (Plant::SkipsUnknown, "sticky", Bounds::sticky, "G5 compensated: nothing stands"),
    (Plant::RecordsInRolledBack, "lossy", Bounds::lossy, "G5 nothing stands still"),
    (Plant::SendsBeforeCommit, "lossy", Bounds::lossy, "G4 nothing is sent that was not committed"),
    (Plant::BeginsAgain, "sticky", Bounds::sticky, "G2 an effect is committed once"),
    (Plant::CommitsTwice, "events", Bounds::events, "G1 an effect and its record are one commit"),
    (Plant::TakesHeldRows, "events", Bounds::events, "G2 an effect is committed once"),
    (Plant::IgnoresTheEpoch, "calls", Bounds::calls, "G7 who lost the claim decides nothing"),
    (Plant::OverwritesTheSaga, "calls", Bounds::calls, "G3 a success that comes late is undone"),
    (Plant::ForgetsLateSuccess, "calls", Bounds::calls, "G3 a success that comes late is undone"),
    (Plant::ForgetsMaybe, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Plant::SkipsTheSettleTime, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Plant::BeginsStale, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Plant::ForgetsBeginnings, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Plant::ForgetsLateUnknown, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Plant::UndoesInOrder, "sticky", Bounds::sticky, "G5 what is undone is undone in reverse"),
    (Plant::SendsPastUnconfirmed, "events", Bounds::events, "G9 events are accepted in commit order"),
    (Plant::DeletesUnconfirmed, "events", Bounds::events, "G4 what was committed is accepted"),
    (Plant::NeverSendsAgain, "lossy", Bounds::lossy, "G5 nothing stands still"),
    (Plant::NeverAnswersAgain, "lossy", Bounds::lossy, "G5 nothing stands still"),
    (Plant::KeepsDeadLeases, "events", Bounds::events, "G5 nothing stands still"),
    (Plant::AnswersBeforeCommit, "events", Bounds::events, "G6 what a client was told is durable"),
    (Plant::TakesAnyPayload, "events", Bounds::events, "G6 what a client was told is durable"),
];

#[test]
fn each_mistake_breaks_the_property_that_forbids_it() {
    let (mut table, mut missed) = (String::new(), Vec::new());
    for (plant, model, bounds, property) in FOUND {
        let planted = Protocol::new(bounds()).planted(plant);
        let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
        let checker = planted.checker().finish_when(found).spawn_bfs().join();
        let states = checker.unique_state_count();
        match checker.discovery(property) {
            Some(path) => {
                let actions = path.into_actions().len();
                // Writing into a text never fails.
                let _ = writeln!(table, "{plant:?} | {model} | {property} | {states} states | {actions} actions");
            }
            None => missed.push(format!("{plant:?} does not break `{property}` in {states} states of `{model}`")),
        }
    }
    println!("{table}");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_mistake_is_looked_for_and_in_the_table() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reliability.md");
    let document = std::fs::read_to_string(document).unwrap();
    for plant in Plant::ALL {
        let Some((_, model, ..)) = FOUND.iter().find(|(found, ..)| *found == plant) else {
            panic!("{plant:?} is not looked for");
        };
        let row = format!("| `{plant:?}` in *{model}*: ");
        assert!(document.contains(&row), "docs/reliability.md has no row with {row}");
    }
}
