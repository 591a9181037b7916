use std::collections::{BTreeMap, BTreeSet};

use super::SigningKey;
use crate::store::{Message, MessageKind};

/// Which services may send which messages to this one.
///
/// Everything that is not named is refused. A service that sends messages to itself needs its own entry.
///
/// ```
/// use saga_core::authorization::{AccessPolicy, SigningKey};
///
/// # fn secret(_: &str) -> [u8; 32] { [7; 32] }
/// let policy = AccessPolicy::new()
///     // The broker's user `svc-orders` speaks for `orders`, and `orders` signs what it sends.
///     .user("svc-orders", "orders")
///     .key(&SigningKey::new("orders-2026-11", secret("ORDERS_KEY"))?, "orders")
///     // What `orders` may ask of the services that this process hosts.
///     .may_ask("orders", "charge-card")
///     .may_publish("orders", "order-placed");
/// # Ok::<_, saga_core::authorization::SigningKeyError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AccessPolicy {
    /// The services that a user of the transport may speak for.
    users: BTreeMap<String, BTreeSet<String>>,
    /// The keys by their ids, and the services that they sign for.
    keys: BTreeMap<String, (SigningKey, BTreeSet<String>)>,
    asks: BTreeSet<(String, String)>,
    asks_for_all: BTreeSet<String>,
    publishes: BTreeSet<(String, String)>,
    problems: Vec<String>,
}

impl AccessPolicy {
    /// A policy that allows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a user of the transport speak for a service. The transport must verify its users; RabbitMQ does, with the property
    /// `user-id`. If one user is named, every message needs a verified user.
    #[must_use]
    pub fn user(mut self, user: &str, service: &str) -> Self {
        self.users.entry(user.to_owned()).or_default().insert(service.to_owned());
        self
    }

    /// Accepts messages that are signed with this key as messages of this service. If one key is named, every message needs a
    /// signature. A service can have several keys at once; use this to rotate a key.
    #[must_use]
    pub fn key(mut self, key: &SigningKey, service: &str) -> Self {
        let id = key.id().to_owned();
        let (known, services) = self.keys.entry(id.clone()).or_insert_with(|| (key.clone(), BTreeSet::new()));
        if !known.is_same_as(key) {
            self.problems.push(format!("the signing key `{id}` is given twice with different secrets"));
        }
        services.insert(service.to_owned());
        self
    }

    /// Lets a service ask for a step that this process hosts, and for its undo.
    #[must_use]
    pub fn may_ask(mut self, service: &str, step: &str) -> Self {
        self.asks.insert((service.to_owned(), step.to_owned()));
        self
    }

    /// Lets a service ask for every step that this process hosts, and for their undos.
    #[must_use]
    pub fn may_ask_for_all(mut self, service: &str) -> Self {
        self.asks_for_all.insert(service.to_owned());
        self
    }

    /// Lets a service publish an event to which this process reacts.
    #[must_use]
    pub fn may_publish(mut self, service: &str, event: &str) -> Self {
        self.publishes.insert((service.to_owned(), event.to_owned()));
        self
    }

    /// What contradicts itself in the policy.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.problems.clone();
        if self.users.is_empty() && self.keys.is_empty() {
            let remedy = "name one with `.user(..)` or `.key(..)`, or leave the policy out";
            problems
                .push(format!("the access policy names no user and no key, so no message could be taken; {remedy}"));
        }
        let named: BTreeSet<&String> =
            self.users.values().chain(self.keys.values().map(|(_, services)| services)).flatten().collect();
        let ruled = self.asks.iter().chain(&self.publishes).map(|(service, _)| service).chain(&self.asks_for_all);
        for service in ruled.filter(|service| !named.contains(service)).collect::<BTreeSet<_>>() {
            problems.push(format!(
                "the access policy has rules for the service `{service}`, and no user or key that speaks for it"
            ));
        }
        problems
    }

    /// Whether a message may be handled: `user` is its sender as the transport has checked it, and `answers` says whether a
    /// service does a step for the sagas of this process.
    ///
    /// # Errors
    /// Says in one sentence what is not allowed.
    pub(crate) fn check(
        &self,
        message: &Message,
        user: Option<&str>,
        answers: impl FnOnce(&str, &str) -> bool,
    ) -> Result<(), String> {
        let services = self.speaks_for(message, user)?;
        if message.kind == MessageKind::Event {
            let event = &message.event_type;
            let may_publish = |service: &&str| self.publishes.contains(&((*service).to_owned(), event.clone()));
            return if services.iter().any(may_publish) {
                Ok(())
            } else {
                Err(format!("{} may not publish the event `{event}`", in_words(&services)))
            };
        }
        let Some(service) = message.headers.reply_to.as_deref() else {
            return Err("the header `saga-reply-to` is missing, which names the service that it is from".to_owned());
        };
        if !services.contains(service) {
            let services = in_words(&services);
            return Err(format!("it says that it is from `{service}`, and its sender may speak for {services}"));
        }
        // The name of the step, without the number of an item.
        let step = message.headers.step.as_deref().unwrap_or_default();
        let step = step.split_once('#').map_or(step, |(step, _)| step);
        match message.kind {
            MessageKind::Command | MessageKind::Undo => {
                if self.allows_to_ask(service, step) {
                    Ok(())
                } else {
                    Err(format!("`{service}` may not ask for the step `{step}`"))
                }
            }
            MessageKind::Reply | MessageKind::Report => {
                if answers(service, step) {
                    Ok(())
                } else {
                    Err(format!("`{service}` may not answer for the step `{step}`: no saga here has it done there"))
                }
            }
            // The host closes only the steps that the service may ask for.
            MessageKind::Fact | MessageKind::Event | MessageKind::Closed => Ok(()),
        }
    }

    /// Whether a service may ask for a step.
    pub(crate) fn allows_to_ask(&self, service: &str, step: &str) -> bool {
        self.asks_for_all.contains(service) || self.asks.contains(&(service.to_owned(), step.to_owned()))
    }

    /// The services that the sender of a message is proven to speak for.
    fn speaks_for(&self, message: &Message, user: Option<&str>) -> Result<BTreeSet<&str>, String> {
        let by_user = if self.users.is_empty() {
            None
        } else {
            let user = user.ok_or("the transport does not say which user sent it")?;
            let services = self.users.get(user);
            Some(services.ok_or_else(|| format!("the user {user:?} may not speak for any service"))?)
        };
        let by_key = if self.keys.is_empty() {
            None
        } else {
            let id = message.headers.key_id.as_deref().ok_or("it is not signed")?;
            let known = self.keys.get(id);
            let (key, services) = known.ok_or_else(|| format!("the signing key {id:?} is not known here"))?;
            if !key.verifies(message) {
                return Err(format!("its signature is not the one that the key `{id}` makes of it"));
            }
            Some(services)
        };
        let both = [by_user, by_key];
        let mut proven = both.into_iter().flatten();
        let mut services: BTreeSet<&str> = proven.next().into_iter().flatten().map(String::as_str).collect();
        for other in proven {
            services.retain(|service| other.contains(*service));
        }
        Ok(services)
    }
}

fn in_words(services: &BTreeSet<&str>) -> String {
    if services.is_empty() {
        return "no service".to_owned();
    }
    let quoted: Vec<String> = services.iter().map(|service| format!("`{service}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::key::Tenant;
    use crate::store::{Headers, MessageId, Timestamp, service_topic};

    fn key(id: &str) -> SigningKey {
        SigningKey::new(id, [id.len() as u8; 32]).unwrap()
    }

    fn from(service: &str, kind: MessageKind) -> Message {
        Message {
            id: MessageId(Uuid::from_u128(7)),
            kind,
            tenant: Tenant::default(),
            topic: service_topic("payments"),
            key: "7".into(),
            event_type: "order-placed".into(),
            payload: Vec::new(),
            committed_at: Timestamp(12),
            headers: Headers {
                reply_to: Some(service.into()),
                step: Some("charge-card#3".into()),
                ..Headers::default()
            },
        }
    }

    fn signed(key: &SigningKey, mut message: Message) -> Message {
        key.sign(&mut message);
        message
    }

    fn says(policy: &AccessPolicy, message: &Message, user: Option<&str>) -> String {
        let answers = |service: &str, step: &str| (service, step) == ("payments", "charge-card");
        policy.check(message, user, answers).err().unwrap_or_else(|| "allowed".to_owned())
    }

    #[test]
    fn a_user_speaks_for_its_services_only() {
        let policy = AccessPolicy::new().user("svc-orders", "orders").may_ask("orders", "charge-card");
        let command = from("orders", MessageKind::Command);
        assert_eq!(says(&policy, &command, Some("svc-orders")), "allowed");
        assert_eq!(says(&policy, &command, None), "the transport does not say which user sent it");
        assert_eq!(says(&policy, &command, Some("guest")), "the user \"guest\" may not speak for any service");
        let forged = from("shipping", MessageKind::Command);
        assert_eq!(
            says(&policy, &forged, Some("svc-orders")),
            "it says that it is from `shipping`, and its sender may speak for `orders`"
        );
    }

    #[test]
    fn each_kind_needs_a_permission_of_its_own() {
        let policy = AccessPolicy::new()
            .user("o", "orders")
            .user("p", "payments")
            .user("b", "billing")
            .may_ask("orders", "charge-card")
            .may_ask_for_all("billing")
            .may_publish("orders", "order-placed");
        let cases = [
            (MessageKind::Command, "orders", "o", "allowed"),
            (MessageKind::Undo, "orders", "o", "allowed"),
            (MessageKind::Undo, "billing", "b", "allowed"),
            (MessageKind::Command, "payments", "p", "`payments` may not ask for the step `charge-card`"),
            (MessageKind::Reply, "payments", "p", "allowed"),
            (MessageKind::Report, "payments", "p", "allowed"),
            (
                MessageKind::Reply,
                "orders",
                "o",
                "`orders` may not answer for the step `charge-card`: no saga here has it done there",
            ),
            (MessageKind::Event, "orders", "o", "allowed"),
            (MessageKind::Event, "payments", "p", "`payments` may not publish the event `order-placed`"),
            (MessageKind::Fact, "payments", "p", "allowed"),
        ];
        for (kind, service, user, answer) in cases {
            assert_eq!(says(&policy, &from(service, kind), Some(user)), answer, "{kind:?} from {service}");
        }
    }

    #[test]
    fn a_signature_proves_the_service_of_its_key() {
        let policy = AccessPolicy::new().key(&key("orders-1"), "orders").may_ask_for_all("orders");
        let command = from("orders", MessageKind::Command);
        assert_eq!(says(&policy, &signed(&key("orders-1"), command.clone()), None), "allowed");
        assert_eq!(says(&policy, &command, None), "it is not signed");
        let unknown = signed(&key("other"), command.clone());
        assert_eq!(says(&policy, &unknown, None), "the signing key \"other\" is not known here");
        let mut changed = signed(&key("orders-1"), command);
        changed.payload = b"more".to_vec();
        let wrong = "its signature is not the one that the key `orders-1` makes of it";
        assert_eq!(says(&policy, &changed, None), wrong);
    }

    #[test]
    fn a_key_is_rotated_while_both_are_good() {
        let both = AccessPolicy::new().key(&key("orders-1"), "orders").key(&key("orders-22"), "orders");
        let both = both.may_ask_for_all("orders");
        let command = from("orders", MessageKind::Command);
        for id in ["orders-1", "orders-22"] {
            assert_eq!(says(&both, &signed(&key(id), command.clone()), None), "allowed", "{id}");
        }
        let later = AccessPolicy::new().key(&key("orders-22"), "orders").may_ask_for_all("orders");
        let old = signed(&key("orders-1"), command);
        assert_eq!(says(&later, &old, None), "the signing key \"orders-1\" is not known here");
    }

    #[test]
    fn user_and_signature_must_agree() {
        let policy = AccessPolicy::new()
            .user("svc-orders", "orders")
            .user("svc-payments", "payments")
            .key(&key("orders-1"), "orders")
            .may_ask_for_all("orders");
        let command = signed(&key("orders-1"), from("orders", MessageKind::Command));
        assert_eq!(says(&policy, &command, Some("svc-orders")), "allowed");
        assert_eq!(
            says(&policy, &command, Some("svc-payments")),
            "it says that it is from `orders`, and its sender may speak for no service"
        );
    }

    #[test]
    fn a_policy_that_contradicts_itself_is_named() {
        assert!(AccessPolicy::new().problems()[0].contains("names no user and no key"));
        let twice = AccessPolicy::new().key(&key("a"), "orders").key(&SigningKey::new("a", [9; 32]).unwrap(), "orders");
        assert_eq!(twice.problems(), ["the signing key `a` is given twice with different secrets"]);
        let nobody = AccessPolicy::new().user("o", "orders").may_publish("shipping", "shipped");
        assert!(nobody.problems()[0].contains("rules for the service `shipping`"), "{:?}", nobody.problems());
    }
}
