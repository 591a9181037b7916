use std::time::Duration;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use saga_core::store::{DeadLetter, DeadLetterFilter, DeadLetterReason};
use saga_core::transport::{Settlement, Subscription, Transport as _, service_topic};
use saga_core::{Runtime, Tenant};
use saga_postgres::PostgresStore;
use saga_tests::eventually;

use crate::place::{Place, charges};
use crate::stranger::{QUEUE, Stranger, command, text, with};

struct Bad {
    properties: BasicProperties,
    body: Vec<u8>,
    tenant: Tenant,
    reason: DeadLetterReason,
    says: &'static str,
}

fn bad(properties: BasicProperties, reason: DeadLetterReason, says: &'static str) -> Bad {
    Bad { properties, body: b"12".to_vec(), tenant: Tenant::default(), reason, says }
}

fn all() -> Vec<Bad> {
    use DeadLetterReason::{OtherTenant, TooOld, Undecodable, UnknownStep, Unreadable};
    let mut number = 100;
    let mut good = || {
        number += 1;
        command(number, &format!("bad-{number}"))
    };
    let table = || AMQPValue::FieldTable(FieldTable::default());
    vec![
        bad(BasicProperties::default(), Unreadable, "message-id is missing"),
        bad(good().with_message_id("seven".into()), Unreadable, "no UUID"),
        bad(with(&good(), "saga-key", AMQPValue::Void), Unreadable, "saga-key is missing"),
        bad(with(&good(), "saga-key", AMQPValue::LongLongInt(7)), Unreadable, "saga-key is of the type LongLongInt"),
        bad(with(&good(), "saga-cause", AMQPValue::Void), Unreadable, "`saga-cause` is missing"),
        bad(with(&good(), "saga-cause", AMQPValue::Double(1.5)), Unreadable, "saga-cause is of the type Double"),
        bad(with(&good(), "saga-cause", text("a key with blanks")), Unreadable, "key"),
        bad(with(&good(), "saga-step", text("launder")), UnknownStep, "`launder`"),
        bad(with(&good(), "saga-service", text("shipping")), UnknownStep, "`shipping`"),
        bad(with(&good(), "saga-reply-to", table()), Unreadable, "saga-reply-to is of the type FieldTable"),
        bad(with(&good(), "saga-committed-at", text("yesterday")), Unreadable, "no integer"),
        bad(with(&good(), "saga-committed-at", AMQPValue::LongLongInt(0)), TooOld, "committed"),
        bad(with(&good(), "saga-tenant", AMQPValue::Boolean(true)), Unreadable, "saga-tenant is of the type Boolean"),
        Bad {
            tenant: Tenant::new("other").unwrap(),
            ..bad(with(&good(), "saga-tenant", text("other")), OtherTenant, "`other` is not served")
        },
        Bad { body: b"[]".to_vec(), ..bad(good(), Undecodable, "its content") },
        Bad { body: vec![b' '; 20 << 20], ..bad(good(), Unreadable, "the body has 20971520 bytes") },
        Bad { body: vec![b' '; 1 << 20], ..bad(good(), DeadLetterReason::TooLarge, "it has 1048576 bytes") },
    ]
}

async fn letters(host: &Runtime<PostgresStore>, tenant: &Tenant) -> Vec<DeadLetter> {
    host.tenant(tenant.clone()).admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap()
}

/// G8: each bad message is one dead letter with its reason, and nobody is held up: no queue, no saga, no other message.
#[tokio::test(flavor = "multi_thread")]
async fn g8_each_bad_message_is_one_dead_letter_on_real_servers() {
    let place = Place::new("bad_messages").await;
    let host = place.start_payments().await;
    let stranger = Stranger::at(place.vhost.url()).await;
    let others = Tenant::new("other").unwrap();
    let transport = place.transport().await;
    let topic = service_topic("strangers");
    let subscription = Subscription { name: topic.clone(), topics: vec![topic], prefetch: 100 };
    let mut replies = transport.subscribe(subscription).await.unwrap();
    let all = all();
    for bad in &all {
        stranger.send(bad.properties.clone(), &bad.body).await;
        // What comes again is the same letter, not another one.
        stranger.send(bad.properties.clone(), &bad.body).await;
    }
    stranger.send(command(1, "good"), b"12").await;
    eventually("the good one", async || (charges(&host).await == ["good:charge-card"]).then_some(())).await;
    eventually("an empty queue", async || (stranger.count(QUEUE).await.0 == 0).then_some(())).await;
    let found = eventually("every letter", async || {
        let mut found = letters(&host, &Tenant::default()).await;
        found.extend(letters(&host, &others).await);
        (found.iter().map(|letter| letter.seen).sum::<u64>() >= 2 * all.len() as u64).then_some(found)
    });
    let found = found.await;
    assert_eq!(found.len(), all.len(), "{found:#?}");
    for bad in &all {
        let is_it =
            |letter: &&DeadLetter| letter.letter.detail.contains(bad.says) && letter.letter.reason == bad.reason;
        let letter = found.iter().find(is_it);
        let letter = letter.unwrap_or_else(|| panic!("no letter says {:?}, {:?}", bad.says, bad.reason));
        assert_eq!((letter.seen, &letter.letter.tenant), (2, &bad.tenant), "{}", bad.says);
        assert_eq!(letter.letter.source, "payments");
    }
    // One reply to the good command, and a refusal for each bad one that could be answered.
    let mut answers = Vec::new();
    while !answers.iter().any(|answer: &String| answer == "done") {
        let came = tokio::time::timeout(Duration::from_mins(5), replies.receive(100)).await.unwrap().unwrap();
        let settled: Vec<_> = came.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
        replies.settle(&settled).await.unwrap();
        let answer = |delivery: &saga_core::transport::Delivery| {
            delivery.message.as_ref().unwrap().headers.answer.map(|answer| answer.as_str().to_owned())
        };
        answers.extend(came.iter().filter_map(answer));
    }
    assert!(answers.iter().all(|answer| ["done", "refused", "unknown"].contains(&answer.as_str())), "{answers:?}");
    assert!(host.health().is_healthy(), "{:?}", host.health());
    assert_eq!(charges(&host).await, ["good:charge-card"], "nothing else took effect");
    host.shutdown().await;
}
