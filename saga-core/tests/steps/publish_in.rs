//! What is refused when an application publishes in its own transaction, and that the transaction goes on; topics of events.

use saga_core::engine::PublishError;
use saga_core::memory::MemoryStore;
use saga_core::store::{Outbox as _, StoreErrorKind};
use saga_core::{Event, Runtime, Saga, StepError, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counted(String);

impl Event for Counted {
    const NAME: &'static str = "counted";
}

#[saga_step]
async fn count(name: String) -> Result<String, StepError> {
    Ok(name)
}

#[tokio::test]
async fn what_cannot_be_published_is_refused_and_the_rest_is_committed() {
    let store = MemoryStore::new();
    let saga = Saga::named("counting").input::<String>().step::<count>().build().expect("a valid saga");
    let runtime = Runtime::builder(store.clone())
        .saga(&saga)
        .settings(|settings| settings.payload_bytes_max = 20)
        .start()
        .await
        .unwrap();
    let mut transaction = store.transaction();
    let refused = async |transaction: &mut saga_core::memory::MemoryTransaction, topic, key, event: &str| {
        let published = runtime.publish(key, &Counted(event.to_owned())).topic(topic).in_tx(transaction.conn()).await;
        published.map(drop).unwrap_err()
    };
    for (topic, key) in [("service:stock", "7"), ("", "7"), ("stock", "7>8"), ("stock", "")] {
        let error = refused(&mut transaction, topic, key, "one").await;
        assert!(matches!(error, PublishError::Name(_)), "{topic:?} {key:?}: {error}");
    }
    let error = refused(&mut transaction, "counting", "7", "one").await;
    assert!(matches!(&error, PublishError::TopicOfSaga(name) if name == "counting"), "{error}");
    let error = refused(&mut transaction, "stock", "7", "more than twenty bytes").await;
    assert!(matches!(error, PublishError::TooLarge { bytes: 24, max: 20 }), "{error}");
    runtime.publish("7", &Counted("two".to_owned())).topic("stock").in_tx(transaction.conn()).await.unwrap();
    transaction.conn().put("stock", "2").unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.depth().await.unwrap().rows, 1);
    assert_eq!(store.read(|table| table.get("stock").map(<[u8]>::to_vec)), Some(b"2".to_vec()));

    let mut bare = store.transaction();
    bare.conn().end_transaction();
    let error = refused(&mut bare, "stock", "7", "one").await;
    assert!(matches!(&error, PublishError::Store(error) if error.kind() == StoreErrorKind::Misuse), "{error}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn an_event_is_one_message_on_each_topic() {
    let runtime = Runtime::builder(MemoryStore::new()).start().await.unwrap();
    let event = Counted("tea".to_owned());
    let named = runtime.publish("7", &event).await.unwrap();
    let on_stock = runtime.publish("7", &event).topic("stock").await.unwrap();
    assert_ne!(named, on_stock);
    assert_eq!(runtime.publish("7", &event).topic("stock").await.unwrap(), on_stock);
    assert_eq!(runtime.publish("7", &event).topic("counted").await.unwrap(), named, "the topic of its own name");
    runtime.shutdown().await;
}
