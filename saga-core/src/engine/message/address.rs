//! A message that is addressed to a service.

use std::time::Duration;

use crate::store::{Headers, MessageId, MessageKind, NewMessage, lane_of, service_topic};

/// An empty message to a service. It has an ordering key of its own: nothing is promised about its order.
pub(crate) fn message_to(id: MessageId, tenant: &crate::key::Tenant, service: &str) -> NewMessage {
    let (topic, key) = (service_topic(service), id.to_string());
    NewMessage {
        id,
        kind: MessageKind::Event,
        tenant: tenant.clone(),
        lane: lane_of(tenant, &topic, &key),
        aggregate_type: topic,
        aggregate_id: key,
        event_type: String::new(),
        payload: Vec::new(),
        position: 1,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}
