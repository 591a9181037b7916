//! Messages that a service could not handle or send, put into the store of the shop.

use std::time::Duration;

use saga_core::Tenant;
use saga_core::store::{
    Changes, DeadLetterId, DeadLetterReason, DeadLetters as _, Headers, MessageId, MessageKind, NewDeadLetter,
    NewMessage, NewParked, Outbox as _, Records as _, lane_of,
};

use crate::shop::Shop;

impl Shop {
    pub(crate) async fn bury(&self, id: i64, tenant: Tenant, detail: &str) {
        let letter = NewDeadLetter {
            id: DeadLetterId(id),
            fingerprint: [0; 32],
            tenant,
            reason: DeadLetterReason::Unreadable,
            detail: detail.to_owned(),
            source: "service:payments".to_owned(),
            headers: vec![("sent-by".to_owned(), "a\u{1b}[2J".to_owned())],
            payload: b"garbage".to_vec(),
            message: None,
            attempts: 0,
        };
        self.store.add_dead_letters(vec![letter]).await.expect("it is kept");
    }

    pub(crate) async fn park(&self, number: u8, tenant: Tenant, error: &str) -> MessageId {
        let id = format!("00000000-0000-7000-8000-0000000000{number:02}");
        let id = MessageId(id.parse().expect("an id"));
        let (topic, key) = ("orders".to_owned(), format!("order-{number}"));
        let message = NewMessage {
            id,
            kind: MessageKind::Event,
            lane: lane_of(&tenant, &topic, &key),
            tenant,
            aggregate_type: topic,
            aggregate_id: key,
            event_type: "placed".to_owned(),
            payload: Vec::new(),
            position: 1,
            headers: Headers::default(),
            due_in: Duration::ZERO,
        };
        let changes = Changes { messages: vec![message], ..Changes::default() };
        self.store.record(vec![changes]).await.expect("it is kept");
        let parked = NewParked { message: id, attempts: 5, error: error.to_owned(), retry_in: None };
        self.store.park(&[parked]).await.expect("it is parked");
        id
    }
}
