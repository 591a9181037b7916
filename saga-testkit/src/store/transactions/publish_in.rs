//! Publishing events in the application's own transaction.

use std::sync::Arc;
use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Headers, MessageId, MessageKind, NewMessage, Outbox, OutboxRow, StartIn, StoreErrorKind, lane_of,
};

use super::start_in::fault;
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, tenant};
use crate::harness::{StartInHarness, StoreHarness};

/// How many transactions publish under one key at once, besides the first.
const OTHERS: u32 = 6;

pub(in crate::store) fn message(tenant: &Tenant, key: &str, number: u32) -> NewMessage {
    NewMessage {
        id: MessageId(uuid::Uuid::from_u128(u128::from(number))),
        kind: MessageKind::Event,
        tenant: tenant.clone(),
        aggregate_type: "stock".into(),
        aggregate_id: key.into(),
        event_type: "StockCounted".into(),
        payload: number.to_string().into_bytes(),
        position: 0,
        lane: lane_of(tenant, "stock", key),
        headers: Headers { traceparent: Some("00-1-2-01".into()), ..Headers::default() },
        due_in: Duration::ZERO,
    }
}

pub(in crate::store) async fn publish<H: StartInHarness>(bench: &Bench<H>, messages: &[NewMessage]) -> Outcome {
    let mut transaction = bench.harness.begin(&bench.store).await;
    for message in messages {
        bench.store.publish_in(bench.harness.conn(&mut transaction), message.clone()).await?;
    }
    bench.harness.commit(transaction).await.map_err(fault)
}

/// The positions of a key with the payloads that have them, by position.
pub(in crate::store) async fn positions<H: StoreHarness>(
    bench: &Bench<H>,
    key: &str,
) -> Result<Vec<(u64, Vec<u8>)>, Failed> {
    let of_key = |row: &OutboxRow| row.aggregate_id == key && row.tenant == Tenant::default();
    let rows = bench.outbox().await?.into_iter().filter(of_key);
    let mut rows: Vec<_> = rows.map(|row| (row.position, row.payload)).collect();
    rows.sort();
    Ok(rows)
}

pub(crate) async fn an_event_is_there_if_its_transaction_commits<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let own = Tenant::default();
    let mut transaction = bench.harness.begin(&bench.store).await;
    let conn = bench.harness.conn(&mut transaction);
    bench.harness.write_business(conn, "stock", 12).await.map_err(fault)?;
    bench.store.publish_in(bench.harness.conn(&mut transaction), message(&own, "7", 1)).await?;
    ensure_eq!(bench.store.depth().await?.rows, 0, "the messages that are there before the commit");
    bench.harness.roll_back(transaction).await;
    ensure_eq!(bench.store.depth().await?.rows, 0, "the messages that are there behind a rollback");
    ensure_eq!(bench.business("stock").await, None, "what the application wrote");
    publish(&bench, &[message(&own, "7", 2)]).await?;
    ensure_eq!(positions(&bench, "7").await?, [(1, b"2".to_vec())], "the messages that are there behind a commit");
    let mut bare = bench.harness.bare(&bench.store).await;
    let refused = bench.store.publish_in(bench.harness.conn(&mut bare), message(&own, "7", 3)).await;
    let kind = refused.as_ref().err().map(saga_core::store::StoreError::kind);
    ensure_eq!(kind, Some(StoreErrorKind::Misuse), "how a connection without a transaction is refused");
    drop(bare);
    ensure_eq!(bench.store.depth().await?.rows, 1, "the messages that are there at the end");
    Ok(())
}

pub(crate) async fn an_event_is_read_as_it_was_published<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let new = message(&tenant("acme"), "order 7 ü", 1);
    publish(&bench, std::slice::from_ref(&new)).await?;
    let bench = bench.reopen().await?;
    let rows = bench.outbox().await?;
    let [row] = &rows[..] else {
        return Err(Failed(format!("one event was published, and these are there: {rows:?}")));
    };
    ensure_eq!((row.id, row.kind, row.tenant.as_str()), (new.id, new.kind, "acme"), "which message it is");
    ensure_eq!((&*row.aggregate_type, &*row.aggregate_id), ("stock", "order 7 ü"), "its ordering key");
    ensure_eq!((&*row.event_type, &*row.payload), ("StockCounted", b"1".as_slice()), "what it tells");
    ensure_eq!(row.headers, new.headers, "its headers");
    Ok(())
}

pub(crate) async fn positions_count_what_was_committed<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let own = Tenant::default();
    publish(&bench, &[message(&own, "7", 1), message(&own, "8", 2), message(&own, "7", 3)]).await?;
    let mut transaction = bench.harness.begin(&bench.store).await;
    bench.store.publish_in(bench.harness.conn(&mut transaction), message(&own, "7", 4)).await?;
    bench.harness.roll_back(transaction).await;
    // What was sent is gone from the outbox, and counts.
    let sent: Vec<MessageId> = bench.outbox().await?.iter().map(|row| row.id).collect();
    ensure_eq!(sent.len(), 3, "the messages that are there");
    bench.store.sent(&sent).await?;
    publish(&bench, &[message(&tenant("acme"), "7", 5), message(&own, "7", 6)]).await?;
    ensure_eq!(positions(&bench, "7").await?, [(3, b"6".to_vec())], "the position behind two messages that were sent");
    Ok(())
}

pub(crate) async fn the_positions_of_a_key_are_the_order_of_the_commits<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let own = Tenant::default();
    let mut first = bench.harness.begin(&bench.store).await;
    bench.store.publish_in(bench.harness.conn(&mut first), message(&own, "7", 0)).await?;
    let others: Vec<_> = (1..=OTHERS)
        .map(|number| {
            let (bench, own, harness) = (bench.clone(), own.clone(), Arc::clone(&bench.harness));
            tokio::spawn(async move {
                let mut transaction = harness.begin(&bench.store).await;
                let conn = harness.conn(&mut transaction);
                bench.store.publish_in(conn, message(&own, "7", number)).await?;
                harness.commit(transaction).await.map_err(fault)
            })
        })
        .collect();
    let last = OTHERS + 1;
    bench.store.publish_in(bench.harness.conn(&mut first), message(&own, "7", last)).await?;
    let before = bench.store.depth().await?.rows;
    ensure!(before == 0, "{before} messages overtook a transaction that has not ended");
    bench.harness.commit(first).await.map_err(fault)?;
    for other in others {
        other.await.map_err(|_| Failed("a transaction that published panicked".into()))??;
    }
    let rows = positions(&bench, "7").await?;
    let found: Vec<u64> = rows.iter().map(|(position, _)| *position).collect();
    ensure_eq!(found, (1..=u64::from(last) + 1).collect::<Vec<_>>(), "the positions of the key");
    let firsts: Vec<&[u8]> = rows.iter().take(2).map(|(_, payload)| &**payload).collect();
    let last = last.to_string();
    ensure_eq!(firsts, [b"0".as_slice(), last.as_bytes()], "the messages of the first transaction");
    Ok(())
}
