//! Mistakes that are made on purpose: each breaks the property that is named here, in the model that is named here.
//!
//! Each model without a mistake has all its properties: that is tested in `models.rs`, over all of its states.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use saga_models::{Bounds, Mutant, Protocol};
use stateright::{Checker, HasDiscoveries, Model};

/// The mistake, the model, and the property that it breaks.
type Found = (Mutant, &'static str, fn() -> Bounds, &'static str);

const FOUND: [Found; 25] = [
    (Mutant::NoTombstone, "stranger", Bounds::stranger, "G5 what was taken back stays so"),
    (Mutant::SettlesBeforeStoring, "lossy", Bounds::lossy, "G4 what was settled is stored"),
    (Mutant::SkipsUnknown, "sticky", Bounds::sticky, "G5 compensated: nothing stands"),
    (Mutant::RecordsInRolledBack, "lossy", Bounds::lossy, "G5 nothing stands still"),
    (Mutant::SendsBeforeCommit, "lossy", Bounds::lossy, "G4 nothing is sent that was not committed"),
    (Mutant::BeginsAgain, "sticky", Bounds::sticky, "G2 an effect is committed once"),
    (Mutant::CommitsTwice, "events", Bounds::events, "G1 an effect and its record are one commit"),
    (Mutant::TakesHeldRows, "events", Bounds::events, "G2 an effect is committed once"),
    (Mutant::TakesHeldRows, "events", Bounds::events, "G7 who lost the claim decides nothing"),
    (Mutant::IgnoresTheEpoch, "calls", Bounds::calls, "G7 who lost the claim decides nothing"),
    (Mutant::OverwritesTheSaga, "calls", Bounds::calls, "G3 a success that comes late is undone"),
    (Mutant::ForgetsLateSuccess, "calls", Bounds::calls, "G3 a success that comes late is undone"),
    (Mutant::ForgetsDoubt, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Mutant::SkipsTheSettleTime, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Mutant::BeginsStale, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Mutant::ForgetsBeginnings, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Mutant::ForgetsLateUnknown, "calls", Bounds::calls, "G5 compensated: nothing stands"),
    (Mutant::UndoesInOrder, "sticky", Bounds::sticky, "G5 what is undone is undone in reverse"),
    (Mutant::SendsPastUnconfirmed, "events", Bounds::events, "G9 events are accepted in commit order"),
    (Mutant::DeletesUnconfirmed, "events", Bounds::events, "G4 what was committed is accepted"),
    (Mutant::NeverSendsAgain, "lossy", Bounds::lossy, "G5 nothing stands still"),
    (Mutant::NeverAnswersAgain, "lossy", Bounds::lossy, "G5 nothing stands still"),
    (Mutant::KeepsDeadLeases, "events", Bounds::events, "G5 nothing stands still"),
    (Mutant::AnswersBeforeCommit, "events", Bounds::events, "G6 what a client was told is durable"),
    (Mutant::TakesAnyPayload, "events", Bounds::events, "G6 what a client was told is durable"),
];

#[test]
fn each_mistake_breaks_the_property_that_forbids_it() {
    let (mut table, mut missed) = (String::new(), Vec::new());
    for (mutant, model, bounds, property) in FOUND {
        let planted = Protocol::new(bounds()).with_mutant(mutant);
        let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
        let checker = planted.checker().finish_when(found).spawn_bfs().join();
        let states = checker.unique_state_count();
        match checker.discovery(property) {
            Some(path) => {
                let actions = path.into_actions().len();
                // Writing into a text never fails.
                let _ = writeln!(table, "{mutant:?} | {model} | {property} | {states} states | {actions} actions");
            }
            None => missed.push(format!("{mutant:?} does not break `{property}` in {states} states of `{model}`")),
        }
    }
    println!("{table}");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_mistake_is_looked_for_and_in_the_table() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reliability.md");
    let document = std::fs::read_to_string(document).unwrap();
    for mutant in Mutant::ALL {
        let Some((_, model, ..)) = FOUND.iter().find(|(found, ..)| *found == mutant) else {
            panic!("{mutant:?} is not looked for");
        };
        let row = format!("| `{mutant:?}` in *{model}*: ");
        assert!(document.contains(&row), "docs/reliability.md has no row with {row}");
    }
}
