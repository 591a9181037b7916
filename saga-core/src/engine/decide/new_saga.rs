//! The rows of a saga that is about to start.

use std::sync::Arc;

use super::deadline::{StartTiming, deadline_of, deadline_row};
use super::decider::Decider;
use super::remote::note_sent;
use crate::engine::context::{StartError, random_uuid};
use crate::engine::instance::idle_for;
use crate::engine::message::request_hash;
use crate::key::{Key, Tenant};
use crate::machine::{self, Timer};
use crate::saga::Definition;
use crate::step::StepOutputs;
use crate::store::{NewSaga, NewWork, SagaId, Store, WorkId, WorkKind};

/// What a start says besides its key and input.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartOptions {
    /// When the saga begins, and how long it may take.
    pub(crate) timing: StartTiming,
    /// The hash of what the caller named as the fingerprint of the request.
    pub(crate) fingerprint: Option<Vec<u8>>,
    /// The trace context of the caller.
    pub(crate) traceparent: Option<String>,
}

impl<S: Store> Decider<S> {
    /// A saga that is not written yet: without ids and without a lease. Its definition is registered.
    pub(crate) fn new_saga(
        &self,
        definition: &Arc<Definition<S>>,
        tenant: &Tenant,
        key: Key,
        input: Vec<u8>,
        options: StartOptions,
    ) -> Result<NewSaga, StartError> {
        let StartOptions { timing: when, fingerprint, traceparent } = options;
        let (bytes, max) = (input.len(), self.settings.payload_bytes_max);
        if bytes > max {
            return Err(StartError::TooLarge { bytes, max });
        }
        if let Some(longest) = definition.step_key_bytes_max() {
            key.check_length_with(longest, tenant)?;
        }
        let (mut state, orders) = machine::start(&definition.shape);
        state.traceparent = traceparent;
        state.delay = Some(when.delay).filter(|delay| !delay.is_zero());
        let mut commands = Vec::new();
        for order in orders {
            let machine::Command::Do { step } = order else { continue };
            let payload = match &definition.steps[step].input {
                None => None,
                Some(mapping) => {
                    let mapped = mapping.apply(&input, &StepOutputs::new());
                    Some(mapped.and_then(|mapped| self.check_length(mapped)).map_err(StartError::Input)?)
                }
            };
            note_sent(definition, &mut state, step, random_uuid(&*self.env), payload.as_deref());
            let idle = idle_for(&definition.steps[step], payload.as_deref().unwrap_or(&input));
            if idle.is_some() || definition.shape.is_lock(step) {
                state.steps[step].timer = Some(Timer::started_with(commands.len()));
            }
            let due_in = when.delay.saturating_add(idle.unwrap_or_default());
            let doing = definition.steps[step].doing.clone();
            let row = NewWork::new(WorkId(0), SagaId(0), (tenant, &key), &definition.id, WorkKind::Do, doing);
            commands.push(NewWork { payload, due_in, ..row });
        }
        let timer = Timer::started_with(commands.len());
        let deadline = deadline_of(definition, &mut state, when, timer);
        let row = commands.first().zip(deadline).map(|(first, deadline)| deadline_row(deadline, when.delay, first));
        commands.extend(row);
        Ok(NewSaga {
            input_hash: fingerprint.unwrap_or_else(|| request_hash(&input)),
            input,
            status: state.status(),
            state: state.encode(),
            commands,
            ..NewSaga::new(SagaId(0), tenant, key, definition.id.clone(), definition.digest)
        })
    }
}
