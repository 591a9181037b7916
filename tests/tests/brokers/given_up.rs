use saga_core::Outcome;
use saga_core::store::{DeadLetterFilter, DeadLetterReason};
use saga_core::transport::{Settlement, Subscription, Transport as _, service_topic};
use saga_tests::eventually;

use crate::place::{DELIVERY_LIMIT, Place, charges, create_order};
use crate::stranger::{QUEUE, Stranger, command};

/// A consumer that is none of ours rejects a command until the broker gives it up. The host finds it in the queue of
/// dead letters, and keeps it in its table until it is replayed: the same message, which takes effect once.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_gave_up_is_a_dead_letter_and_takes_effect_once_when_replayed() {
    let place = Place::new("given_up").await;
    let foreign = place.transport().await;
    let topic = service_topic("payments");
    let subscription = Subscription { name: topic.clone(), topics: vec![topic], prefetch: 1 };
    let mut rejecting = foreign.subscribe(subscription).await.unwrap();
    let orders = place.start_orders().await;
    let running = orders.start(&create_order(), "o-1", 12).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..=DELIVERY_LIMIT {
        for delivery in rejecting.receive(1).await.unwrap() {
            ids.push(delivery.message.as_ref().unwrap().id);
            rejecting.settle(&[(delivery.tag, Settlement::Reject)]).await.unwrap();
        }
    }
    drop(rejecting);
    let host = place.start_payments().await;
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!("it is not stuck") };
    assert!(step == "charge-card" && reason.contains("given-up"), "{step}: {reason}");
    let desk = host.admin().dead_letters();
    let letters = desk.list(DeadLetterFilter::default()).await.unwrap();
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.letter.reason, letter.letter.attempts), (DeadLetterReason::DeliveryLimit, DELIVERY_LIMIT + 1));
    assert!(letter.letter.detail.contains("delivery_limit"), "{}", letter.letter.detail);
    let header = |name: &str, text: &str| letter.letter.headers.contains(&(name.to_owned(), text.to_owned()));
    assert!(header("x-death-queue", QUEUE) && header("x-death-reason", "delivery_limit"), "{letter:?}");
    assert!(header("saga-cause", "o-1") && letter.letter.payload == b"12", "{letter:?}");
    let message = letter.letter.message.as_ref().unwrap();
    assert!(ids.iter().all(|id| *id == message.id), "it is the same message");
    let stranger = Stranger::at(place.vhost.url()).await;
    let dead_letters = format!("{QUEUE}.dead-letters");
    eventually("an acknowledgement", async || (stranger.count(&dead_letters).await.0 == 0).then_some(())).await;
    desk.replay(letter.letter.id, "the stranger is gone").await.unwrap();
    desk.replay(letter.letter.id, "the stranger is gone").await.unwrap();
    assert_eq!(running.closed().await.unwrap().to_string(), "completed");
    assert_eq!(charges(&host).await, ["o-1:charge-card"]);
    orders.shutdown().await;
    host.shutdown().await;
}

/// Rejected for good, expired, and nonsense: each is kept with the broker's own reason.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_dying_is_told_with_its_reason() {
    let place = Place::new("ways_of_dying").await;
    let host = place.start_payments().await;
    let stranger = Stranger::at(place.vhost.url()).await;
    host.shutdown().await;
    drop(host);
    eventually("no receiver", async || (stranger.count(QUEUE).await.1 == 0).then_some(())).await;
    stranger.send(command(1, "o-1").with_expiration("1".into()), b"12").await;
    stranger.send(lapin::BasicProperties::default().with_expiration("1".into()), b"nonsense").await;
    let dead_letters = format!("{QUEUE}.dead-letters");
    eventually("two dead letters", async || (stranger.count(&dead_letters).await.0 == 2).then_some(())).await;
    let host = place.start_payments().await;
    let letters = eventually("both letters", async || {
        let letters = host.admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap();
        (letters.len() == 2).then_some(letters)
    });
    let mut letters = letters.await;
    letters.sort_by_key(|letter| letter.letter.message.is_none());
    for letter in &letters {
        assert_eq!((letter.letter.reason, letter.letter.attempts), (DeadLetterReason::DeliveryLimit, 1), "{letter:?}");
        assert!(letter.letter.detail.contains("expired"), "{}", letter.letter.detail);
    }
    assert!(letters[1].letter.detail.contains("message-id is missing"), "{}", letters[1].letter.detail);
    assert_eq!(letters[1].letter.payload, b"nonsense");
    host.admin().dead_letters().replay(letters[0].letter.id, "late is better than never").await.unwrap();
    eventually("the effect", async || (charges(&host).await == ["o-1:charge-card"]).then_some(())).await;
    assert!(host.admin().dead_letters().replay(letters[1].letter.id, "it is no message").await.is_err());
    host.shutdown().await;
}
