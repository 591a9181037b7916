//! The broker between the services.

use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;
use saga_servers::{MotoServer, RabbitMqServer, TansuServer};

use crate::workspace::cargo;

/// A broker, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// RabbitMQ.
    Rabbitmq,
    /// Kafka: tansu, a broker of its protocol that is installed from `PyPI`, on a mock of Amazon S3.
    Kafka,
    /// Amazon SQS and SNS: moto, a mock in Python that is installed from `PyPI`.
    Sqs,
}

impl Transport {
    /// Builds the programs that the demo runs.
    pub(super) fn build_command(self) -> Command {
        let mut command = cargo();
        command.args(["build", "--release", "--package", "order-rig", "--bins"]);
        match self {
            Self::Rabbitmq => {}
            Self::Kafka => _ = command.args(["--features", "order-rig/kafka"]),
            Self::Sqs => _ = command.args(["--features", "order-rig/sqs"]),
        }
        command
    }
}

/// A broker that runs. It ends with this value.
pub(super) enum Broker {
    RabbitMq(RabbitMqServer),
    Kafka(TansuServer),
    Sqs(MotoServer),
}

impl Broker {
    /// Starts a broker.
    pub(super) async fn start(transport: Transport) -> Result<Self> {
        Ok(match transport {
            Transport::Rabbitmq => Self::RabbitMq(RabbitMqServer::start().await?),
            Transport::Kafka => Self::Kafka(TansuServer::start_durable().await?),
            Transport::Sqs => Self::Sqs(MotoServer::start().await?),
        })
    }

    /// What `--transport` of the services is given.
    pub(super) fn url(&self) -> String {
        match self {
            Self::RabbitMq(rabbitmq) => rabbitmq.url(),
            // Tansu lets a group settle for half of the session time-out.
            Self::Kafka(tansu) => format!("kafka://{}?partitions=6&session_timeout=6", tansu.brokers()),
            Self::Sqs(_) => "sqs:demo".to_owned(),
        }
    }

    /// What the services find in their environment.
    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        let Self::Sqs(moto) = self else { return Vec::new() };
        moto.environment()
    }
}
