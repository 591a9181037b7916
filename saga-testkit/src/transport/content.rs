//! What arrives is what was sent.

use saga_core::key::Tenant;
use saga_core::transport::{Answer, Headers, Message, MessageKind};

use super::bench::{Bench, message};
use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::tenant;
use crate::harness::TransportHarness;

const LARGE_BYTES: usize = 1 << 18;

pub(crate) async fn everything_arrives_as_it_was_sent<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let sent = Message {
        tenant: tenant("acme_1.x-Y"),
        key: "Größe/\"1\" #*%".into(),
        event_type: "order.placed/v2 ✓".into(),
        payload: (0..=255).collect(),
        kind: MessageKind::Reply,
        headers: Headers {
            saga_key: Some("order/8f14e45f".into()),
            step: Some("charge-card".into()),
            service: Some("orders".into()),
            reply_to: Some("payments".into()),
            correlation: Some(message("k", 2).id),
            answer: Some(Answer::Rejected),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            locks: Some(r#"{"credit":[{"kind":"account","id":"7","token":41}]}"#.into()),
            key_id: Some("payments-1".into()),
            signature: Some("00ff".into()),
        },
        ..message("k", 1)
    };
    let publishing = bench.publish(vec![sent.clone()]);
    let came = receiver.accept(1).await?;
    ensure_eq!(came[0].message, Ok(sent), "the message");
    publishing.confirmed().await
}

pub(crate) async fn a_user_is_what_the_transport_checked<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let forged = "another-user";
    let sent = Message {
        kind: MessageKind::Reply,
        headers: Headers {
            service: Some(forged.into()),
            reply_to: Some(forged.into()),
            key_id: Some(forged.into()),
            ..Headers::default()
        },
        ..message("k", 1)
    };
    let publishing = bench.publish(vec![sent]);
    let came = receiver.accept(1).await?;
    ensure_eq!(came[0].user, bench.harness.user(), "the user");
    publishing.confirmed().await
}

pub(crate) async fn large_and_empty_payloads_arrive<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let large: Vec<u8> = (0..LARGE_BYTES).map(|index| (index % 251) as u8).collect();
    for payload in [Vec::new(), large] {
        let publishing = bench.publish(vec![Message { payload: payload.clone(), ..message("k", 1) }]);
        let came = receiver.accept(1).await?;
        let came = came[0].message.as_ref().map(|message| &message.payload);
        ensure!(came == Ok(&payload), "a payload of {} bytes is not as it was", payload.len());
        publishing.confirmed().await?;
    }
    Ok(())
}

pub(crate) async fn tenants_are_kept_apart<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let of = |tenant: Tenant, number| Message { tenant, ..message("k", number) };
    let sent = vec![of(Tenant::default(), 1), of(tenant("acme"), 2), of(tenant("ACME"), 3)];
    let publishing = bench.publish(sent.clone());
    let came = receiver.accept(3).await?;
    for sent in &sent {
        let arrived =
            came.iter().filter_map(|delivery| delivery.message.as_ref().ok()).find(|message| message.id == sent.id);
        ensure_eq!(arrived, Some(sent), "the message of its tenant");
    }
    publishing.confirmed().await
}
