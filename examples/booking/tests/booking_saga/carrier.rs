//! What carries the messages of a scenario.

use std::path::Path;

/// A transport, by the tag of the scenarios that run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Everything runs in the test's process.
    Memory,
    /// The orchestrator is a process of its own.
    #[cfg(feature = "rabbitmq")]
    RabbitMq,
    /// So it is here. A mock of SQS and SNS carries the messages.
    #[cfg(feature = "sqs")]
    Sqs,
}

impl Carrier {
    /// The tags that a scenario may have.
    pub(crate) const TAGS: [&str; 3] = ["memory", "rabbitmq", "sqs"];

    /// The transport with this tag, if the test was built with it.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        match tag {
            "memory" => Some(Self::Memory),
            #[cfg(feature = "rabbitmq")]
            "rabbitmq" => Some(Self::RabbitMq),
            #[cfg(feature = "sqs")]
            "sqs" => Some(Self::Sqs),
            _ => None,
        }
    }
}

/// The specification.
pub(crate) fn feature() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/features/booking_saga.feature"))
}
