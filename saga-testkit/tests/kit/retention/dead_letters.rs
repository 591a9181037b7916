//! An open dead letter keeps the saga that it names.

use std::time::Duration;

use saga_core::Retention;
use saga_core::store::{DeadLetterId, DeadLetterReason, DeadLetters as _, Ids as _, NewDeadLetter};

use super::orders::*;

const RETRY_INTERVAL: Duration = Duration::from_hours(3);

async fn letter_about(test: &Test, key: &str) -> NewDeadLetter {
    NewDeadLetter {
        id: DeadLetterId(test.store.reserve_ids(1).await.unwrap().start),
        fingerprint: [1; 32],
        tenant: saga_core::Tenant::default(),
        reason: DeadLetterReason::Undecodable,
        detail: "the field `cents` is missing".to_owned(),
        source: "payments".to_owned(),
        headers: vec![("saga-cause".to_owned(), key.to_owned())],
        payload: Vec::new(),
        message: None,
        attempts: 1,
    }
}

#[tokio::test]
async fn g13_a_saga_that_an_open_dead_letter_names_is_purged_after_the_decision_and_the_retry_interval() {
    let saga = orders(Some(Retention::days(1)));
    let test =
        Test::of(saga, |builder| builder.settings(|settings| settings.purge_retry_interval = RETRY_INTERVAL)).await;
    test.run("o-1", 1).await;
    test.run("o-2", 1).await;
    let letter = letter_about(&test, "o-1").await;
    test.store.add_dead_letters(vec![letter.clone()]).await.unwrap();

    test.time.advance(DAY + PASS).await;
    assert_eq!(test.ages(&["o-1", "o-2"]).await, ["full", "deleted"]);
    test.time.advance(DAY).await;
    assert_eq!(test.age("o-1").await, "full", "the letter is open");
    test.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await.unwrap();
    test.time.advance(RETRY_INTERVAL + PASS).await;
    assert_eq!(test.age("o-1").await, "deleted");
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_saga_is_not_tried_to_be_purged_again_before_the_retry_interval() {
    let saga = orders(Some(Retention::days(1)));
    let test =
        Test::of(saga, |builder| builder.settings(|settings| settings.purge_retry_interval = RETRY_INTERVAL)).await;
    test.run("o-1", 1).await;
    let letter = letter_about(&test, "o-1").await;
    test.store.add_dead_letters(vec![letter.clone()]).await.unwrap();
    test.time.advance(DAY + PASS).await;
    test.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await.unwrap();
    test.time.advance(RETRY_INTERVAL / 2).await;
    assert_eq!(test.age("o-1").await, "full", "an interval of an hour is over");
    test.time.advance(RETRY_INTERVAL / 2 + PASS).await;
    assert_eq!(test.age("o-1").await, "deleted");
    test.runtime.shutdown().await;
}
