//! Sagas that move between versions with choices: what was chosen stays chosen, and what took effect is undone.

use saga_core::StepPhase;
use saga_core::memory::MemoryStore;
use saga_core::saga::{Branch, MigrationError};
use saga_core::store::{RecordedOutcome, Records};
use saga_core::{Key, Migration, Outcome, Runtime, Saga, Tenant};

use crate::versions::courier::{
    Courier, Ship, call_courier, log, move_and_end, pack, plain, step, v1, v2, waiting, wrap,
};

/// Of an order that is a parcel in the first version the second would choose another arm. It is not asked.
#[tokio::test]
async fn what_was_chosen_stays_chosen() {
    let courier = Courier::default();
    let store = waiting(&v1(), &courier, 200).await;
    let migration = Migration::between(&v1(), &v2()).build().unwrap();
    let (outcome, status) = move_and_end(&store, &courier, (&v2(), &migration), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(log(&store), ["pack 200", "bill 200, Some(200), None"]);
    assert_eq!(step(&status, "shipping").taken.as_deref(), Some("parcel"));
    let passed_by = ["weigh", "wrap"].map(|name| step(&status, name).phase);
    assert_eq!(passed_by, [StepPhase::NotTaken; 2]);
}

/// G5: what an arm did is undone by the version that the saga moved to, and nothing of another arm is.
#[tokio::test]
async fn g5_what_an_arm_did_before_a_move_is_undone_behind_it() {
    for (order, undone) in [(200, ["pack 200", "unpack 200"]), (20, ["wrap 20", "unwrap 20"])] {
        let courier = Courier::default();
        let store = waiting(&v1(), &courier, order).await;
        let migration = Migration::between(&v1(), &v2()).build().unwrap();
        let (outcome, _) = move_and_end(&store, &courier, (&v2(), &migration), 2).await.unwrap();
        assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
        assert_eq!(log(&store), undone);
    }
}

/// An arm that nobody took may go; one that was taken may not, unless it is said what it became.
#[tokio::test]
async fn an_arm_that_was_taken_stays() {
    let letters = |arm: &'static str| -> Ship {
        Saga::named("ship")
            .input()
            .version(3)
            .choose("shipping", |choice| choice.when(arm, |_: &u32| true, Branch::step::<wrap>))
            .step::<call_courier>()
            .build()
            .unwrap()
    };
    let courier = Courier::default();
    let (store, letter) = (waiting(&v1(), &courier, 200).await, waiting(&v1(), &courier, 20).await);
    let to = letters("letter");
    let migration = Migration::between(&v1(), &to).remove::<pack>();
    let renamed = migration.rename_arm("shipping", "otherwise", "letter").build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &renamed), 1).await.unwrap_err();
    assert!(
        refused.contains(
            "`shipping` was chosen and took its arm `parcel`, which the other version does not have; keep the arm, or say \
             which one it became with `.arm`"
        ),
        "{refused}"
    );
    let (outcome, status) = move_and_end(&letter, &courier, (&to, &renamed), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(step(&status, "shipping").taken.as_deref(), Some("letter"));
}

#[tokio::test]
async fn a_choice_that_is_new_is_passed_where_it_is_said_which_arm_counts() {
    let courier = Courier::default();
    let to = v2();
    let store = waiting(&plain(), &courier, 20).await;
    let migration = Migration::between(&plain(), &to).build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &migration), 1).await.unwrap_err();
    assert!(
        refused.contains("say which arm counts as taken, with `.assume_arm(\"shipping\", \"heavy|parcel|otherwise\")`"),
        "{refused}"
    );
    let migration = Migration::between(&plain(), &to).assume_arm("shipping", "otherwise").build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &migration), 1).await.unwrap_err();
    assert!(
        refused.contains(
            "`pack` has begun, and stands in the other version in the arm `parcel` of `shipping`, of which this saga took the \
             arm `otherwise`"
        ),
        "{refused}"
    );
    let migration = Migration::between(&plain(), &to).assume_arm("shipping", "parcel").build().unwrap();
    let (outcome, status) = move_and_end(&store, &courier, (&to, &migration), 2).await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log(&store), ["pack 20", "unpack 20"]);
    let choice = step(&status, "shipping");
    assert_eq!((choice.phase, choice.taken.as_deref()), (StepPhase::Skipped, Some("parcel")));
    let records = store.records_of(&Tenant::default(), &Key::new("k-1").unwrap()).await.unwrap();
    let record = records.iter().find(|record| record.step.as_str() == "shipping").unwrap();
    assert_eq!((record.outcome, record.output.as_deref()), (RecordedOutcome::Skipped, Some(&b"\"parcel\""[..])));
}

/// What was passed by is new to a version that has it on the main line.
#[tokio::test]
async fn a_choice_that_is_left_out_leaves_what_its_arm_did() {
    let courier = Courier::default();
    let (parcel, letter) = (waiting(&v1(), &courier, 200).await, waiting(&v1(), &courier, 20).await);
    let to = plain();
    let error = Migration::between(&v1(), &to).build().unwrap_err().to_string();
    assert!(error.contains("leave it out with `.remove_choice(\"shipping\")`"), "{error}");
    let migration = Migration::between(&v1(), &to).remove_choice("shipping").build().unwrap();
    let (outcome, _) = move_and_end(&parcel, &courier, (&to, &migration), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(log(&parcel), ["pack 200", "wrap 200"]);
    courier.says(0);
    let refused = move_and_end(&letter, &courier, (&to, &migration), 1).await.unwrap_err();
    assert!(refused.contains("`call-courier` has begun, and `pack`, which comes before it"), "{refused}");
    assert!(refused.contains("say so with `.assume_done::<step>()`"), "{refused}");
}

/// What is left out keeps its record, and a record is of one step.
#[tokio::test]
async fn what_was_left_out_does_not_come_back_by_its_name() {
    let courier = Courier::default();
    let store = waiting(&v1(), &courier, 200).await;
    let (plain, last) = (plain(), v2());
    let runtime =
        Runtime::builder(store.clone()).state(courier.clone()).saga(&plain).saga(&last).start().await.unwrap();
    let there = Migration::between(&v1(), &plain).remove_choice("shipping").build().unwrap();
    runtime.admin().control("k-1").migrate(&there, "test").await.unwrap();
    let back = Migration::between(&plain, &last).assume_arm("shipping", "parcel").build().unwrap();
    let error = runtime.admin().control("k-1").migrate(&back, "test").await.unwrap_err().to_string();
    assert!(
        error
            .contains("`shipping` is new in ship version 2, and this saga did one of that name before an earlier move"),
        "{error}"
    );
    runtime.shutdown().await;
}

#[test]
fn a_migration_says_what_is_wrong_with_its_choices() {
    let said = |built: Result<Migration<MemoryStore>, MigrationError>| built.unwrap_err().to_string();
    let new = || Migration::between(&plain(), &v2());
    let error = said(new().assume_arm("shipping", "letter").assume_arm("sending", "letter").build());
    assert!(
        error.contains("`shipping` of ship version 2 has no arm `letter`; it has `heavy`, `parcel`, `otherwise`"),
        "{error}"
    );
    assert!(error.contains("ship version 2 has no choice `sending`"), "{error}");
    let error = said(new().assume_no_arm("shipping").build());
    assert!(
        error.contains("one arm of `shipping` always runs; say which, with `.assume_arm(\"shipping\", \"otherwise\")`")
    );
    let error = said(new().assume_arm("shipping", "parcel").assume_arm("shipping", "heavy").build());
    assert!(error.contains("which arm of `shipping` counts as taken is said twice"), "{error}");
    let both = || Migration::between(&v1(), &v2());
    let error = said(both().remove_choice("shipping").build());
    assert!(error.contains("`shipping` is in both versions, so it is not left out"), "{error}");
    let error = said(both().rename_arm("shipping", "otherwise", "parcel").build());
    assert!(error.contains("two arms of `shipping` became `parcel`"), "{error}");
    let error = said(both().assume_done::<call_courier>().build());
    assert!(error.contains("`call-courier` is in both versions, so it is not gone past"), "{error}");
}
