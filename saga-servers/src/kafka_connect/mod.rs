//! A worker of Kafka Connect with Debezium's connector for PostgreSQL.

mod jars;
mod worker;

pub use self::worker::KafkaConnect;
