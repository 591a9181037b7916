use crate::store::Headers;
use crate::store::MessageId;
use crate::store::MessageKind;
use crate::store::NewMessage;
use crate::store::lane_of;
use crate::store::service_topic;
use std::time::Duration;

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
