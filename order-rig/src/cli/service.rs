use std::{fmt, num::NonZeroUsize, path::PathBuf};

use clap::{Args, ValueEnum};

use super::{OrdersArgs, RetentionArgs, TimesArgs, WaitArgs};

/// How to run a service.
#[derive(Debug, Args)]
pub struct ServiceArgs {
    /// The service: `orders` runs the sagas, `payments` charges cards, `shipping` books shipments
    pub service: ServiceName,
    /// Its own database, as `run` takes it; its replicas share one [default: sqlite:order-rig-SERVICE.db]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The broker between the services: amqp://USER:PASSWORD@HOST:PORT[,HOST:PORT..]/VHOST,
    /// kafka://HOST:PORT[,HOST:PORT..] or sqs:PREFIX
    #[arg(long, value_name = "URL")]
    pub transport: Option<String>,
    /// The gateway and the carrier, as `order-rig outside` prints it; `orders` needs it to count their effects
    #[arg(long, value_name = "URL")]
    pub outside: Option<String>,
    /// The most calls of external services at once in this process [default: 64]
    #[arg(long, value_name = "N")]
    pub calls: Option<NonZeroUsize>,
    /// With `orders`: run these orders to their ends, then stop. Without them a service runs until it is interrupted.
    #[command(flatten)]
    pub orders: OrdersArgs,
    /// How long it waits for what is away.
    #[command(flatten)]
    pub waits: WaitArgs,
    /// The lease and the time for a reply.
    #[command(flatten)]
    pub times: TimesArgs,
    /// How long what has ended is kept.
    #[command(flatten)]
    pub retention: RetentionArgs,
}

impl ServiceArgs {
    /// The URL of its store.
    pub fn store(&self) -> &str {
        self.store.as_deref().unwrap_or(match self.service {
            ServiceName::Orders => "sqlite:order-rig-orders.db",
            ServiceName::Payments => "sqlite:order-rig-payments.db",
            ServiceName::Shipping => "sqlite:order-rig-shipping.db",
        })
    }

    /// What it was given that only `orders` can use.
    pub fn orders_only(&self) -> Option<&'static str> {
        let given = |given: &Option<PathBuf>, name| given.as_ref().map(|_| name);
        let flags = [given(&self.orders.orders, "--orders"), given(&self.orders.products, "--products")];
        flags.into_iter().flatten().next().or(self.orders.json.then_some("--json"))
    }
}

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServiceName {
    /// It has the orders and the shop's tables, and sends commands to the other services.
    Orders,
    /// It charges cards.
    Payments,
    /// It books shipments.
    Shipping,
}

impl ServiceName {
    /// The name that the contracts give it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Payments => "payments",
            Self::Shipping => "shipping",
        }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
