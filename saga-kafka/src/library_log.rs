//! What librdkafka logs.

use rdkafka::config::RDKafkaLogLevel;

use saga_core::__private::log;

/// Passes a line on. What the library calls an error is mostly a connection that it makes again by itself.
pub(crate) fn tell(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            log::warn!(facility, message, "librdkafka");
        }
        _ => log::debug!(facility, message, "librdkafka"),
    }
}
