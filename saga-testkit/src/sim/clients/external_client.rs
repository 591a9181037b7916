//! A service that is none of ours and asks for a step only to take it back: its undo may come first.

use std::sync::Arc;
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::store::{Answer as Told, Headers, MessageId, MessageKind, Timestamp, service_topic};
use saga_core::transport::{Message, Settlement};

use crate::checker::{Answer, Sent, Standing, StepPlan, What};
use crate::sim::sagas::{SERVICES, SimInput, place_of, tenant_of};
use crate::sim::world::{Consumer, Fault, World, accept, input_of};

/// Its name.
const NAME: &str = "elsewhere";
/// After how long without an answer it asks again.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many messages it takes at a time.
const PREFETCH: usize = 4;

/// Asks for the only step of this saga of the scenario and takes it back, until it was told that nothing of it stands.
pub(crate) async fn ask_and_take_back(world: Arc<World>, saga: u32, step: StepPlan, moment: Duration) {
    world.env.sleep(moment).await;
    let call = world.recorder.number();
    world.enter(What::StartCalled { call, saga, variant: 0 });
    world.enter(What::StartAnswered { call, answer: Answer::Started { is_new: Some(true) } });
    let Some(host) = step.host else { return };
    let command = message(&world, saga, &step.name, host, MessageKind::Command);
    let undo = message(&world, saga, &step.name, host, MessageKind::Undo);
    let is_undo_first = world.draw(|random| random.per_mille(600));
    let mut open = if is_undo_first { vec![command, undo] } else { vec![undo, command] };
    let mut consumer = Consumer::new(&world, service_topic(NAME), PREFETCH);
    let mut asked = 0;
    while !open.is_empty() {
        // The second is sent when the first has had some time.
        asked += 1;
        for message in open.iter().rev().take(asked) {
            send(&world, saga, message);
        }
        let patience = world.env.sleep(PATIENCE);
        tokio::select! {
            biased;
            () = patience => {}
            () = answered(&world, &mut consumer, saga, &mut open, is_undo_first) => {}
        }
    }
    // What comes later is taken and dropped.
    loop {
        take(&mut consumer).await;
    }
}

/// Waits until one of the messages was answered for good.
async fn answered(world: &World, consumer: &mut Consumer, saga: u32, open: &mut Vec<Message>, is_undo_first: bool) {
    loop {
        let replies = take(consumer).await;
        let mut is_one = false;
        for reply in replies {
            let is_final = !matches!(reply.headers.answer, None | Some(Told::Stuck | Told::Refused | Told::Unknown));
            let Some(at) = open.iter().position(|asked| Some(asked.id) == reply.headers.correlation) else { continue };
            if !is_final {
                continue;
            }
            is_one = true;
            let asked = open.remove(at);
            if asked.kind == MessageKind::Undo {
                world.end_foreign(saga);
                world.enter(What::OutcomeSeen { saga, standing: Standing::Compensated });
            } else if is_undo_first && reply.headers.answer == Some(Told::Cancelled) {
                world.hit(Fault::UndoOvertook);
            }
        }
        if is_one {
            return;
        }
    }
}

async fn take(consumer: &mut Consumer) -> Vec<Message> {
    let deliveries = consumer.receive(PREFETCH).await;
    let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
    consumer.settle(&settled);
    deliveries.into_iter().filter_map(|delivery| delivery.message.ok()).collect()
}

fn send(world: &Arc<World>, saga: u32, message: &Message) {
    let kind = if message.kind == MessageKind::Undo { Sent::Undo } else { Sent::Command };
    let step = message.headers.step.as_deref().and_then(place_of).unwrap_or(u8::MAX);
    world.enter(What::Sent {
        message: message.id.to_string(),
        kind,
        saga,
        step,
        asked: None,
        input: input_of(message),
    });
    accept(world, message);
}

fn message(world: &World, saga: u32, step: &str, host: u8, kind: MessageKind) -> Message {
    let script = &world.scenario.sagas[saga as usize];
    let input = serde_json::json!(SimInput { saga, variant: 0, reads: None, item: 0 });
    let is_undo = kind == MessageKind::Undo;
    let payload = if is_undo { serde_json::json!({ "input": input }) } else { input };
    let service = SERVICES[usize::from(host) - 1];
    let id = world.draw(|random| (u128::from(random.bits()) << 64) | u128::from(random.bits()));
    let id = MessageId(uuid::Uuid::from_u128(id));
    Message {
        id,
        kind,
        tenant: tenant_of(script.tenant),
        topic: service_topic(service),
        key: id.to_string(),
        event_type: if is_undo { format!("{step}:undo") } else { step.to_owned() },
        payload: payload.to_string().into_bytes(),
        // What comes from the future is young, however far the clocks are apart.
        committed_at: Timestamp(i64::MAX),
        headers: Headers {
            saga_key: Some(script.key.clone()),
            step: Some(step.to_owned()),
            service: Some(service.to_owned()),
            reply_to: Some(NAME.to_owned()),
            answer: is_undo.then_some(Told::Unknown),
            ..Headers::default()
        },
    }
}
