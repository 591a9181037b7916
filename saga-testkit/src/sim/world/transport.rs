use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::Environment;
use saga_core::store::{Answer, Headers, MessageId, service_topic};
use saga_core::transport::{
    Delivery, Incoming, Message, MessageKind, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};

use super::consumer::{Consumer, accept};
use super::fault::Fault;
use super::world::{Seat, World};
use crate::checker::What;
use crate::sim::sagas::SimEvent;
use crate::sim::schedule::Mutant;

/// A broker outside. It accepts what is published at once in any order, unless it has a bad day.
#[derive(Debug)]
pub(crate) struct SimTransport {
    pub(crate) seat: Seat,
}

impl SimTransport {
    fn publish_one(&self, message: &Message) -> Result<(), TransportError> {
        let world = &self.seat.world;
        let error = |kind, detail: &str| Err(TransportError::new(kind, "publish", detail));
        if world.happens(|rates| rates.publish_fails) {
            world.hit(Fault::PublishFailed);
            return error(TransportErrorKind::Unavailable, "the broker cannot be reached");
        }
        if world.happens(|rates| rates.publish_refused) {
            world.hit(Fault::PublishRefused);
            return error(TransportErrorKind::Refused, "the broker refuses it");
        }
        self.accept(message);
        if world.happens(|rates| rates.confirm_lost) {
            world.hit(Fault::ConfirmLost);
            return error(TransportErrorKind::Unknown, "no confirmation came");
        }
        Ok(())
    }

    /// The message as it is sent, with the mistake of the schedule.
    fn planted(&self, message: &Message) -> Message {
        let mut planted = message.clone();
        let world = &self.seat.world;
        let other = || MessageId(uuid::Uuid::from_u128(message.id.0.as_u128() ^ 1));
        match world.scenario.mutant {
            Some(Mutant::SendsUnderNewIds) if message.kind == MessageKind::Command && world.broker.has(message.id) => {
                planted.id = other();
            }
            Some(Mutant::MisaddressesReplies) if message.kind == MessageKind::Reply => {
                planted.headers.correlation = Some(other());
            }
            Some(Mutant::UndoesWithOtherInputs) if message.kind == MessageKind::Undo => {
                planted.payload = without_mapping(&message.payload);
            }
            _ => {}
        }
        planted
    }

    fn accept(&self, message: &Message) {
        if message.kind != MessageKind::Event {
            let message = self.planted(message);
            self.seat.enter_sent(&message);
            accept(&self.seat.world, &message);
            return;
        }
        let event: SimEvent = match serde_json::from_slice(&message.payload) {
            Ok(event) => event,
            // What cannot be read was emitted by no call, and the checker says so.
            Err(_) => SimEvent { call: u64::MAX, nth: 0 },
        };
        if !self.seat.world.note_delivery((event.call, event.nth)) {
            self.seat.world.hit(Fault::DeliveredTwice);
        }
        self.seat.enter(What::Delivered {
            message: message.id.to_string(),
            tenant: message.tenant.to_string(),
            key: format!("{}/{}/{}", message.tenant, message.topic, message.key),
            call: event.call,
            nth: event.nth,
        });
    }
}

/// An undo that brings its saga's own input; as it is where no mapping added to that.
fn without_mapping(payload: &[u8]) -> Vec<u8> {
    let mut content: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    match content.pointer_mut("/input/reads").map(serde_json::Value::take) {
        Some(reads) if !reads.is_null() => content.to_string().into_bytes(),
        _ => payload.to_vec(),
    }
}

#[async_trait]
impl Transport for SimTransport {
    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let world = &self.seat.world;
        let mut order: Vec<usize> = (0..messages.len()).collect();
        world.draw(|random| {
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last as u64 + 1) as usize);
            }
        });
        let mut answers: Vec<_> = messages.iter().map(|_| Ok(())).collect();
        for at in order {
            if !world.is_calm() && world.draw(|random| random.per_mille(100)) {
                world.env.sleep(Duration::from_millis(1)).await;
            }
            answers[at] = self.publish_one(&messages[at]);
        }
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let world = &self.seat.world;
        if world.happens(|rates| rates.receive_fails) {
            world.hit(Fault::ReceiveFailed);
            return Err(broken("subscribe"));
        }
        Ok(Box::new(SimIncoming {
            consumer: Consumer::new(world, subscription.name, subscription.prefetch),
            seat: self.seat.clone(),
        }))
    }
}

/// A subscription of one process.
struct SimIncoming {
    consumer: Consumer,
    seat: Seat,
}

#[async_trait]
impl Incoming for SimIncoming {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let deliveries = loop {
            let received = self.consumer.receive(limit).await;
            let left = self.without_unseen_undos(received);
            if !left.is_empty() {
                break left;
            }
        };
        if self.seat.world.happens(|rates| rates.receive_fails) {
            self.seat.world.hit(Fault::ReceiveFailed);
            return Err(broken("receive"));
        }
        if self.seat.world.scenario.mutant == Some(Mutant::SettlesBeforeStoring) {
            let all: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
            self.consumer.settle(&all);
        }
        Ok(deliveries)
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        if self.seat.world.happens(|rates| rates.settle_lost) {
            self.seat.world.hit(Fault::SettleLost);
            return Err(broken("settle"));
        }
        self.consumer.settle(settled);
        Ok(())
    }
}

impl SimIncoming {
    /// With that mutant, undos of steps that no command asked for yet are answered here, and their hosts never see them.
    fn without_unseen_undos(&mut self, deliveries: Vec<Delivery>) -> Vec<Delivery> {
        let world = Arc::clone(&self.seat.world);
        if world.scenario.mutant != Some(Mutant::NoTombstone) {
            return deliveries;
        }
        let mut left = Vec::new();
        for delivery in deliveries {
            let unseen = match &delivery.message {
                Ok(message) if message.kind == MessageKind::Command => {
                    world.broker.note_asked(message);
                    None
                }
                Ok(message) if message.kind == MessageKind::Undo && !world.broker.was_asked(message) => {
                    (message.headers.answer == Some(Answer::Unknown)).then(|| message.clone())
                }
                _ => None,
            };
            let Some(undo) = unseen else {
                left.push(delivery);
                continue;
            };
            let reply = undone(&world, &undo);
            self.seat.enter_sent(&reply);
            accept(&world, &reply);
            self.consumer.drop_silently(delivery.tag);
        }
        left
    }
}

/// What a host says that has undone a step.
fn undone(world: &World, undo: &Message) -> Message {
    let id = world.draw(|random| (u128::from(random.bits()) << 64) | u128::from(random.bits()));
    let id = MessageId(uuid::Uuid::from_u128(id));
    let asked = &undo.headers;
    Message {
        id,
        kind: MessageKind::Reply,
        topic: service_topic(asked.reply_to.as_deref().unwrap_or_default()),
        key: id.to_string(),
        payload: Vec::new(),
        headers: Headers {
            service: asked.reply_to.clone(),
            reply_to: asked.service.clone(),
            correlation: Some(undo.id),
            answer: Some(Answer::Undone),
            ..asked.clone()
        },
        ..undo.clone()
    }
}

fn broken(operation: &'static str) -> TransportError {
    TransportError::new(TransportErrorKind::Unavailable, operation, "the connection broke")
}
