use std::process::ExitCode;

use anyhow::{Context, bail};

use super::{host::host, log::log_to_stderr, orders::orders};
use crate::{
    cli::{ServiceArgs, ServiceName},
    outside::{Carrier, Gateway, Outside},
    patience::wait_for,
    place::{Broker, Place, connect_transport},
    run::Input,
    saga::{payments, shipping},
};

const NEEDS_BROKER: &str =
    "a service talks to the others by a broker: give it --transport amqp://user:password@host:port/vhost";

/// Runs a service until it is asked to end; or, with orders, until they have ended.
pub async fn service(place: &impl Place, args: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let name = args.service;
    if let (ServiceName::Payments | ServiceName::Shipping, Some(flag)) = (name, args.orders_only()) {
        bail!("{flag} is for the service orders; {name} does what that one asks for");
    }
    if let (ServiceName::Orders, None, Some(flag)) = (name, &args.orders.orders, args.orders_only()) {
        bail!("{flag} belongs to orders that are run: give it --orders FILE as well");
    }
    let transport = args.transport.as_deref().unwrap_or("memory:");
    if transport == "memory:" {
        bail!("{NEEDS_BROKER}");
    }
    log_to_stderr();
    let outside = outside(args).await?;
    // What can be wrong with the rest is found before anything is connected.
    let input = args.orders.orders.as_ref().map(|_| Input::read(&args.orders)).transpose()?;
    let outside = match (name, outside) {
        (ServiceName::Orders, outside) => {
            return orders(place, args, connect(transport, args).await?, input, outside).await;
        }
        (_, None) => {
            bail!(
                "the service {name} calls the services outside: give it --outside URL, as `order-rig outside` prints it"
            )
        }
        (_, Some(outside)) => outside,
    };
    let transport = connect(transport, args).await?;
    if name == ServiceName::Payments {
        let (gateway, hosted) = (Gateway(outside), payments()?);
        return host(place, args, transport, |runtime| runtime.service(&hosted).state(gateway.clone())).await;
    }
    let (carrier, hosted) = (Carrier(outside), shipping()?);
    host(place, args, transport, |runtime| runtime.service(&hosted).state(carrier.clone())).await
}

/// Services and their broker are started side by side, and one of them comes first.
async fn connect(url: &str, args: &ServiceArgs) -> anyhow::Result<Broker> {
    connect_transport(url, args.waits.wait_for_broker).await?.context(NEEDS_BROKER)
}

/// The services outside, if they were given: they must answer.
async fn outside(args: &ServiceArgs) -> anyhow::Result<Option<Outside>> {
    let Some(url) = &args.outside else { return Ok(None) };
    let outside = Outside::at(url)?;
    let asked = wait_for("the services outside", args.waits.wait_for_outside, async || outside.tally().await);
    asked.await.context("the services outside do not answer")?;
    Ok(Some(outside))
}
