//! What carries the messages between the services.

use std::fmt;

use anyhow::{Context as _, bail};
use saga_servers::{FaultProxy, Management, MotoServer, RabbitMqServer, TansuServer};
use serde::Serialize;

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// RabbitMQ, with all faults.
    #[default]
    RabbitMq,
    /// Kafka: tansu, a broker of its protocol. It is killed and keeps what it has in a mock of Amazon S3.
    Kafka,
    /// Amazon SQS and SNS: moto, a mock that forgets everything when it ends, so it is not killed.
    Sqs,
}

/// As it is named on the command line.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RabbitMq => "rabbitmq",
            Self::Kafka => "kafka",
            Self::Sqs => "sqs",
        })
    }
}

/// A broker of this run alone.
#[derive(Debug)]
pub(crate) enum Broker {
    RabbitMq(RabbitMqServer),
    Kafka(TansuServer),
    Sqs(MotoServer),
}

/// Where RabbitMQ is, which can be asked for more than the others.
#[derive(Debug)]
pub(crate) struct RabbitMq {
    pub(crate) proxy: FaultProxy,
    pub(crate) management: Management,
    /// The virtual host, as it stands in paths of the management interface.
    pub(crate) vhost: String,
    /// The broker's own address.
    pub(crate) url: String,
}

/// Where the replicas find what carries their messages.
#[derive(Debug)]
pub(crate) enum Carrier {
    RabbitMq(RabbitMq),
    Other { transport: String, environment: Vec<(&'static str, String)> },
}

impl Broker {
    pub(crate) async fn start(transport: Transport) -> Result<Self, saga_servers::Error> {
        Ok(match transport {
            Transport::RabbitMq => Self::RabbitMq(RabbitMqServer::start().await?),
            Transport::Kafka => Self::Kafka(TansuServer::start_durable().await?),
            Transport::Sqs => Self::Sqs(MotoServer::start().await?),
        })
    }

    /// SIGKILL, and a start on the same data.
    pub(crate) async fn kill_and_restart(&mut self, mut killed: impl FnMut()) -> anyhow::Result<()> {
        match self {
            Self::RabbitMq(rabbitmq) => {
                rabbitmq.kill().await?;
                killed();
                rabbitmq.restart().await?;
            }
            Self::Kafka(tansu) => {
                tansu.kill().await?;
                killed();
                tansu.restart().await?;
            }
            Self::Sqs(_) => bail!("moto forgets everything when it ends"),
        }
        Ok(())
    }

    pub(crate) fn rabbitmq(&self) -> anyhow::Result<&RabbitMqServer> {
        match self {
            Self::RabbitMq(rabbitmq) => Ok(rabbitmq),
            _ => bail!("only RabbitMQ can do this"),
        }
    }

    /// What it logged.
    pub(crate) fn log(&self) -> Result<String, saga_servers::Error> {
        match self {
            Self::RabbitMq(rabbitmq) => rabbitmq.log(),
            Self::Kafka(tansu) => tansu.log(),
            Self::Sqs(moto) => moto.log(),
        }
    }

    pub(crate) async fn carrier(&self) -> anyhow::Result<Carrier> {
        Ok(match self {
            Self::RabbitMq(rabbitmq) => {
                Carrier::of_rabbitmq(rabbitmq.url(), rabbitmq.management()?, "%2F".to_owned()).await?
            }
            // What a dead replica had goes to another one soon.
            Self::Kafka(tansu) => Carrier::Other {
                transport: format!("kafka://{}?partitions=6&session_timeout=6", tansu.brokers()),
                environment: Vec::new(),
            },
            Self::Sqs(moto) => {
                Carrier::Other { transport: "sqs:chaos?visibility=6".to_owned(), environment: moto.environment() }
            }
        })
    }
}

impl Carrier {
    pub(crate) async fn of_rabbitmq(url: String, management: Management, vhost: String) -> anyhow::Result<Self> {
        let proxy = FaultProxy::start(&url).await.context("cannot stand in front of RabbitMQ")?;
        Ok(Self::RabbitMq(RabbitMq { proxy, management, vhost, url }))
    }

    pub(crate) fn rabbitmq(&self) -> anyhow::Result<&RabbitMq> {
        match self {
            Self::RabbitMq(rabbitmq) => Ok(rabbitmq),
            Self::Other { .. } => bail!("only RabbitMQ can do this"),
        }
    }

    /// What `--transport` of a service is given.
    pub(crate) fn transport(&self) -> String {
        match self {
            Self::RabbitMq(rabbitmq) => rabbitmq.proxy.url().to_owned(),
            Self::Other { transport, .. } => transport.clone(),
        }
    }

    /// What a service finds in its environment.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::RabbitMq(_) => Vec::new(),
            Self::Other { environment, .. } => environment.clone(),
        }
    }
}
