//! Who may send messages to this process, and how its own messages are signed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::authorization::{AccessPolicy, SigningKey};
use crate::machine::Effect;
use crate::saga::Definition;
use crate::store::{DefinitionId, Message, Store};

/// The access policy and the signing key of a runtime.
#[derive(Debug, Default)]
pub(crate) struct MessageAuthorizer {
    policy: Option<AccessPolicy>,
    signing_key: Option<SigningKey>,
    /// The steps that other services do for the sagas of this process, by service and step.
    remote_steps: BTreeSet<(&'static str, &'static str)>,
}

impl MessageAuthorizer {
    pub(crate) fn new<S: Store>(
        policy: Option<AccessPolicy>,
        signing_key: Option<SigningKey>,
        definitions: &BTreeMap<DefinitionId, Arc<Definition<S>>>,
    ) -> Self {
        let steps = definitions.values().flat_map(|definition| &definition.shape.steps);
        let remote_steps = steps.filter_map(|step| match step.effect {
            Effect::Remote { service } => Some((service, step.name)),
            _ => None,
        });
        Self { policy, signing_key, remote_steps: remote_steps.collect() }
    }

    /// Whether a message may be handled; `user` is its sender as the transport has checked it.
    ///
    /// # Errors
    /// Says in one sentence what the policy does not allow.
    pub(crate) fn check(&self, message: &Message, user: Option<&str>) -> Result<(), String> {
        let Some(policy) = &self.policy else { return Ok(()) };
        policy.check(message, user, |service, step| {
            self.remote_steps.iter().any(|(host, hosted)| *host == service && *hosted == step)
        })
    }

    /// Whether a service may ask for a step that this process hosts.
    pub(crate) fn may_ask(&self, service: &str, step: &str) -> bool {
        self.policy.as_ref().is_none_or(|policy| policy.allows_to_ask(service, step))
    }

    /// Whether a service may hear what became of sagas of this process, because it does steps for them.
    pub(crate) fn may_hear_of_sagas(&self, service: &str) -> bool {
        self.policy.is_none() || self.remote_steps.iter().any(|(host, _)| *host == service)
    }

    /// Signs a message that is handed to the transport. It is signed then, and not when it is committed, so that no
    /// signature by a key that was taken away waits in the outbox.
    pub(crate) fn sign(&self, mut message: Message) -> Message {
        if let Some(key) = &self.signing_key {
            key.sign(&mut message);
        }
        message
    }
}
