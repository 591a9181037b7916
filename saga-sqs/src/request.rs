//! One request that sends: what became of each of its messages.

use std::collections::BTreeMap;

use aws_sdk_sns::types::PublishBatchRequestEntry;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use crate::clients::Clients;
use crate::error::Failure;
use crate::wire::{ENCODING, HEAD, Outgoing, STRING};

/// Where a request goes to.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Queue { url: String },
    Topic { arn: String },
}

/// The messages of a request that were not taken, by their places, and why.
pub(crate) type NotTaken = BTreeMap<usize, Failure>;

/// Sends messages in one request.
///
/// # Errors
/// The whole request failed.
pub(crate) async fn send(
    clients: &Clients,
    address: &Address,
    messages: &[(usize, &Outgoing)],
) -> Result<NotTaken, Failure> {
    let answered = match address {
        Address::Queue { url } => to_queue(clients, url, messages).await,
        Address::Topic { arn } => to_topic(clients, arn, messages).await,
    };
    let (taken, mut not_taken) = answered?;
    for (place, _) in messages {
        if !taken.contains(&place.to_string()) && !not_taken.contains_key(place) {
            not_taken.insert(*place, Failure::said("InternalFailure", Some("the answer does not name the message")));
        }
    }
    Ok(not_taken)
}

/// The ids of the messages that were taken, and what became of the others.
type Answered = (Vec<String>, NotTaken);

async fn to_queue(clients: &Clients, url: &str, messages: &[(usize, &Outgoing)]) -> Result<Answered, Failure> {
    use aws_sdk_sqs::types::MessageAttributeValue;
    let attribute = |value: &str| MessageAttributeValue::builder().data_type(STRING).string_value(value).build();
    let mut request = clients.sqs.send_message_batch().queue_url(url);
    for (place, message) in messages {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(place.to_string())
            .message_group_id(&message.group)
            .message_deduplication_id(&message.deduplication)
            .message_attributes(HEAD, attribute(&message.head).map_err(|error| incomplete(&error))?)
            .message_body(&message.body);
        if let Some(name) = message.encoding.name() {
            entry = entry.message_attributes(ENCODING, attribute(name).map_err(|error| incomplete(&error))?);
        }
        request = request.entries(entry.build().map_err(|error| incomplete(&error))?);
    }
    let answer = request.send().await.map_err(|error| Failure::of(&error))?;
    let taken = answer.successful.into_iter().map(|entry| entry.id).collect();
    let failed = answer.failed.into_iter().map(|entry| (entry.id, entry.code, entry.message));
    Ok((taken, failures(failed)))
}

async fn to_topic(clients: &Clients, arn: &str, messages: &[(usize, &Outgoing)]) -> Result<Answered, Failure> {
    use aws_sdk_sns::types::MessageAttributeValue;
    let attribute = |value: &str| MessageAttributeValue::builder().data_type(STRING).string_value(value).build();
    let mut request = clients.sns.publish_batch().topic_arn(arn);
    for (place, message) in messages {
        let mut entry = PublishBatchRequestEntry::builder()
            .id(place.to_string())
            .message_group_id(&message.group)
            .message_deduplication_id(&message.deduplication)
            .message_attributes(HEAD, attribute(&message.head).map_err(|error| incomplete(&error))?)
            .message(&message.body);
        if let Some(name) = message.encoding.name() {
            entry = entry.message_attributes(ENCODING, attribute(name).map_err(|error| incomplete(&error))?);
        }
        request = request.publish_batch_request_entries(entry.build().map_err(|error| incomplete(&error))?);
    }
    let answer = request.send().await.map_err(|error| Failure::of(&error))?;
    let taken = answer.successful.unwrap_or_default().into_iter().filter_map(|entry| entry.id).collect();
    let failed = answer.failed.unwrap_or_default().into_iter().map(|entry| (entry.id, entry.code, entry.message));
    Ok((taken, failures(failed)))
}

fn failures(failed: impl Iterator<Item = (String, String, Option<String>)>) -> NotTaken {
    let failure = |(id, code, message): (String, String, Option<String>)| {
        Some((id.parse().ok()?, Failure::said(&code, message.as_deref())))
    };
    failed.filter_map(failure).collect()
}

/// A part of an entry is missing. All are set, so this does not happen.
fn incomplete(error: &dyn std::error::Error) -> Failure {
    Failure::said("InvalidParameter", Some(&error.to_string()))
}
